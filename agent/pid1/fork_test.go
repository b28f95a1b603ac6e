//go:build linux

package pid1

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/harden"
)

// forked runs a program in a cage, as nobody, and returns what it said.
func (c *cage) forked(t *testing.T, dir, binary string, argv ...string) (string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const nobody = 65534
	pid, err := c.forkExec(binary, argv, &syscall.ProcAttr{
		Dir: dir, Env: []string{"GREETING=hello"}, Files: []uintptr{r.Fd(), w.Fd(), w.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{60000}}},
	})
	_ = w.Close()
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	if _, err := io.Copy(&said, r); err != nil {
		t.Error(err)
	}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil || ws.ExitStatus() != 0 {
		t.Errorf("%v: %v, %#x", argv, err, ws)
	}
	return said.String(), nil
}

// A process is born as it is to be, also where many are at once, and an error of the
// child's is the caller's.
func TestFork(t *testing.T) {
	if err := harden.Works(); err != nil || os.Geteuid() != 0 {
		t.Skip("it needs root, and Landlock: ", err)
	}
	ruleset, err := harden.Ruleset([]string{t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(ruleset) })
	c := &cage{ruleset: ruleset, files: unix.Rlimit{Cur: 33, Max: 44}}
	errs := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // which has no privileges to gain from then on, and ends
		errs <- unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		for range 50 {
			said, err := c.forked(t, "/usr", "/bin/sh", "sh", "-c", `echo $GREETING $PWD $(id -u; id -g; id -G) $(ulimit -n; ulimit -Hn); cut -d' ' -f6 /proc/$$/stat | grep -cx $$`)
			if want := "hello /usr 65534 65534 65534 60000 33 44\n1\n"; err != nil || said != want {
				t.Errorf("%v, %q, want %q", err, said, want)
			}
		}
		for want, try := range map[error][2]string{unix.ENOENT: {"/", "/nonexistent"}, unix.EACCES: {"/", "/etc/passwd"}, unix.ENOTDIR: {"/etc/passwd", "/bin/true"}} {
			if _, err := c.forked(t, try[0], try[1], "x"); !errors.Is(err, want) {
				t.Errorf("%v: %v, want %v", try, err, want)
			}
		}
		if _, err := c.forked(t, "/", "/bin/true", "a\x00b"); !errors.Is(err, unix.EINVAL) {
			t.Errorf("a text with a zero in it: %v", err)
		}
		close(errs)
	}()
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}
