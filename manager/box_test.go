package manager_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// box is one open sandbox of a test's own, on a real engine.
type box struct {
	*manager.Sandbox
	kit *enginetest.Kit
}

// openBox opens a sandbox. It is destroyed at the test's end, and the kit then
// checks that nothing is left.
func openBox(t testing.TB, opts manager.OpenOptions) *box {
	t.Helper()
	kit := enginetest.New(t)
	if opts.Language == "" {
		opts.Language = "shell"
	}
	kit.Image(t, opts.Language)
	s, err := kit.Manager(t).Open(t.Context(), opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return &box{s, kit}
}

func (b *box) run(t testing.TB, run sandbox.Run) sandbox.Result {
	t.Helper()
	res, err := b.Exec(t.Context(), run, sandbox.Streams{})
	if err != nil {
		t.Fatalf("exec: %v", err)
	}
	return res
}

// sh runs a script in bash.
func (b *box) sh(t testing.TB, script string, timeout time.Duration) sandbox.Result {
	t.Helper()
	return b.run(t, sandbox.Run{Command: []string{"bash", "-c", script}, Timeout: timeout})
}

// crowd runs a script in bash that hits the limit of processes, and gives it
// more time where a busy machine does not let it get as far at once. A sandbox
// that had to be given up cannot say what was hit.
func (b *box) crowd(t testing.TB, script string) sandbox.Result {
	t.Helper()
	timeout := 1500 * time.Millisecond
	for tries := 1; ; tries++ {
		res := b.sh(t, script, timeout)
		gone := b.State() == sandbox.StateFailed
		if contains(res.Events, "pids") || timeout > 20*time.Second && !gone || tries == 10 {
			return res
		}
		if gone {
			b.usable(t)
		} else {
			timeout *= 4
		}
	}
}

// py runs a Python program.
func (b *box) py(t testing.TB, code string, timeout time.Duration) sandbox.Result {
	t.Helper()
	return b.run(t, sandbox.Run{Code: code, Timeout: timeout})
}

// usable checks what must hold after whatever happened: the sandbox runs the
// next program, or was replaced and says so; nobody else runs in it, seen from
// outside; it has no zombies; its agent has forgotten what is over.
func (b *box) usable(t testing.TB) sandbox.Result {
	t.Helper()
	broke := b.State() == sandbox.StateFailed
	res := b.run(t, sandbox.Run{Command: []string{"echo", "ok"}})
	if res.Code != 0 || res.Reason != sandbox.ReasonExited || string(res.Stdout) != "ok\n" {
		t.Errorf("afterwards the sandbox is not usable: code %d, reason %s (%s), stdout %q, stderr %q",
			res.Code, res.Reason, res.Cause, res.Stdout, res.Stderr)
	}
	if res.Replaced != broke {
		t.Errorf("the sandbox had broken: %v; the next result says replaced: %v", broke, res.Replaced)
	}
	b.quiet(t)
	return res
}

// quiet checks that nothing of any exec is left. What is to be forgotten goes
// with the client's last word, which nobody waits for: hence the patience.
func (b *box) quiet(t testing.TB) {
	t.Helper()
	var processes, execs []string
	zombies := 0
	for range 100 {
		processes = b.kit.Processes(t, b.ID())
		list, err := b.Client().List(t.Context())
		if err != nil {
			t.Fatalf("list execs: %v", err)
		}
		execs = nil
		for _, e := range list {
			execs = append(execs, e.ID.Short()+" "+strings.Join(e.Argv, " "))
		}
		stats, err := b.Stats(t.Context())
		if err != nil {
			t.Fatalf("stats: %v", err)
		}
		zombies = stats.Zombies
		if len(processes)+len(execs)+zombies == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("left in the sandbox: processes %q, execs %q, %d zombies", processes, execs, zombies)
}

// check compares the end of a program with what must come of it.
func check(t testing.TB, res sandbox.Result, reason sandbox.ExitReason, code int) {
	t.Helper()
	if res.Reason != reason || res.Code != code {
		t.Errorf("ended with reason %s and code %d (%s), not with %s and %d; stdout %.300q, stderr %.300q",
			res.Reason, res.Code, res.Cause, reason, code, res.Stdout, res.Stderr)
	}
}

// grace is what an answer may take beyond its program's timeout.
const grace = 250 * time.Millisecond

// timely runs a program that does not end by itself until its timeout, and
// checks that the answer is there within [grace] of it, that nothing survived,
// and that the sandbox did not have to be given up, unless givenUp allows that:
// then what was in it has to be gone soon after.
//
// The bar is the product's and is not lowered here. The machine may be shared
// with other test programs, whose load can delay any single answer; so several
// are taken, until most of five agree. One that is late does not count where this
// process was kept from a processor for [mostHeld] after the timeout; where that
// goes on, nothing can be said of the time. Survivors are counted after each.
func (b *box) timely(t *testing.T, run sandbox.Run, givenUp bool, ready func(sandbox.Result) error) {
	t.Helper()
	const most = 3 // of five
	var over []time.Duration
	given, good, bad, void := 0, 0, 0, 0
	for good < most && bad < most && void < 10 {
		id, start, held := b.ID(), time.Now(), watchHeld(run.Timeout)
		res, err := b.Exec(t.Context(), run, sandbox.Streams{})
		late, hold := time.Since(start)-run.Timeout, held()
		switch {
		case err != nil:
			t.Fatalf("exec: %v", err)
		case res.Reason != sandbox.ReasonTimeout:
			t.Fatalf("ended with reason %s, code %d (%s), not by timeout; stderr %.300q", res.Reason, res.Code, res.Cause, res.Stderr)
		}
		failed := b.State() == sandbox.StateFailed
		if failed {
			given++
		}
		b.emptied(t, id, failed)
		b.usable(t)
		if ready != nil && !failed { // one that was given up names no use
			if err := ready(res); err != nil {
				if run.Timeout *= 2; run.Timeout > time.Minute {
					t.Fatal(err)
				}
				t.Logf("it had not got so far: %v", err)
				continue
			}
		}
		over = append(over, late)
		switch {
		case late <= grace && (givenUp || !failed):
			good++
		case hold >= mostHeld:
			t.Logf("answered %v after the timeout; this process had waited %v for a processor", late, hold)
			void++
		default:
			bad++
		}
	}
	slices.Sort(over)
	t.Logf("answers came %v after the timeout; %d of %d sandboxes were given up", over, given, len(over))
	switch {
	case bad == most:
		t.Errorf("most answers came over %v after the timeout, or cost the sandbox: %v, %d given up", grace, over, given)
	case good < most:
		t.Skip("the machine is too busy to say how long an answer takes")
	}
}

// emptied checks that a sandbox has no process left: at once, or soon where it
// was given up, since its container is being removed then, with all that is in
// it. The engine alone gives a kill ten seconds and may be asked for it again.
func (b *box) emptied(t *testing.T, id sandbox.ID, failed bool) {
	t.Helper()
	deadline := time.Now()
	if failed {
		deadline = deadline.Add(30 * time.Second)
	}
	for left := b.kit.Processes(t, id); len(left) > 0; left = b.kit.Processes(t, id) {
		if time.Now().After(deadline) {
			t.Fatalf("survivors, seen from outside: %q", left)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// mostHeld is how long this process may have to wait for a processor: what is
// left of [grace] where the client answers for an agent that has not.
const mostHeld = 40 * time.Millisecond

// watchHeld watches how long this process waits for a processor at most, from
// the given time on until stop is called.
func watchHeld(after time.Duration) (stop func() time.Duration) {
	done, most := make(chan struct{}), make(chan time.Duration, 1)
	begun := time.Now()
	go func() {
		var worst time.Duration
		for wait := after; ; wait = 5 * time.Millisecond {
			select {
			case <-done:
				most <- max(worst, time.Since(begun)-wait)
				return
			case <-time.After(wait):
				worst = max(worst, time.Since(begun)-wait)
			}
			begun = time.Now()
		}
	}()
	return func() time.Duration {
		close(done)
		return <-most
	}
}

// slowWriter takes its time for every write, and counts.
type slowWriter struct {
	pause time.Duration
	n     int64
	bad   func(offset int64, p []byte) string
	fault string
}

func (w *slowWriter) Write(p []byte) (int, error) {
	if w.bad != nil && w.fault == "" {
		w.fault = w.bad(w.n, p)
	}
	w.n += int64(len(p))
	time.Sleep(w.pause)
	return len(p), nil
}
