package manager_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestFewOpenFiles gives programs hardly any files to open. The agent, which has
// its own, serves many at once.
func TestFewOpenFiles(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{OpenFiles: 16}})
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "read x; ulimit -n"}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(time.Minute)}},
				sandbox.Streams{Stdin: strings.NewReader("x\n")})
			if err != nil || string(res.Stdout) != "16\n" {
				t.Errorf("%q, %q, %+v, %v", res.Stdout, res.Stderr, res.Exit, err)
			}
		})
	}
	all.Wait()
	res := b.sh(t, "for i in $(seq 3 40); do eval \"exec $i< /dev/null\"; done", 0)
	if res.Code == 0 {
		t.Error("a program opened more than it may")
	}
	b.usable(t)
}

// stuckWriter takes nothing until it is released.
type stuckWriter struct{ release chan struct{} }

func (w stuckWriter) Write(p []byte) (int, error) { <-w.release; return len(p), nil }

// TestKillWithStuckReader ends an exec whose output nobody takes.
func TestKillWithStuckReader(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	w, ended := stuckWriter{make(chan struct{})}, make(chan sandbox.Result, 1)
	go func() {
		res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"yes"}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}}, sandbox.Streams{Stdout: w})
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	var id sandbox.ID
	until(t, "the agent has no room for more of its output", func() bool {
		list, err := b.Client().List(t.Context())
		if err != nil || len(list) == 0 {
			return false
		}
		id = list[0].ID
		return list[0].Stdout >= 512<<10
	})
	killed := make(chan error, 1)
	go func() { killed <- b.Client().Kill(t.Context(), id, "") }()
	select {
	case err := <-killed:
		if err != nil {
			t.Error(err)
		}
		if left := b.kit.Processes(t, b.ID()); len(left) > 0 {
			t.Errorf("after the kill: %q", left)
		}
	case <-time.After(time.Minute):
		t.Error("a kill waits for a reader")
	}
	close(w.release)
	if res := <-ended; res.Reason != sandbox.ReasonCanceled {
		t.Errorf("it ended with %s (%s)", res.Reason, res.Cause)
	}
	b.usable(t)
}
