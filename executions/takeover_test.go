package executions_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/executions"
	"github.com/caisson-dev/caisson/sandbox"
)

// One process serves a state folder; a second one is told so, and can when the
// first has ended.
func TestOneServer(t *testing.T) {
	t.Parallel()
	p := serving(t, &fake{run: echo}, nil)
	other := open(t, p.dir, &fake{run: echo}, nil)
	if err := other.Start(t.Context(), other.runner); !errors.Is(err, sandbox.Conflict) || sandbox.HintOf(err) == "" {
		t.Errorf("a second one: %v", err)
	}
	// It can submit all the same.
	id := other.submit(t, "", code("from elsewhere"))
	if e, err := other.Execution(t.Context(), id, sandbox.Duration(time.Minute)); err != nil || e.State != sandbox.ExecutionSucceeded || e.Waits != "" {
		t.Errorf("%+v, %v", e, err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	other.start(t)
}

// A server that ends waits for what runs as long as it may; what is left is lost,
// and told, and what is queued waits for the next.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	hears := listen(t)
	f := &fake{run: held(nil)}
	p := serving(t, f, func(c *executions.Config) { c.Workers = 1 })
	runs := p.submit(t, "", calling("runs", hears.URL))
	until(t, "running", func() bool { return p.state(t, runs) == sandbox.ExecutionRunning })
	queued := p.submit(t, "", code("queued"))
	p.close(t)
	later := open(t, p.dir, &fake{run: echo}, nil)
	later.start(t)
	if e := later.ended(t, runs); e.State != sandbox.ExecutionLost || e.Exit.Reason != sandbox.ReasonInfra || !strings.Contains(e.Exit.Cause, "stopped") || e.Result.Code != 125 {
		t.Errorf("%+v", e)
	}
	later.callback(t, runs, sandbox.CallbackDelivered)
	if e := later.ended(t, queued); e.State != sandbox.ExecutionSucceeded {
		t.Errorf("%+v", e)
	}
}

// dead leaves a state as a server does that was killed: with an execution that it
// had written down as running, and perhaps more.
func dead(t *testing.T, p *place, id sandbox.ID, events ...sandbox.Event) {
	t.Helper()
	e, err := p.store.Execution(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	e.State, e.Started = sandbox.ExecutionRunning, time.Now().UTC()
	move := &sandbox.ExecutionMove{From: []sandbox.ExecutionState{sandbox.ExecutionQueued}, To: e}
	for i := range events {
		events[i].Data = []byte(strings.ReplaceAll(string(events[i].Data), "ID", string(id)))
	}
	if err := p.store.Apply(t.Context(), sandbox.Transaction{MoveExecution: move, Events: events}); err != nil {
		t.Fatal(err)
	}
}

// After a server's death what had not begun is queued again, with its input and all,
// and what had is lost; nothing runs twice.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir(), &fake{run: echo}, nil)
	fresh, began, over := p.submit(t, "", code("fresh")), p.submit(t, "", code("began")), p.submit(t, "", code("over"))
	started := sandbox.Event{Kind: sandbox.EventExecStarted, Data: []byte(`{"labels":{"caisson/execution":"ID"}}`)}
	ended := sandbox.Event{Kind: sandbox.EventExecEnded, Data: []byte(`{"labels":{"caisson/execution":"ID"},"exit_reason":"exited","exit_code":3}`)}
	dead(t, p, fresh)
	dead(t, p, began, started)
	dead(t, p, over, started, ended)
	p.start(t)
	if e := p.ended(t, fresh); e.State != sandbox.ExecutionSucceeded || string(e.Result.Stdout) != "fresh" {
		t.Errorf("what had not begun: %+v", e)
	}
	if e := p.ended(t, began); e.State != sandbox.ExecutionLost || e.Exit.Code != 125 || e.Result.Reason != sandbox.ReasonInfra {
		t.Errorf("what had begun: %+v", e)
	}
	if e := p.ended(t, over); e.State != sandbox.ExecutionLost || !strings.Contains(e.Exit.Cause, "exit code 3") {
		t.Errorf("what had ended: %+v", e)
	}
	if len(p.runner.begun) != 1 {
		t.Errorf("begun: %v", p.runner.begun)
	}
}

// What runs in a session goes on without its server, and its output goes on from
// where it was read.
func TestSessionGoesOn(t *testing.T) {
	t.Parallel()
	f := &fake{}
	p := serving(t, f, nil)
	o := code("x")
	o.Run.Session = "work"
	id := p.submit(t, "", o)
	heads := func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.execs) == 1 }
	until(t, "begun", heads)
	f.print("one ")
	until(t, "read", func() bool { return fileHas(p, id, "one ") })
	p.close(t)
	f.print("two ")
	later := open(t, p.dir, f, nil)
	later.start(t)
	if later.state(t, id) != sandbox.ExecutionRunning {
		t.Error("it does not run")
	}
	f.print("three")
	var exec sandbox.ID
	for exec = range f.execs {
		f.end(exec, sandbox.Exit{Reason: sandbox.ReasonExited, Code: 4})
	}
	e := later.ended(t, id)
	if e.State != sandbox.ExecutionFailed || e.Exit.Code != 4 || string(e.Result.Stdout) != "one two three" || e.Result.Truncated.Stdout != 0 || e.Exec != exec || e.Result.Decision.Verdict != sandbox.Allow {
		t.Errorf("%+v, %q", e, e.Result.Stdout)
	}
	if len(f.execs) != 1 {
		t.Errorf("it ran %d times", len(f.execs))
	}
}

