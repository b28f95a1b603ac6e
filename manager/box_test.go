package manager_test

import (
	"context"
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
	return b.run(t, sandbox.Run{Command: []string{"bash", "-c", script}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(timeout)}})
}

// bash is a run of a script that has more time than it needs.
func bash(script string) sandbox.Run {
	return sandbox.Run{Command: []string{"bash", "-c", script}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}}
}

// cancelAt runs a program and cancels it once its output has the given words.
func (b *box) cancelAt(t testing.TB, run sandbox.Run, words string) sandbox.Result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &wordWriter{words: words, then: cancel}
	res, err := b.Exec(ctx, run, sandbox.Streams{Stdout: w, Stderr: w})
	if err != nil {
		t.Fatalf("exec: %v", err)
	}
	if !strings.Contains(w.all.String(), words) {
		t.Fatalf("ended with %s (%s), code %d before it said %q: %.300q", res.Reason, res.Cause, res.Code, words, w.all.String())
	}
	return res
}

// noRoom is what shells say where the limit of processes is hit.
const noRoom = "Resource temporarily unavailable"

// py runs a Python program.
func (b *box) py(t testing.TB, code string, timeout time.Duration) sandbox.Result {
	t.Helper()
	return b.run(t, sandbox.Run{Code: code, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(timeout)}})
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
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		processes = b.kit.Processes(t, b.ID())
		list, err := b.Client().List(t.Context())
		if err != nil {
			t.Fatalf("list execs: %v", err)
		}
		execs = nil
		for _, e := range list {
			execs = append(execs, e.ID.Short()+" "+strings.Join(e.Argv, " "))
		}
		sample, err := b.Sample(t.Context())
		if err != nil {
			t.Fatalf("sample: %v", err)
		}
		zombies = sample.Zombies
		if len(processes)+len(execs)+zombies == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
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

// ended checks that a program was ended, and with it all that it had started,
// by the time of the answer.
func (b *box) ended(t testing.TB, res sandbox.Result, reason sandbox.ExitReason) {
	t.Helper()
	check(t, res, reason, map[sandbox.ExitReason]int{sandbox.ReasonTimeout: 124, sandbox.ReasonCanceled: 130}[reason])
	if left := b.kit.Processes(t, b.ID()); len(left) > 0 {
		t.Errorf("survivors, seen from outside: %q", left)
	}
	if b.usable(t).Replaced {
		t.Errorf("to end it cost the sandbox: %s", res.Cause)
	}
}

// wordWriter calls a function once what it was given has the words, and keeps
// all of it. It is written to from one goroutine, as [sandbox.Streams] says.
type wordWriter struct {
	words string
	then  func()
	all   strings.Builder
}

func (w *wordWriter) Write(p []byte) (int, error) {
	said := strings.Contains(w.all.String(), w.words)
	w.all.Write(p)
	if !said && strings.Contains(w.all.String(), w.words) {
		w.then()
	}
	return len(p), nil
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
