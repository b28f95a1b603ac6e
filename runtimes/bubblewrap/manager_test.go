//go:build linux

package bubblewrap_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// hostLanguages knows one language, and no image: the runtime has the host's.
type hostLanguages struct{}

func (hostLanguages) Language(string) (sandbox.Language, error) {
	return sandbox.Language{Name: "shell", Suffixes: []string{".sh"}, Image: "none", RunCode: []string{"bash", "{file}"}, RunFile: []string{"bash", "{file}"}}, nil
}

func (hostLanguages) Ensure(context.Context, string) (sandbox.Image, error) {
	return sandbox.Image{}, sandbox.Errorf(sandbox.Internal, "an engine was asked for an image")
}

func (hostLanguages) Forget(sandbox.Image) {}

func (p place) manager(t *testing.T, rt runtimes.Runtime) *manager.Manager {
	t.Helper()
	m, err := manager.New(manager.Config{
		Runtimes: runtimes.Only(bubblewrap.Name, rt), Images: hostLanguages{}, Gate: manager.Unjudged, Patience: enginetest.Patience,
		Holder: "suite", Alive: func(holder string) bool { return holder != "dead" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if left := p.left(t); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
	return m
}

// What is the host's cannot be seen, written or reached, and nothing can be gained.
func TestWalls(t *testing.T) {
	t.Parallel()
	both(t, walls)
}

// both runs a test as root and as an ordinary user.
func both(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Run("root", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		test(t)
	})
	t.Run("user", func(t *testing.T) {
		if enginetest.AsUser(t) {
			test(t)
		}
	})
}

// abstract listens at a socket that has a name and no file, as X11's and D-Bus's can,
// and returns the name.
func abstract(t *testing.T) string {
	t.Helper()
	name := "caisson-test-" + string(sandbox.NewID())
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return name
}

// python is a shell command that runs a line of Python, which ends with 0 only where
// it got through.
func python(line string) string { return "python3 -c '" + line + "'" }

func walls(t *testing.T) {
	p := newPlace(t)
	m := p.manager(t, p.runtime(t, "", p.agent))
	secret := filepath.Join(filepath.Dir(p.base), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	open, err := syscall.Open(secret, syscall.O_RDWR, 0) // which every program of this process gets
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(open)
	scripts := map[string]string{
		"files of the caller":  "readlink /proc/self/fd/* | grep secret",
		"the user's home":      "cat " + secretAtHome(t),
		"an abstract socket":   python("import socket; socket.socket(socket.AF_UNIX).connect(\"\\0" + abstract(t) + "\")"),
		"D-Bus":                "ls -A /run/ /var/run/ | grep -v -e caisson -e : -e ^$",
		"X11":                  "ls -A /tmp/ | grep .",
		"a terminal's input":   python("import fcntl, os; m, s = os.openpty(); fcntl.ioctl(s, 0x5412, b\"x\")"),
		"other processes":      "for e in /proc/[0-9]*/environ; do tr \"\\0\" \"\\n\" < $e 2>/dev/null; done | grep -e ^GO -e ^CAISSON -e ^TMPDIR",
		"processes outside":    "[ $(ls -d /proc/[0-9]* | wc -l) -gt 12 ]",
		"a trace of the first": python("import ctypes, sys; l = ctypes.CDLL(None, use_errno=True); sys.exit(l.ptrace(16, 1, 0, 0) != 0)"),
		"memory of the first":  ": < /proc/1/mem",
		"files of the first":   "ls /proc/1/fd/ | grep . || ls /proc/1/root/",
		"staged files":         "find /run/caisson -type f | while read f; do echo x > $f && echo written; done | grep written",
		"the staging place":    ": > /run/caisson/exec/new || mkdir /run/caisson/new",
		"a namespace of PIDs":  "unshare -p -f true || unshare -m true",
		"a socket of the host": python("import socket; s = socket.create_connection((\"127.0.0.1\", " + loopback(t) + "), 5)"),
		"passwords":            "cat /etc/shadow",
		"the home of root":     "ls /root",
		"files of the host":    "cat " + secret,
		"other sandboxes":      "ls " + p.base,
		"the engine's socket":  "ls /run/docker.sock || ls /var/run/docker.sock",
		"state of services":    "ls /var/lib",
		"settings of caisson":  "ls -A /run/caisson | grep -v '^exec$'",
		"the agent's socket":   "ls /run/caisson/private",
		"the root":             ": > /new",
		"programs":             ": > /usr/bin/new",
		"settings":             ": > /etc/new",
		"a copied setting":     "echo more >> /etc/os-release || chmod 666 /etc/os-release || rm /etc/os-release",
		"the kernel":           ": >> /proc/sys/kernel/core_pattern",
		"the agent's kernel":   "[ -w /proc/sys/kernel/core_pattern ]",
		"sysrq":                ": >> /proc/sysrq-trigger",
		"control groups":       "for f in /sys/fs/cgroup/*/tasks /sys/fs/cgroup/cgroup.procs; do [ -e $f ] && echo $$ > $f && exit 0; done; false",
		"a user namespace":     "unshare -U true",
		"a mount":              "mount -t tmpfs none /tmp",
		"a device":             "mknod /tmp/disk b 8 0",
		"an address":           "grep -v -e lo: -e '|' /proc/net/dev",
		"the agent":            "kill -9 1; kill 1; kill -SEGV 1; kill -STOP 1; exit 7", // it lives, else nobody hears the 7
		"its environment":      "cat /proc/1/environ",
		"variables":            "env | grep -q '^PWD=/tmp\\|^GO\\|^CAISSON'",
		"capabilities":         "grep -e '^CapPrm' -e '^CapEff' /proc/self/status | grep -q -v 0000000000000000",
		"privileges":           "grep -q 'NoNewPrivs:.0' /proc/self/status",
		"more system calls":    "grep -q 'Seccomp:.0' /proc/self/status",
	}
	if os.Geteuid() == 0 { // the agent is root there
		scripts["the agent's kernel"] = "! grep -q ' /proc/sys ro,' /proc/self/mountinfo"
	}
	if res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"sh", "-c", python("pass")}}, sandbox.Streams{}); err != nil || res.Code != 0 {
		t.Skipf("needs python3 in /usr/bin: %v, %s", err, res.Stderr)
	}
	for _, what := range []string{
		"files of the caller", "an abstract socket", "a socket of the host", "the user's home", "files of the host", "other sandboxes", "other processes", "processes outside", "D-Bus", "X11", "state of services", "an address",
	} { // they get through where there is no wall
		cmd := exec.Command("sh", "-c", scripts[what])
		cmd.Env = append(os.Environ(), "CAISSON_TEST=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("without a sandbox, %q: %v, %s", scripts[what], err, out)
		}
	}
	for what, script := range scripts {
		t.Run(what, func(t *testing.T) {
			res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"sh", "-c", script}}, sandbox.Streams{})
			if err != nil || res.Reason != sandbox.ReasonExited || res.Code == 0 {
				t.Errorf("%q: %v, %s, code %d, %s%s", script, err, res.Reason, res.Code, res.Stdout, res.Stderr)
			}
		})
	}
}

