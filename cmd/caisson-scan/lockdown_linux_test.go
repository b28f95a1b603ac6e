package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/policy/scanner"
)

// TestMain is also the process that locks itself down and then tries what it
// must not be able to do: "probe NAME".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		probe(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// probes are what a scanner that was taken over would try. Each reports
// whether it was able to.
var probes = map[string]func() error{
	"open":   func() error { _, err := syscall.Open("/etc/passwd", syscall.O_RDONLY, 0); return err },
	"open /": func() error { _, err := syscall.Open("/", syscall.O_RDONLY, 0); return err },
	"create": func() error { _, err := syscall.Open("/tmp/x", syscall.O_CREAT|syscall.O_WRONLY, 0o600); return err },
	"socket": func() error { _, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); return err },
	"unix":   func() error { _, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); return err },
	"exec":   func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
	"fork": func() error {
		_, _, e := syscall.RawSyscall(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0)
		return errno(e)
	},
	"ptrace":  func() error { return syscall.PtraceAttach(1) },
	"kill":    func() error { return syscall.Kill(os.Getppid(), 0) },
	"mount":   func() error { return syscall.Mount("none", "/tmp", "tmpfs", 0, "") },
	"setuid":  func() error { return syscall.Setuid(0) },
	"unshare": func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"bpf":     func() error { _, _, e := syscall.RawSyscall(unix.SYS_BPF, 0, 0, 0); return errno(e) },
	"rename":  func() error { return syscall.Rename("/tmp/a", "/tmp/b") },
	"memory": func() error {
		_, _, e := syscall.RawSyscall6(syscall.SYS_MMAP, 0, 1<<30, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_ANON|syscall.MAP_PRIVATE, ^uintptr(0), 0)
		return errno(e)
	},
	"more time": func() error {
		return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: cpu + 1, Max: cpu + 1})
	},
	"inherited file":       func() error { _, err := unix.Read(inherited, make([]byte, 1)); return err },
	"another's signal":     func() error { pid := victim(); return unix.Tgkill(pid, pid, 0) },
	"a descriptor's owner": func() error { _, err := unix.FcntlInt(0, unix.F_SETOWN, victim()); return err },
	"time for ever": func() error {
		return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	},
}

// inherited is the number of a file that a probe's caller has opened.
const inherited = 12

// victim is a process of the probe's user.
func victim() int {
	pid, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	return pid
}

func errno(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func probe(name string) {
	r := lockdown(scanner.Hello{Require: scanner.Filtered})
	if name == "level" {
		fmt.Println("level", r.Lockdown, r.Steps)
		os.Stdout.Close()
		syscall.Exit(0)
	}
	if r.Lockdown < scanner.Filtered {
		fmt.Println("weak", r.Steps)
		syscall.Exit(0)
	}
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), 0); err != nil {
		fmt.Println("it may send itself no signal:", err)
		syscall.Exit(0)
	}
	if err := probes[name](); err != nil {
		fmt.Println("refused", err)
	} else {
		fmt.Println("ABLE")
	}
	syscall.Exit(0)
}

// public is a copy of this program that every user may run.
func public(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "lockdown")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	body, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := dir + "/probe"
	if err := errors.Join(os.WriteFile(path, body, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

func runProbe(t *testing.T, exe string, attr *syscall.SysProcAttr, name string) string {
	t.Helper()
	other := exec.Command("sleep", "1000")
	if os.Geteuid() == 0 {
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	file, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command(exe, "probe", name, strconv.Itoa(other.Process.Pid))
	cmd.SysProcAttr = attr
	cmd.ExtraFiles = slices.Repeat([]*os.File{file}, inherited-2)
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		return "killed " + err.Error()
	}
	return string(out)
}

func TestLockdownHolds(t *testing.T) {
	exe := public(t)
	if out := runProbe(t, exe, nil, "level"); !strings.Contains(out, "level filtered") {
		t.Skipf("this kernel does not let a scanner lock itself down: %s", out)
	}
	for name := range probes {
		t.Run(name, func(t *testing.T) {
			out := runProbe(t, exe, nil, name)
			if !strings.HasPrefix(out, "refused") && !strings.Contains(out, "killed") {
				t.Fatalf("%s: %s", name, out)
			}
			if os.Geteuid() != 0 {
				return
			}
			// As a plain user too.
			out = runProbe(t, exe, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, name)
			if !strings.HasPrefix(out, "refused") && !strings.Contains(out, "killed") {
				t.Fatalf("%s as a plain user: %s", name, out)
			}
		})
	}
}
