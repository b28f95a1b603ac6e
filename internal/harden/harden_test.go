//go:build linux

package harden

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tries is the variable that makes this program try things in place of testing: what
// holds it is irrevocable.
const tries = "CAISSON_TEST_HARDEN"

func TestMain(m *testing.M) {
	if how := os.Getenv(tries); how != "" {
		if err := tryAll(how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// tryAll becomes hard, where it is to, and prints how each thing went.
func tryAll(how string) error {
	runtime.LockOSThread()
	if how == "hard" {
		program, err := Filter()
		if err != nil {
			return err
		}
		ruleset, err := Ruleset([]string{os.Getenv("MAY")}, []string{os.Getenv("OPEN")})
		if err = errors.Join(err, SetFilter(program)); err != nil {
			return err
		}
		if err := Restrict(ruleset); err != nil {
			return err
		}
	}
	went := map[string]string{}
	for _, t := range calls() {
		went[t.name] = named(t.try())
	}
	for name, err := range files(os.Getenv("MAY"), os.Getenv("NOT"), os.Getenv("OPEN")) {
		went[name] = named(err)
	}
	return json.NewEncoder(os.Stdout).Encode(went)
}

func named(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "open"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// call is a system call that ends well where nothing refuses it, for root.
type call struct {
	name string
	want string // where it is refused
	try  func() error
}

// What calls point at: it stays in its place.
var (
	ring    [30]uint32                                       // struct io_uring_params
	array   = [5]uint32{unix.BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0} // union bpf_attr
	keyKind = [5]byte{'u', 's', 'e', 'r'}
	keyName = [8]byte{'c', 'a', 'i', 's', 's', 'o', 'n'}
)

func calls() []call {
	sys := func(nr int, args ...uintptr) func() error {
		return func() error {
			args := append(args, make([]uintptr, 6-len(args))...)
			fd, _, errno := unix.Syscall6(uintptr(nr), args[0], args[1], args[2], args[3], args[4], args[5])
			if errno != 0 {
				return errno
			}
			if nr == unix.SYS_SOCKET || nr == unix.SYS_BPF || nr == unix.SYS_USERFAULTFD || nr == unix.SYS_IO_URING_SETUP {
				return unix.Close(int(fd))
			}
			return nil
		}
	}
	var here, there uint64 = 7, 0 // what is copied
	from := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&here)), Len: 8}}
	to := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&there)), Len: 8}}
	copied := func(do func(pid int, l, r []unix.Iovec) error) func() error {
		return func() error { return do(os.Getpid(), to, from) }
	}
	return []call{
		{"a namespace of names", "EPERM", sys(unix.SYS_UNSHARE, unix.CLONE_NEWUTS)},
		{"a namespace of users", "EPERM", func() error { return clone(unix.CLONE_NEWUSER) }},
		{"a namespace of mounts", "EPERM", func() error { return clone(unix.CLONE_NEWNS) }},
		{"a child", "open", func() error { return clone(0) }},
		{"clone3", "ENOSYS", func() error { return notThere(sys(unix.SYS_CLONE3, 0, 0)()) }},
		{"setns", "EPERM", setns},
		{"a key", "EPERM", sys(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 1)},
		{"a new key", "EPERM", sys(unix.SYS_ADD_KEY, ptr(&keyKind), ptr(&keyName), ptr(&keyName), 7, ^uintptr(2))},
		{"bpf", "EPERM", sys(unix.SYS_BPF, unix.BPF_MAP_CREATE, ptr(&array), 20)},
		{"a ring", "EPERM", sys(unix.SYS_IO_URING_SETUP, 1, ptr(&ring))},
		{"userfaultfd", "EPERM", sys(unix.SYS_USERFAULTFD, unix.O_CLOEXEC)},
		{"reading memory", "ENOSYS", copied(func(pid int, l, r []unix.Iovec) error {
			_, err := unix.ProcessVMReadv(pid, l, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(r[0].Base)), Len: 8}}, 0)
			return err
		})},
		{"writing memory", "ENOSYS", copied(func(pid int, l, r []unix.Iovec) error {
			_, err := unix.ProcessVMWritev(pid, r, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(l[0].Base)), Len: 8}}, 0)
			return err
		})},
		{"a raw socket", "EPERM", sys(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)},
		{"a raw socket, IPv6", "EPERM", sys(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
		{"packets", "EPERM", sys(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW)},
		{"the internet", "open", sys(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC)},
		{"names over UDP", "open", sys(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK)},
		{"netlink", "open", sys(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)},
		{"Unix", "open", sys(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM)},
		{"tracing a stranger", "EPERM", func() error { return trace(os.Getppid()) }},
		{"a stranger's memory", "EACCES", func() error { return writable(fmt.Sprintf("/proc/%d/mem", os.Getppid()), unix.O_RDONLY) }},
		{"a stranger's folder", "EACCES", func() error { _, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", os.Getppid())); return err }},
		{"tracing a child", "open", traceChild},
	}
}

// notThere is about a call that is handed nothing: that it is there at all.
func notThere(err error) error {
	if errors.Is(err, unix.ENOSYS) {
		return err
	}
	return nil
}

func ptr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// clone makes a process, in new namespaces, that ends.
func clone(flags uintptr) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: flags}
	return cmd.Run()
}