// What a server wrote down in a session and died before it began runs once the
// session's recovery has found that out.
func TestNeverBegan(t *testing.T) {
	t.Parallel()
	f := &fake{}
	p := serving(t, f, nil)
	o := code("x")
	o.Run.Session = "work"
	id := p.submit(t, "", o)
	execs := func() []sandbox.ID { f.mu.Lock(); defer f.mu.Unlock(); return slices.Collect(maps.Keys(f.execs)) }
	until(t, "begun", func() bool { return len(execs()) == 1 })
	p.close(t)
	first := execs()[0]
	later := open(t, p.dir, f, nil)
	later.start(t)
	f.end(first, sandbox.Exit{Reason: sandbox.ReasonInfra, Cause: sandbox.NeverBegan}.Coded())
	until(t, "begun again", func() bool { return len(execs()) == 2 })
	f.print("now")
	for _, exec := range execs() {
		f.end(exec, sandbox.Exit{Reason: sandbox.ReasonExited})
	}
	if e := later.ended(t, id); e.State != sandbox.ExecutionSucceeded || string(e.Result.Stdout) != "now" || e.Exec == first {
		t.Errorf("%+v, %q", e, e.Result.Stdout)
	}
}

// In a session too an execution is canceled, and ended where it puts out too much:
// then its head and its tail are kept.
func TestSessionEndsEarly(t *testing.T) {
	t.Parallel()
	f := &fake{}
	p := serving(t, f, nil)
	o := code("x")
	o.Run.Session, o.Run.MaxOutput, o.Run.KeepOutput = "work", 1<<20, 16
	id := p.submit(t, "", o)
	until(t, "begun", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.execs) == 1 })
	f.print("01234567" + strings.Repeat("x", 1<<20) + "89abcdef")
	e := p.ended(t, id)
	if e.Exit.Reason != sandbox.ReasonOutput || string(e.Result.Stdout) != "0123456789abcdef" || e.Result.Truncated.Stdout != 1<<20 {
		t.Errorf("%+v, %q, %+v", e.Exit, e.Result.Stdout, e.Result.Truncated)
	}
	o.Run.MaxOutput = 0
	id = p.submit(t, "", o)
	until(t, "begun", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.execs) == 2 })
	if _, err := p.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if e := p.ended(t, id); e.State != sandbox.ExecutionCanceled || e.Exit.Code != 130 {
		t.Errorf("%+v", e)
	}
}

// A clock that is set forward forgets nothing too early, and one that is set back
// holds nothing up.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	p := serving(t, &fake{run: echo}, func(c *executions.Config) { c.Now = now })
	first := p.ended(t, p.submit(t, "", code("1")))
	if err := p.Close(); err != nil { // nobody else sees the clock set
		t.Fatal(err)
	}
	ahead.Store(int64(100 * 24 * time.Hour))
	p.Prune(t.Context())
	after := p.ended(t, first.ID)
	if d := after.Expires.Sub(first.Expires); d != 0 {
		t.Errorf("what is told of its end moved by %s", d)
	}
	ahead.Store(-int64(100 * 24 * time.Hour))
	p.Prune(t.Context())
	p.start(t)
	second := p.ended(t, p.submit(t, "", code("2")))
	list, err := p.Executions(t.Context(), sandbox.ExecutionFilter{})
	if err != nil || len(list) != 2 || list[0].ID != second.ID || list[1].ID != first.ID {
		t.Errorf("the newest is not the first: %+v, %v", list, err)
	}
}
