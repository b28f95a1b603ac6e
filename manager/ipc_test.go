package manager_test

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// leaveIPC makes one of each: shared memory of 8 MiB, a semaphore, a message
// queue, and one of POSIX.
const leaveIPC = `
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
assert c.shmget(0, 8 << 20, 0o1600) >= 0 and c.semget(0, 1, 0o1600) >= 0 and c.msgget(0, 0o1600) >= 0
assert c.mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0
`

// lookIPC prints what there is: one line each.
const lookIPC = "tail -qn +2 /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg; ls /dev/mqueue"

// TestIPCGoes leaves shared memory and its like behind. It goes with its exec,
// of whichever user, unless something runs that may use it.
func TestIPCGoes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	exec := func(run sandbox.Run) string {
		t.Helper()
		res, err := p.ExecIn(t.Context(), "work", run, sandbox.Streams{})
		if err != nil || res.Code != 0 {
			t.Fatalf("%+v, %v, %s", res.Exit, err, res.Stderr)
		}
		return string(res.Stdout)
	}
	look := sandbox.Run{Command: []string{"sh", "-c", lookIPC}}
	for _, role := range []sandbox.Role{sandbox.RoleUser, sandbox.RoleRunner} {
		if got := exec(sandbox.Run{Code: leaveIPC + "os.system('" + lookIPC + "')", Role: role}); strings.Count(got, "\n") != 4 {
			t.Fatalf("what %s has made: %q", role, got)
		}
		if got := exec(look); got != "" {
			t.Errorf("after an exec of %s: %q", role, got)
		}
	}
	// A server that outlives its exec keeps what it may use.
	pid := exec(sandbox.Run{Code: leaveIPC + "import subprocess\n" +
		"print(subprocess.Popen(['sleep', '1000'], stdin=-3, stdout=-3, stderr=-3).pid)\n"})
	if got := exec(look); strings.Count(got, "\n") != 4 {
		t.Errorf("beside a process that may use them: %q", got)
	}
	exec(sandbox.Run{Command: []string{"sh", "-c", "kill " + pid}})
	until(t, "all of it is gone", func() bool { return exec(look) == "" })
}
