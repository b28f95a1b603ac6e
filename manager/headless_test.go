package manager_test

import (
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// headless forks a child whose main thread ends and whose other thread waits for
// the file go, and then writes late. The program itself ends at once.
const headless = `
import ctypes, os, threading, time
if os.fork() == 0:
    for fd in (0, 1, 2):
        os.close(fd)
    def wait():
        while not os.path.exists("/workspace/go"):
            time.sleep(0.01)
        open("/workspace/late", "w").write("x")
        time.sleep(600)
    threading.Thread(target=wait).start()
    open("/workspace/begun", "w")
    ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # exit
while not os.path.exists("/workspace/begun"):
    time.sleep(0.01)
time.sleep(0.1)
`

// TestHeadless leaves a process behind whose main thread has ended. It counts as
// running: in the list, in whose a change is, and for a kill.
func TestHeadless(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	e, err := p.StartIn(t.Context(), "work", sandbox.Run{Code: headless}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the program ends", func() bool {
		list, err := p.Processes(t.Context(), "work")
		return err == nil && len(list) == 1 && !list[0].Running
	})
	list, err := p.Processes(t.Context(), "work")
	if err != nil || list[0].Processes != 1 {
		t.Errorf("%d processes of it run, %v", list[0].Processes, err)
	}
	res, err := p.ExecIn(t.Context(), "work", sandbox.Run{ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(time.Minute)},
		Code: "import os, time\nopen('go', 'w')\nwhile not os.path.exists('late'): time.sleep(0.01)\n"}, sandbox.Streams{})
	if err != nil || res.Code != 0 {
		t.Fatalf("%+v, %v", res.Exit, err)
	}
	for _, c := range res.Changes {
		if c.Path == "late" && c.By == sandbox.ByOwn {
			t.Error("what the process did is booked to the exec beside it")
		}
	}
	if err := p.KillExec(t.Context(), "work", e.ID); err != nil {
		t.Error(err)
	}
	if left := p.kit.Processes(t, e.Sandbox); len(left) > 0 {
		t.Errorf("after a kill: %q", left)
	}
}