// secretAtHome is a file of this user's.
func secretAtHome(t *testing.T) string {
	t.Helper()
	dir, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(dir, ".caisson-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			t.Error(err)
		}
	})
	return f.Name()
}

// loopback listens on this host and returns the port.
func loopback(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	_, port, _ := net.SplitHostPort(ln.Addr().String()) // it is one of ours
	return port
}

// A program finds what it needs: a home, a place for files, names, time, and its
// text where it was staged.
func TestRoom(t *testing.T) {
	t.Parallel()
	both(t, room)
}

func room(t *testing.T) {
	p := newPlace(t)
	m := p.manager(t, p.runtime(t, "", p.agent))
	res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Code: "set -e\nwhoami\npwd\necho $HOME\ncd; : > a; : > /tmp/b; : > /workspace/c; : > /var/tmp/d; : > /dev/shm/e\n[ -c /dev/null ]\n[ -s /etc/os-release ]\nif grep ' /etc/os-release ' /proc/self/mountinfo; then exit 9; fi\nhostname || cat /etc/hostname\n"}, sandbox.Streams{})
	want := "sandbox\n/workspace\n" + sandbox.HomeDir + "\nsandbox\n"
	if err != nil || res.Code != 0 || string(res.Stdout) != want || res.Runtime != bubblewrap.Name {
		t.Errorf("%v, %+v\n%s%s", err, res.Exit, res.Stdout, res.Stderr)
	}
	_, err = m.Run(t.Context(), sandbox.Run{Image: "python:3", Command: []string{"true"}}, sandbox.Streams{})
	if sandbox.KindOf(err) != sandbox.Unsupported || !strings.Contains(sandbox.HintOf(err), "--image") {
		t.Errorf("with an image: %v", err)
	}
	_, err = m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"true"}, Network: sandbox.Network{Mode: sandbox.NetworkBridge}}, sandbox.Streams{})
	if sandbox.KindOf(err) != sandbox.Unsupported {
		t.Errorf("with a network: %v", err)
	}
}

// Limits hold, and the result names the one that was hit.
func TestLimits(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rt := p.runtime(t, "", p.agent)
	caps, err := rt.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if caps.Memory != runtimes.Enforced {
		t.Skip("this process may make no control groups")
	}
	m := p.manager(t, rt)
	for name, tt := range map[string]struct {
		script string
		want   sandbox.ExitReason
	}{
		"memory":    {"exec tail /dev/zero", sandbox.ReasonOOM},
		"processes": {"i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; exit 3", sandbox.ReasonPIDs},
		"disk":      {"exec head -c 100m /dev/zero > big", sandbox.ReasonDisk},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := m.Run(t.Context(), sandbox.Run{
				Language: "shell", Command: []string{"sh", "-c", tt.script}, Limits: sandbox.Limits{Memory: 128 * sandbox.MiB, Workspace: 16 * sandbox.MiB, PIDs: 30},
			}, sandbox.Streams{})
			if err != nil || res.Reason != tt.want {
				t.Errorf("%v, %+v\n%s", err, res.Exit, res.Stderr)
			}
		})
	}
}