func setns() error {
	fd, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Setns(fd, unix.CLONE_NEWNET), unix.Close(fd))
}

func trace(pid int) error {
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	return errors.Join(unix.PtraceInterrupt(pid), waitStop(pid), unix.PtraceDetach(pid))
}

func waitStop(pid int) error {
	_, err := unix.Wait4(pid, nil, unix.WALL, nil)
	return err
}

func traceChild() error {
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return errors.Join(trace(cmd.Process.Pid), readable(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)), in.Close(), cmd.Wait())
}

func readable(name string) error {
	_, err := os.ReadFile(name)
	return err
}

// files does to three folders what programs do to files: to one of their own, to one
// of somebody else's, and to one in which they may write and make nothing.
func files(may, not, open string) map[string]error {
	write := func(dir string) error { return os.WriteFile(filepath.Join(dir, "new"), []byte("x"), 0o644) }
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	return map[string]error{
		"writing":                  write(may),
		"moving":                   errors.Join(os.MkdirAll(in(may, "a/b"), 0o755), write(in(may, "a/b")), os.Mkdir(in(may, "c"), 0o755), os.Rename(in(may, "a/b"), in(may, "c/b"))),
		"removing":                 os.RemoveAll(in(may, "c")),
		"a link":                   os.Symlink("x", in(may, "link")),
		"a socket":                 unix.Mkfifo(in(may, "pipe"), 0o600),
		"nothing":                  os.WriteFile("/dev/null", []byte("x"), 0),
		"a name":                   os.WriteFile("/proc/self/comm", []byte("x"), 0),
		"reading elsewhere":        readable(in(not, "old")),
		"writing what is there":    writable(in(open, "old"), unix.O_WRONLY|unix.O_TRUNC),
		"making beside, elsewhere": write(open),
		"writing elsewhere":        write(not),
		"appending elsewhere":      writable(in(not, "old"), unix.O_WRONLY|unix.O_APPEND),
		"cutting elsewhere":        os.Truncate(in(not, "old"), 0),
		"a folder elsewhere":       os.Mkdir(in(not, "dir"), 0o755),
		"a link elsewhere":         os.Symlink("x", in(not, "link")),
		"a pipe elsewhere":         unix.Mkfifo(in(not, "pipe"), 0o600),
		"moving elsewhere":         os.Rename(in(may, "new"), in(not, "moved")),
		"removing elsewhere":       os.Remove(in(not, "other")),
	}
}

func writable(name string, flags int) error {
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// What is refused is refused by this layer, since without it the same works; and what
// programs need goes on.
func TestHard(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("without this layer root alone can do all of it")
	}
	if err := Works(); err != nil {
		t.Skip(err)
	}
	soft, hard := tryIn(t, "soft"), tryIn(t, "hard")
	want := map[string]string{}
	for _, c := range calls() {
		want[c.name] = c.want
	}
	for name := range files(t.TempDir(), t.TempDir(), t.TempDir()) {
		want[name] = "open"
		if strings.HasSuffix(name, "elsewhere") && name != "reading elsewhere" {
			want[name] = "EACCES"
		}
	}
	if version() < truncates {
		want["cutting elsewhere"] = "open"
	}
	for name, answer := range want {
		if soft[name] != "open" {
			t.Errorf("%s, where nothing refuses it: %s", name, soft[name])
		}
		if hard[name] != answer {
			t.Errorf("%s: %s, want %s", name, hard[name], answer)
		}
	}
}

// tryIn has another process try all of it, and tells how it went.
func tryIn(t *testing.T, how string) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	may, not, open := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{"old", "other"} {
		for _, dir := range []string{not, open} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), tries+"="+how, "MAY="+may, "NOT="+not, "OPEN="+open)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	went := map[string]string{}
	if err := json.Unmarshal(out, &went); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return went
}
