package manager_test

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
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

// A timeout and a cancel end all of them. How soon is bench/exec's to say.
func TestEndLeavesNoSurvivor(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	for name, script := range escapes {
		t.Run(name, func(t *testing.T) {
			b.ended(t, b.cancelAt(t, bash(script), "ready\n"), sandbox.ReasonCanceled)
			b.ended(t, b.sh(t, script, 600*time.Millisecond), sandbox.ReasonTimeout)
		})
	}
}

func TestEndOfNinetyBusyProcesses(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	// They begin together, once all of them are there.
	script := `rm -f gate; mkfifo gate; exec 9<>gate; for i in $(seq 90); do (read x <&9; while :; do :; done) & done
		for i in $(seq 90); do echo >&9; done; echo ready; wait`
	b.ended(t, b.cancelAt(t, bash(script), "ready\n"), sandbox.ReasonCanceled)
	b.ended(t, b.sh(t, script, 3*time.Second), sandbox.ReasonTimeout)
}

// Each forks without end, and each child may be the one that a look misses.
func TestEndOfForkingProcesses(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	script := `for i in $(seq 30); do (while :; do (setsid sleep 0.05 &) ; done) & done; echo ready; exec sleep 600`
	b.ended(t, b.cancelAt(t, bash(script), "ready\n"), sandbox.ReasonCanceled)
	b.ended(t, b.sh(t, script, 2*time.Second), sandbox.ReasonTimeout)
}

// With another exec in the sandbox, everything cannot be killed at once: the
// survivors are found by the mark that they carry.
func TestEndBesideAnotherExec(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	begun, other := make(chan struct{}, 2), make(chan sandbox.Result, 1)
	stdin, end := io.Pipe()
	go func() {
		w := &signalWriter{first: func() { begun <- struct{}{} }} // written to twice
		res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "echo begun; read x; echo untouched"}}, sandbox.Streams{Stdin: stdin, Stdout: w})
		if err != nil {
			t.Errorf("the other exec: %v", err)
		}
		other <- res
	}()
	await(t, begun)
	for name, script := range escapes {
		for _, res := range []sandbox.Result{b.cancelAt(t, bash(script), "ready\n"), b.sh(t, script, 400*time.Millisecond)} {
			if res.Reason != sandbox.ReasonTimeout && res.Reason != sandbox.ReasonCanceled {
				t.Errorf("%s: ended with %s, code %d", name, res.Reason, res.Code)
			}
			if left := b.kit.Processes(t, b.ID()); len(left) != 1 || !strings.Contains(left[0], " sh ") {
				t.Errorf("%s: beside the other exec's one process: %q", name, left)
			}
		}
	}
	_, _ = io.WriteString(end, "go on\n") // a pipe, which the exec's end would close
	_ = end.Close()
	if res := <-other; string(res.Stdout) != "begun\nuntouched\n" || res.Code != 0 {
		t.Errorf("the other exec ended with %s, code %d, stdout %q", res.Reason, res.Code, res.Stdout)
	}
	if b.usable(t).Replaced {
		t.Error("the sandbox was lost")
	}
}

// An exec that begins just as another one ends must not delay that one's
// answer: here it lasts until that is there.
func TestEndIsNotDelayedByTheNextExec(t *testing.T) {
	t.Parallel()
	rounds := 100
	if enginetest.Soaking() {
		rounds = 2000
	}
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{CPUs: 2}})
	usual := time.Duration(0)
	for range rounds {
		stdin, end := io.Pipe()
		next := make(chan error, 1)
		time.AfterFunc(time.Duration(rand.Int64N(int64(usual)+1)), func() {
			_, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"cat"}}, sandbox.Streams{Stdin: stdin})
			next <- err
		})
		late := time.AfterFunc(time.Minute, func() { _ = end.Close() })
		start := time.Now()
		// It leaves something to be killed, so that there is something to wait for.
		check(t, b.sh(t, "sleep 100 & exit 0", 0), sandbox.ReasonExited, 0)
		usual = time.Since(start)
		if !late.Stop() {
			t.Fatal("an answer came only when the next exec had ended")
		}
		_ = end.Close()
		if err := <-next; err != nil {
			t.Errorf("the next one: %v", err)
		}
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
	res := b.py(t, "import os\nfor n in range(300):\n    for s in range(1, 65):\n        try: os.kill(1, s)\n        except OSError: pass\n", time.Minute)
	check(t, res, sandbox.ReasonExited, 0)
	if b.usable(t).Replaced {
		t.Error("a storm of signals hurt the agent")
	}
}

func TestClosesAllDescriptors(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python"})
	res := b.py(t, "import os\nprint('x', flush=True)\nos.closerange(0, 4096)\nos._exit(5)\n", time.Minute)
	check(t, res, sandbox.ReasonExited, 5)
	if string(res.Stdout) != "x\n" {
		t.Errorf("stdout %q", res.Stdout)
	}
	b.usable(t)
	// Output ends when it is closed; the program goes on and is still followed.
	check(t, b.sh(t, "exec 1>&- 2>&-; sleep 0.7; exit 6", time.Minute), sandbox.ReasonExited, 6)
	b.usable(t)
}