// An ordinary user's processes are counted, without a control group too, and what
// is not enforced stands in the result.
func TestUsersLimits(t *testing.T) {
	t.Parallel()
	if !enginetest.AsUser(t) {
		return
	}
	p := newPlace(t)
	rt := p.runtime(t, "", p.agent)
	caps, err := rt.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if caps.Memory == runtimes.Enforced || caps.PIDs != runtimes.Enforced {
		t.Skipf("memory %q, processes %q: another machine's matter", caps.Memory, caps.PIDs)
	}
	m := p.manager(t, rt)
	run := func(script string) sandbox.Result {
		t.Helper()
		res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"sh", "-c", script}, Limits: sandbox.Limits{Memory: 256 * sandbox.MiB, PIDs: 30}}, sandbox.Streams{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := run("i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; exit 3")
	if res.Code == 3 || !strings.Contains(string(res.Stderr), "fork") {
		t.Errorf("200 processes: %+v\n%s", res.Exit, res.Stderr)
	}
	for _, what := range []string{"memory", "cpu", "users"} {
		if !slices.Contains(res.NotEnforced, what) {
			t.Errorf("not enforced, by the result: %q", res.NotEnforced)
		}
	}
	if res := run("exec tail /dev/zero"); res.Code == 0 || res.Reason != sandbox.ReasonExited {
		t.Errorf("a process larger than its limit: %+v\n%s", res.Exit, res.Stderr)
	}
}

// What a dead process left is swept, with its processes and control group, and
// what was kept on purpose only where that is asked for.
func TestSweep(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rt := p.runtime(t, "", p.agent)
	m := p.manager(t, rt)
	s := spec(sandbox.WorkspaceVolume)
	s.Holder, s.Session = "dead", ""
	plan, err := rt.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := rt.Create(t.Context(), sandbox.NewID(), plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inst.Destroy(context.WithoutCancel(t.Context())) })
	id := inst.Handle().ID
	for _, dry := range []bool{true, false} {
		swept, err := m.Sweep(t.Context(), dry, false)
		if err != nil || len(swept) != 1 || swept[0].ID != id || swept[0].Removed == dry || swept[0].Problem != nil {
			t.Fatalf("dry %v: %v, %+v", dry, err, swept)
		}
	}
	if _, err := inst.Dial(t.Context()); err == nil {
		t.Error("its agent still answers")
	}
	if groups, _ := filepath.Glob("/sys/fs/cgroup/*/caisson/" + string(id)); len(groups) > 0 {
		t.Errorf("left behind: %q", groups)
	}
	// A folder whose maker died before it could write down whose it is.
	nameless := filepath.Join(p.base, string(sandbox.NewID())+".bw")
	if err := os.Mkdir(nameless, 0o700); err != nil {
		t.Fatal(err)
	}
	handles, err := rt.List(t.Context())
	if err != nil || len(handles) != 1 || handles[0].Kind != runtimes.KindFolder {
		t.Fatalf("%v, %+v", err, handles)
	}
	found, err := rt.Attach(t.Context(), handles[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

// The second layer is around what runs here too, and off where that is asked for. A
// device without a driver, which needs no privilege, tells of Landlock, and a program
// that reads its own memory by a call of the filter.
func TestHardening(t *testing.T) { both(t, hardened) }

func hardened(t *testing.T) {
	const script = `
import ctypes, os, stat
try:
    os.mknod("device", stat.S_IFCHR, os.makedev(0, 0))
    print("device")
except PermissionError:
    print("no device")
libc = ctypes.CDLL(None, use_errno=True)
to, at = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b"memory")
vec = lambda b: (ctypes.c_size_t * 2)(ctypes.addressof(b), 6)
print(libc.process_vm_readv(os.getpid(), vec(to), 1, vec(at), 1, 0))
assert libc.mq_open(b"/queue", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0, os.strerror(ctypes.get_errno())
os.makedirs("a/b")
os.rename("a/b", "b")
for place in "/tmp", "/home/sandbox", "/dev/shm":
    open(place + "/f", "w").close()
open("/dev/null", "w").close()
`
	p := newPlace(t)
	m := p.manager(t, p.runtime(t, "", p.agent))
	for hardening, want := range map[sandbox.Hardening]string{sandbox.HardeningOff: "device\n6\n", sandbox.HardeningStrict: "no device\n-1\n", "": "no device\n-1\n"} {
		res, err := m.Run(t.Context(), sandbox.Run{Language: "python", Command: []string{"python3", "-c", script}, Limits: sandbox.Limits{Hardening: hardening}}, sandbox.Streams{})
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Stdout) != want || res.Code != 0 {
			t.Errorf("hardening %q: %q, want %q\n%s", hardening, res.Stdout, want, res.Stderr)
		}
		if off := slices.Contains(res.NotEnforced, runtimes.Hardening); off != (hardening == sandbox.HardeningOff) {
			t.Errorf("hardening %q: not enforced, by the result: %q", hardening, res.NotEnforced)
		}
	}
}
