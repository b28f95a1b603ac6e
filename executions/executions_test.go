package executions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/executions"
	"github.com/caisson-dev/caisson/sandbox"
)

// A hundred at once: none is lost, and each has its own answer.
func TestHundredAtOnce(t *testing.T) {
	t.Parallel()
	p := serving(t, &fake{run: echo}, nil)
	var all sync.WaitGroup
	for _, text := range texts(100) {
		all.Go(func() {
			e := p.ended(t, p.submit(t, "", code(text)))
			if e.State != sandbox.ExecutionSucceeded || string(e.Result.Stdout) != text || e.Exec != e.Result.ExecID || e.Started.IsZero() || e.Ended.IsZero() {
				t.Errorf("%s: %+v", text, e)
			}
		})
	}
	all.Wait()
	list, err := p.Executions(t.Context(), sandbox.ExecutionFilter{})
	if err != nil || len(list) != 100 || len(p.runner.begun) != 100 {
		t.Errorf("%d of them, %d begun, %v", len(list), len(p.runner.begun), err)
	}
}

// What runs has the submitter as its caller, its input, and the label that it is
// found by.
func TestRunsAsSubmitter(t *testing.T) {
	t.Parallel()
	var got sandbox.Run
	var who sandbox.Caller
	var in []byte
	p := serving(t, &fake{run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		got, who = run, sandbox.CallerFrom(ctx)
		if s.Ask != nil || s.Stdout != nil {
			t.Error("somebody is asked, or told, in person")
		}
		in, _ = io.ReadAll(s.Stdin)
		return echo(ctx, run, s)
	}}, nil)
	o := code("x")
	o.Stdin, o.Run.Labels, o.Run.Env = "in", sandbox.Labels{"job": "1"}, []string{"TOKEN=s3cret"}
	o.Run.Files = []sandbox.File{{Path: "a", Ref: "r", Size: 5}}
	opened := sandbox.Local{Contents: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("bytes")), nil }}
	e, err := p.Submit(sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "acme", Name: "token 1"}), o, opened)
	if err != nil {
		t.Fatal(err)
	}
	id := e.ID
	e = p.ended(t, id)
	want := sandbox.Run{
		Language: "shell", Code: "x", Env: []string{"TOKEN=s3cret"}, Labels: sandbox.Labels{"job": "1", sandbox.ExecutionLabel: string(id)}, Files: []sandbox.File{{Path: "a", Data: []byte("bytes")}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if who != (sandbox.Caller{Owner: "acme", Name: "token 1"}) || string(in) != "in" {
		t.Errorf("%+v, %q", who, in)
	}
	// Secrets are not shown, and gone from the state once it is over.
	b, err := json.Marshal(e)
	if err != nil || bytes.Contains(b, []byte("s3cret")) || e.Owner != "acme" || e.Run.Env[0] != "TOKEN" || e.Run.Files[0].Size != 5 || e.Labels["job"] != "1" {
		t.Errorf("shown: %s, %v", b, err)
	}
	if left, err := p.store.ExecutionOptions(t.Context(), id); err != nil || left.Run.Env != nil || left.Stdin != "" || left.Run.Files != nil {
		t.Errorf("left: %+v, %v", left, err)
	}
	events, waited := 0, 0
	for event, err := range p.store.Events(t.Context(), sandbox.EventFilter{Kinds: []string{sandbox.EventExecution}}) {
		if events++; err != nil || event.Owner != "acme" || event.Actor != "token 1" {
			t.Errorf("%+v, %v", event, err)
		}
		if bytes.Contains(event.Data, []byte(`"queue_ms"`)) {
			waited++
		}
	}
	if events != 3 || waited != 1 {
		t.Errorf("%d events, %d of them say how long it waited", events, waited)
	}
}

// However a run ends, its state says it.
func TestStates(t *testing.T) {
	t.Parallel()
	denied := &sandbox.DeniedError{Decision: sandbox.Decision{Verdict: sandbox.Deny}}
	exits := map[string]sandbox.Exit{
		"succeeded": {Reason: sandbox.ReasonExited}, "failed 3": {Reason: sandbox.ReasonExited, Code: 3}, "failed timeout": {Reason: sandbox.ReasonTimeout, Code: 124},
		"failed oom": {Reason: sandbox.ReasonOOM, Code: 137}, "lost": {Reason: sandbox.ReasonInfra, Code: 125}, "failed denied": {Reason: sandbox.ReasonDenied, Code: 126},
	}
	p := serving(t, &fake{run: func(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
		switch run.Code {
		case "failed denied":
			return sandbox.Result{Exit: exits[run.Code]}, denied
		case "failed engine":
			return sandbox.Result{}, sandbox.Errorf(sandbox.Unavailable, "no engine").WithHint("start it")
		}
		return sandbox.Result{Exit: exits[run.Code]}, nil
	}}, nil)
	for _, name := range []string{"succeeded", "failed 3", "failed timeout", "failed oom", "lost", "failed denied", "failed engine"} {
		e := p.ended(t, p.submit(t, "", code(name)))
		want, _, _ := strings.Cut(name, " ")
		if string(e.State) != want {
			t.Errorf("%s is %s", name, e.State)
		}
		switch name {
		case "failed denied":
			if e.Error == nil || e.Error.Kind != "denied" || e.Error.Code != 126 {
				t.Errorf("%s: %+v", name, e.Error)
			}
		case "failed engine":
			if e.Result != nil || e.Error == nil || e.Error.Hint != "start it" || e.Error.Code != 125 {
				t.Errorf("%s: %+v", name, e.Error)
			}
		default:
			if e.Error != nil || e.Exit.Code != exits[name].Code || e.Result.Code != e.Exit.Code {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

// Owners take turns, also where one of them came first with all of its own; and
// who is over its quota waits without holding up others.
func TestFairBetweenOwners(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	most := map[string]int{}
	now := map[string]int{}
	two := make(chan struct{}) // closed once two of the greedy one's run
	f := &fake{run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		owner := sandbox.CallerFrom(ctx).Owner
		mu.Lock()
		order = append(order, owner)
		now[owner]++
		most[owner] = max(most[owner], now[owner])
		if owner == "greedy" && now[owner] == 2 && most[owner] == 2 {
			select {
			case <-two:
			default:
				close(two)
			}
		}
		mu.Unlock()
		time.Sleep(time.Millisecond) // so that what overlaps is seen to
		if owner == "greedy" {
			<-two // which its others need no end of this one for
		}
		mu.Lock()
		now[owner]--
		mu.Unlock()
		return echo(ctx, run, s)
	}}
	p := open(t, t.TempDir(), f, func(c *executions.Config) {
		c.Workers = 3
		c.Quota = func(owner string) int {
			if owner == "bounded" {
				return 1
			}
			return 0
		}
	})
	var ids []sandbox.ID
	for _, owner := range []string{"greedy", "bounded", "late"} {
		n := 30
		if owner == "late" {
			n = 5
		}
		for _, text := range texts(n) {
			ids = append(ids, p.submit(t, owner, code(text)))
		}
	}
	p.start(t)
	for _, id := range ids {
		p.ended(t, id)
	}
	last := 0
	for i, owner := range order {
		if owner == "late" {
			last = i
		}
	}
	if last > 20 {
		t.Errorf("who came last was served at place %d: %v", last, order)
	}
	if most["bounded"] != 1 || most["greedy"] < 2 {
		t.Errorf("at once: %v", most)
	}
}

// A full queue refuses, one owner cannot fill it for the others, and what is in it
// waits for a server, which is said.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir(), &fake{run: echo}, func(c *executions.Config) { c.Queue = 4 })
	p.submit(t, "a", code("1"))
	p.submit(t, "a", code("2"))
	as := func(owner string) error {
		_, err := p.Submit(sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: owner}), code("x"), sandbox.Local{})
		return err
	}
	if err := as("a"); !errors.Is(err, sandbox.Exhausted) || sandbox.HintOf(err) == "" {
		t.Errorf("the third of one owner: %v", err)
	}
	p.submit(t, "b", code("3"))
	id := p.submit(t, "c", code("4"))
	if err := as("d"); !errors.Is(err, sandbox.Exhausted) || !strings.Contains(sandbox.HintOf(err), "CAISSON_EXECUTIONS_QUEUE") {
		t.Errorf("the fifth: %v, %s", err, sandbox.HintOf(err))
	}
	e, err := p.Execution(t.Context(), id, sandbox.Duration(time.Millisecond))
	if err != nil || e.State != sandbox.ExecutionQueued || !strings.Contains(e.Waits, "caisson serve") {
		t.Errorf("%+v, %v", e, err)
	}
	p.start(t)
	if e := p.ended(t, id); e.State != sandbox.ExecutionSucceeded || e.Waits != "" {
		t.Errorf("%+v", e)
	}
}

// What is queued or runs can be canceled, from another process too; what is over
// cannot.
func TestCancel(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	p := serving(t, &fake{run: held(let)}, func(c *executions.Config) { c.Workers = 2 })
	first, second := p.submit(t, "", code("1")), p.submit(t, "", code("2"))
	until(t, "running", func() bool {
		return p.state(t, first) == sandbox.ExecutionRunning && p.state(t, second) == sandbox.ExecutionRunning
	})
	queued := p.submit(t, "", code("3"))
	if e, err := p.Cancel(t.Context(), queued); err != nil || e.State != sandbox.ExecutionCanceled || e.Exit.Code != 130 {
		t.Errorf("queued: %+v, %v", e, err)
	}
	if _, err := p.Cancel(t.Context(), first); err != nil {
		t.Error(err)
	}
	if e := p.ended(t, first); e.State != sandbox.ExecutionCanceled || e.Exit.Reason != sandbox.ReasonCanceled || e.Error != nil {
		t.Errorf("running: %+v", e)
	}
	other := open(t, p.dir, &fake{}, nil)
	if e, err := other.Cancel(t.Context(), second); err != nil || !e.CancelAsked {
		t.Errorf("from elsewhere: %+v, %v", e, err)
	}
	if e, err := other.Execution(t.Context(), second, sandbox.Duration(time.Minute)); err != nil || e.State != sandbox.ExecutionCanceled {
		t.Errorf("from elsewhere: %+v, %v", e, err)
	}
	if e, err := p.Cancel(t.Context(), first); err != nil || e.State != sandbox.ExecutionCanceled {
		t.Errorf("again: %+v, %v", e, err)
	}
	close(let)
	over := p.submit(t, "", code("4"))
	p.ended(t, over)
	if _, err := p.Cancel(t.Context(), over); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("what is over: %v", err)
	}
	if _, err := p.Cancel(t.Context(), sandbox.NewID()); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("what is not there: %v", err)
	}
	if p.runner.begun["3"] != 0 {
		t.Error("what was canceled has run")
	}
}

