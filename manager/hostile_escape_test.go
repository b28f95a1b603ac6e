package manager_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// Programs that try to outlive their timeout. Each prints "ready" once its
// trick is done.
var escapes = map[string]string{
	"setsid":         `setsid sleep 300 & echo ready; sleep 300`,
	"nohup":          `nohup sleep 300 >/dev/null 2>&1 & echo ready; sleep 300`,
	"double fork":    `( ( sleep 300 & ) & ); (setsid sh -c '(sleep 300 &) &' &); sleep 0.2; echo ready; sleep 300`,
	"ignore SIGTERM": `trap '' TERM INT HUP QUIT USR1 USR2; echo ready; while :; do sleep 1; done`,
	"stops itself":   `echo ready; kill -STOP $$; sleep 300`,
	"stopped child":  `sleep 300 & kill -STOP $!; echo ready; sleep 300`,
	"closes all":     `echo ready; exec sleep 300 0<&- 1>&- 2>&-`,
}

func TestTimeoutLeavesNoSurvivor(t *testing.T) {
	b := openBox(t, manager.OpenOptions{})
	for name, script := range escapes {
		t.Run(name, func(t *testing.T) {
			run := sandbox.Run{Command: []string{"bash", "-c", script}, Timeout: 600 * time.Millisecond}
			b.timely(t, run, false, func(res sandbox.Result) error {
				if string(res.Stdout) != "ready\n" {
					return fmt.Errorf("stdout %q, stderr %q", res.Stdout, res.Stderr)
				}
				return nil
			})
		})
	}
}

// To end ninety busy processes takes some 40 to 110 ms of processor time, which
// half a processor has only in twice that, and the agent waits in the same queue.
// So the client may have to answer for it, and give up the sandbox.
func TestTimeoutOfNinetyBusyProcesses(t *testing.T) {
	b := openBox(t, manager.OpenOptions{})
	// They begin together, once all of them are there.
	script := `mkfifo gate; for i in $(seq 90); do (read -t 1.5 x <>gate; while :; do :; done) & done; wait`
	b.timely(t, sandbox.Run{Command: []string{"bash", "-c", script}, Timeout: 3 * time.Second}, true, func(res sandbox.Result) error {
		if res.Usage.PeakProcesses < 85 {
			return fmt.Errorf("only %d processes were busy", res.Usage.PeakProcesses)
		}
		return nil
	})
}

func TestTimeoutOfForkingProcesses(t *testing.T) {
	b := openBox(t, manager.OpenOptions{})
	// Each forks without end, and each child may be the one that a look misses.
	script := `for i in $(seq 30); do (while :; do (setsid sleep 0.05 &) ; done) & done; echo ready; wait`
	b.timely(t, sandbox.Run{Command: []string{"bash", "-c", script}, Timeout: 2 * time.Second}, false, nil)
}

// With another exec in the sandbox, everything cannot be killed at once: the
// survivors are found by the mark that they carry.
func TestTimeoutBesideAnotherExec(t *testing.T) {
	b := openBox(t, manager.OpenOptions{})
	other := make(chan sandbox.Result, 1)
	go func() {
		res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "sleep 6; echo untouched"}}, sandbox.Streams{})
		if err != nil {
			t.Errorf("the other exec: %v", err)
		}
		other <- res
	}()
	time.Sleep(200 * time.Millisecond)
	for name, script := range escapes {
		start := time.Now()
		res := b.sh(t, script, 400*time.Millisecond)
		if res.Reason != sandbox.ReasonTimeout {
			t.Errorf("%s: ended with %s, code %d", name, res.Reason, res.Code)
		}
		t.Logf("%s: answered %v after the timeout", name, time.Since(start)-400*time.Millisecond)
		if b.State() == sandbox.StateFailed {
			t.Skipf("%s: the machine is too busy: the sandbox was given up, and the other exec goes with it", name)
		}
		for _, p := range b.kit.Processes(t, b.ID()) {
			if !strings.Contains(p, " sh ") && !strings.Contains(p, "sleep") {
				t.Errorf("%s: survivor %s", name, p)
			}
		}
		if n := len(b.kit.Processes(t, b.ID())); n > 2 {
			t.Errorf("%s: %d processes are there besides the other exec's two: %q", name, n-2, b.kit.Processes(t, b.ID()))
		}
	}
	if res := <-other; string(res.Stdout) != "untouched\n" || res.Code != 0 {
		t.Errorf("the other exec ended with %s, code %d, stdout %q", res.Reason, res.Code, res.Stdout)
	}
	b.usable(t)
}

// An exec that begins just as another one ends must not delay that one's
// answer.
func TestEndIsNotDelayedByTheNextExec(t *testing.T) {
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{CPUs: 2}})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"sleep", "0.4"}}, sandbox.Streams{}); err != nil {
				t.Errorf("the long one: %v", err)
				return
			}
		}
	}()
	slow := 0
	for range 300 {
		start := time.Now()
		// It leaves something to be killed, so that there is something to wait for.
		check(t, b.sh(t, "sleep 100 & exit 0", 0), sandbox.ReasonExited, 0)
		if time.Since(start) > 300*time.Millisecond {
			slow++
		}
	}
	close(stop)
	<-done
	if slow > 15 { // the neighbours' load delays a few; the fault delays by the other's whole life
		t.Errorf("%d of 300 short execs took over 300ms beside one of 400ms", slow)
	}
	b.usable(t)
}

func TestKillEverybody(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python"})
	for name, script := range map[string]string{
		"kill -9 -1":   `kill -9 -1; sleep 1`,
		"kill -TERM 1": `kill -TERM 1; kill -9 1; kill -STOP 1; kill -SEGV 1; exit 7`,
		"kill group 0": `kill -9 0; sleep 1`,
	} {
		res := b.sh(t, script, 3*time.Second)
		if res.Reason != sandbox.ReasonSignal && res.Reason != sandbox.ReasonExited && res.Reason != sandbox.ReasonTimeout {
			t.Errorf("%s: ended with %s (%s)", name, res.Reason, res.Cause)
		}
		if replaced := b.usable(t).Replaced; replaced {
			t.Errorf("%s: the agent was hurt", name)
		}
	}
	// Every signal there is, to the agent, in a storm.
	res := b.py(t, "import os\nfor n in range(300):\n    for s in range(1, 65):\n        try: os.kill(1, s)\n        except OSError: pass\n", 10*time.Second)
	check(t, res, sandbox.ReasonExited, 0)
	if b.usable(t).Replaced {
		t.Error("a storm of signals hurt the agent")
	}
}

func TestClosesAllDescriptors(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python"})
	res := b.py(t, "import os\nprint('x', flush=True)\nos.closerange(0, 4096)\nos._exit(5)\n", 10*time.Second)
	check(t, res, sandbox.ReasonExited, 5)
	if string(res.Stdout) != "x\n" {
		t.Errorf("stdout %q", res.Stdout)
	}
	b.usable(t)
	// Output ends when it is closed; the program goes on and is still followed.
	start := time.Now()
	check(t, b.sh(t, "exec 1>&- 2>&-; sleep 0.7; exit 6", 10*time.Second), sandbox.ReasonExited, 6)
	if time.Since(start) < 700*time.Millisecond {
		t.Error("the exec ended with its output and not with its process")
	}
	b.usable(t)
}
