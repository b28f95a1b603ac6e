package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
)

func aSubmission(owner, code string) *sandbox.Submission {
	return &sandbox.Submission{
		Execution: sandbox.Execution{
			ID: sandbox.NewID(), State: sandbox.ExecutionQueued, Owner: owner, Submitted: time.Now().UTC().Truncate(time.Millisecond), Session: "s", Labels: sandbox.Labels{"code": code},
			Run: &sandbox.Run{Code: code}, Callback: &sandbox.Callback{State: sandbox.CallbackWaiting},
		},
		Options: sandbox.ExecutionOptions{Run: sandbox.Run{Code: code, Env: []string{"A=secret"}}},
	}
}

func only(state sandbox.ExecutionState) []sandbox.ExecutionState {
	return []sandbox.ExecutionState{state}
}

// executions move from one state to the next once, and show no secrets.
func executions(t *testing.T, open Open) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	defer s.Close()
	defer other.Close()
	first, second := aSubmission("a", "1"), aSubmission("b", "2")
	apply(t, s, sandbox.Transaction{SubmitExecution: first})
	apply(t, s, sandbox.Transaction{SubmitExecution: second})
	refuse(t, s, sandbox.Transaction{SubmitExecution: first}, sandbox.Conflict)
	e, err := other.Execution(t.Context(), first.Execution.ID)
	if d := cmp.Diff(first.Execution, e); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	if o, err := other.ExecutionOptions(t.Context(), e.ID); err != nil || cmp.Diff(first.Options, o) != "" {
		t.Errorf("%+v, %v", o, err)
	}
	running := e
	running.State = sandbox.ExecutionRunning
	apply(t, s, sandbox.Transaction{MoveExecution: &sandbox.ExecutionMove{From: only(sandbox.ExecutionQueued), To: running}})
	refuse(t, other, sandbox.Transaction{MoveExecution: &sandbox.ExecutionMove{From: only(sandbox.ExecutionQueued), To: running}}, sandbox.Conflict)
	list, err := s.Queued(t.Context(), 0)
	if err != nil || len(list) != 1 || list[0].ID != second.Execution.ID || list[0].Owner != "b" {
		t.Errorf("queued: %+v, %v", list, err)
	}
	if list, err = s.Queued(t.Context(), list[0].Seq); err != nil || len(list) != 0 {
		t.Errorf("queued after that: %+v, %v", list, err)
	}
	over := running
	over.State, over.Result, over.Run = sandbox.ExecutionSucceeded, &sandbox.Result{Stdout: []byte("out\xff"), Changes: []sandbox.FileChange{}, Decision: sandbox.Decision{Findings: []sandbox.Finding{}}}, nil
	over.Callback = &sandbox.Callback{State: sandbox.CallbackPending}
	apply(t, s, sandbox.Transaction{MoveExecution: &sandbox.ExecutionMove{From: only(sandbox.ExecutionRunning), To: over, Options: &sandbox.ExecutionOptions{}}})
	if e, err = s.Execution(t.Context(), over.ID); err != nil || string(e.Result.Stdout) != "out\xff" || e.Run == nil || e.Run.Code != "1" {
		t.Errorf("%+v, %v", e, err)
	}
	if o, err := s.ExecutionOptions(t.Context(), e.ID); err != nil || o.Run.Env != nil {
		t.Errorf("what is not needed any more: %+v, %v", o, err)
	}
	over.Callback, over.Result = &sandbox.Callback{State: sandbox.CallbackDead}, nil
	move := sandbox.ExecutionMove{From: only(sandbox.ExecutionSucceeded), CallbackFrom: sandbox.CallbackPending, To: over}
	apply(t, s, sandbox.Transaction{MoveExecution: &move})
	refuse(t, s, sandbox.Transaction{MoveExecution: &move}, sandbox.Conflict)
	dead, err := s.Executions(t.Context(), sandbox.ExecutionFilter{Callback: sandbox.CallbackDead})
	if err != nil || len(dead) != 1 || dead[0].ID != over.ID || dead[0].Result != nil || dead[0].Run != nil {
		t.Errorf("dead: %+v, %v", dead, err)
	}
	if e, err = s.Execution(t.Context(), over.ID); err != nil || e.Result == nil {
		t.Errorf("its result went: %+v, %v", e, err)
	}
	if _, err := s.Execution(t.Context(), sandbox.NewID()); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("none: %v", err)
	}
}

// executionQueue is bounded, for all and for one owner.
func executionQueue(t *testing.T, open Open) {
	s := fresh(t, open)
	submit := func(owner string) error {
		sub := aSubmission(owner, "x")
		sub.Most, sub.MostOf, sub.Bytes = 3, 2, 10_000
		return s.Apply(t.Context(), sandbox.Transaction{SubmitExecution: sub})
	}
	for i, c := range []struct {
		owner string
		fits  bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"c", false}} {
		if err := submit(c.owner); errors.Is(err, sandbox.Exhausted) == c.fits || sandbox.HintOf(err) == "" && !c.fits {
			t.Errorf("%d: %v", i, err)
		}
	}
	large := aSubmission("d", string(make([]byte, 20_000)))
	large.Bytes = 10_000
	refuse(t, s, sandbox.Transaction{SubmitExecution: large}, sandbox.Exhausted)
}

// executionsForgotten go when their time has come, but for those of which somebody
// is still to be told; a clock that was set moves that time.
func executionsForgotten(t *testing.T, open Open) {
	s := fresh(t, open)
	now := time.Now().UTC()
	put := func(callback sandbox.CallbackState, expires time.Time) sandbox.ID {
		sub := aSubmission("a", "x")
		apply(t, s, sandbox.Transaction{SubmitExecution: sub})
		e := sub.Execution
		e.State, e.Expires, e.Callback = sandbox.ExecutionFailed, expires, &sandbox.Callback{State: callback}
		apply(t, s, sandbox.Transaction{MoveExecution: &sandbox.ExecutionMove{From: only(sandbox.ExecutionQueued), To: e}})
		return e.ID
	}
	old, _, young := put(sandbox.CallbackPending, now.Add(-time.Hour)), put(sandbox.CallbackDead, now.Add(-time.Hour)), put(sandbox.CallbackDelivered, now.Add(time.Hour))
	waits := aSubmission("a", "waits")
	apply(t, s, sandbox.Transaction{SubmitExecution: waits})
	left := func(forget store.Store, at time.Time, want ...sandbox.ID) {
		t.Helper()
		apply(t, forget, sandbox.Transaction{ForgetExecutions: at})
		list, err := s.Executions(t.Context(), sandbox.ExecutionFilter{})
		var ids []sandbox.ID
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		if d := cmp.Diff(want, ids); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
	}
	left(s, now, waits.Execution.ID, young, old)
	setClock(t, s, 0)
	setClock(t, s, 2*time.Hour)
	left(s, now.Add(2*time.Hour), waits.Execution.ID, young, old)
	left(s, now.Add(4*time.Hour), waits.Execution.ID, old)
}