// A wait ends with its time, with its caller, and at once where there is nothing to
// wait for.
func TestWait(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	defer close(let)
	p := serving(t, &fake{run: held(let)}, nil)
	id := p.submit(t, "", code("1"))
	if e, err := p.Execution(t.Context(), id, sandbox.Duration(10*time.Millisecond)); err != nil || e.State.Over() {
		t.Errorf("its time: %+v, %v", e, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Execution(ctx, id, sandbox.Duration(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("its caller: %v", err)
	}
	if _, err := p.Execution(t.Context(), sandbox.NewID(), sandbox.Duration(time.Hour)); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("nothing: %v", err)
	}
}

// Artifacts are kept beside the result, and go with it; one that is too large is
// left out by name.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	p := serving(t, &fake{run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		res, err := echo(ctx, run, s)
		for _, a := range []sandbox.Artifact{{Path: "artifacts/a b/../x", Size: 4}, {Path: "big", Size: int64(executions.MaxArtifacts) + 1}} {
			w, failed := s.Artifact(a)
			if failed != nil {
				a.Left = failed.Error()
			} else {
				_, _ = io.WriteString(w, "data")
				_ = w.Close()
			}
			res.Artifacts = append(res.Artifacts, a)
		}
		return res, err
	}}, nil)
	o := code("1")
	o.Keep = sandbox.Duration(time.Hour)
	e := p.ended(t, p.submit(t, "", o))
	a := e.Result.Artifacts
	if len(a) != 2 || a[0].Link != "/v1/executions/"+string(e.ID)+"/artifacts?path=artifacts%2Fa+b%2F..%2Fx" || a[1].Link != "" || a[1].Left == "" {
		t.Fatalf("%+v", a)
	}
	var b bytes.Buffer
	if n, err := p.Artifact(t.Context(), e.ID, a[0].Path, &b); err != nil || n != 4 || b.String() != "data" {
		t.Errorf("%d %q, %v", n, &b, err)
	}
	for _, name := range []string{"big", "none", "../../state.db"} {
		if _, err := p.Artifact(t.Context(), e.ID, name, &b); !errors.Is(err, sandbox.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	shelf := filepath.Join(p.dir, "executions", string(e.ID))
	if _, err := os.Stat(shelf); err != nil {
		t.Error(err)
	}
	// Its time comes: a server that starts forgets it, with what it has kept.
	p.close(t)
	later := open(t, p.dir, &fake{run: echo}, func(c *executions.Config) {
		c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		c.Up = func() (string, time.Duration) { return "the machine was off meanwhile", 0 }
	})
	later.start(t)
	until(t, "forgotten", func() bool {
		_, err := later.Execution(t.Context(), e.ID, 0)
		_, gone := os.Stat(shelf)
		return errors.Is(err, sandbox.NotFound) && os.IsNotExist(gone)
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir(), &fake{}, nil)
	label := code("x")
	label.Run.Labels = sandbox.Labels{sandbox.ExecutionLabel: "1"}
	for name, o := range map[string]sandbox.ExecutionOptions{
		"nothing":          {},
		"two":              {Run: sandbox.Run{Code: "x", Command: []string{"true"}}},
		"input":            {Run: sandbox.Run{Code: "x", Input: true}},
		"two inputs":       {Run: sandbox.Run{Code: "x"}, Stdin: "x", StdinBytes: []byte{1}},
		"session's input":  {Run: sandbox.Run{Code: "x", Session: "s"}, Stdin: "x"},
		"kept for ever":    {Run: sandbox.Run{Code: "x"}, Keep: sandbox.Duration(executions.MaxKeep + 1)},
		"its label":        label,
		"pattern":          {Run: sandbox.Run{Code: "x", Artifacts: []string{"../x"}}},
		"approve":          {Run: sandbox.Run{Code: "x", Approve: "maybe"}},
		"large":            {Run: sandbox.Run{Code: "x", Files: []sandbox.File{{Path: "f", Ref: "r", Size: int64(executions.MaxSubmission)}}}},
		"a short secret":   {Run: sandbox.Run{Code: "x"}, Callback: &sandbox.CallbackOptions{URL: "https://h.test", Secret: "short"}},
		"a fast heartbeat": {Run: sandbox.Run{Code: "x"}, Callback: &sandbox.CallbackOptions{URL: "https://h.test", Heartbeat: 1}},
		"no address":       {Run: sandbox.Run{Code: "x"}, Callback: &sandbox.CallbackOptions{URL: "file:///etc/passwd"}},
	} {
		if _, err := p.Submit(t.Context(), o, sandbox.Local{}); !errors.Is(err, sandbox.Invalid) || sandbox.HintOf(err) == "" {
			t.Errorf("%s: %v, %q", name, err, sandbox.HintOf(err))
		}
	}
	if list, err := p.Executions(t.Context(), sandbox.ExecutionFilter{}); err != nil || len(list) != 0 {
		t.Errorf("kept: %+v, %v", list, err)
	}
}

// Lists page, and select by state, owner, session and labels; they have no runs.
func TestList(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir(), &fake{}, nil)
	var ids []sandbox.ID
	for i, owner := range []string{"a", "b", "a"} {
		o := code(strings.Repeat("x", 1+i))
		o.Run.Labels = sandbox.Labels{"n": string(rune('0' + i))}
		ids = append(ids, p.submit(t, owner, o))
	}
	for name, c := range map[string]struct {
		filter sandbox.ExecutionFilter
		want   []int
	}{
		"all":    {sandbox.ExecutionFilter{}, []int{2, 1, 0}},
		"page":   {sandbox.ExecutionFilter{After: ids[2], Limit: 1}, []int{1}},
		"owner":  {sandbox.ExecutionFilter{Owner: new("a")}, []int{2, 0}},
		"labels": {sandbox.ExecutionFilter{Labels: sandbox.Labels{"n": "1"}}, []int{1}},
		"state":  {sandbox.ExecutionFilter{States: []sandbox.ExecutionState{sandbox.ExecutionRunning}}, nil},
	} {
		list, err := p.Executions(t.Context(), c.filter)
		var got []int
		for _, e := range list {
			got = append(got, slices.Index(ids, e.ID))
			if e.Run != nil {
				t.Errorf("%s has runs", name)
			}
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
