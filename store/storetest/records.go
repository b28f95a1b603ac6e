package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

// sessions checks that what was put comes back whole, and goes with its
// session.
func sessions(t *testing.T, open Open) {
	s := fresh(t, open)
	a, b := aSession("b-second"), aSession("a-first")
	box, run := aSandbox("b-second"), anExec("b-second")
	apply(t, s, sandbox.Transaction{CreateSession: a, PutSandboxes: []sandbox.SandboxRecord{box}, PutExecs: []sandbox.ExecRecord{run}})
	apply(t, s, sandbox.Transaction{CreateSession: b})
	want := []sandbox.SessionView{
		{Session: *b, Sandboxes: []sandbox.SandboxRecord{}, Execs: []sandbox.ExecRecord{}},
		{Session: *a, Sandboxes: []sandbox.SandboxRecord{box}, Execs: []sandbox.ExecRecord{run}},
	}
	got, err := s.Sessions(t.Context(), sandbox.SessionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	box.State, run.Ended, run.Exit = sandbox.StatePaused, run.Started, sandbox.Exit{Code: 3, Reason: sandbox.ReasonExited}
	a.Idle = 0
	apply(t, s, sandbox.Transaction{PutSession: a, PutSandboxes: []sandbox.SandboxRecord{box}, PutExecs: []sandbox.ExecRecord{run}})
	one, err := s.Session(t.Context(), "b-second")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sandbox.SessionView{Session: *a, Sandboxes: []sandbox.SandboxRecord{box}, Execs: []sandbox.ExecRecord{run}}, one); diff != "" {
		t.Errorf("a changed session (-want +got):\n%s", diff)
	}
	apply(t, s, sandbox.Transaction{DeleteSandboxes: []sandbox.ID{box.ID}, DeleteExecs: []sandbox.ID{run.ID}})
	if one, err = s.Session(t.Context(), "b-second"); err != nil || len(one.Sandboxes)+len(one.Execs) != 0 {
		t.Errorf("after the deletes: %+v, %v", one, err)
	}
	more := anExec("b-second")
	apply(t, s, sandbox.Transaction{PutExecs: []sandbox.ExecRecord{run, more}})
	refuse(t, s, sandbox.Transaction{DeleteSession: "b-second"}, sandbox.Conflict)
	apply(t, s, sandbox.Transaction{DeleteExecs: []sandbox.ID{more.ID}})
	apply(t, s, sandbox.Transaction{DeleteSession: "b-second"})
	if _, err := s.Session(t.Context(), "b-second"); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("a removed session: error %v", err)
	}
	apply(t, s, sandbox.Transaction{CreateSession: aSession("b-second")})
	if one, err = s.Session(t.Context(), "b-second"); err != nil || len(one.Execs) != 0 {
		t.Errorf("a successor inherits %+v, %v", one.Execs, err)
	}
}

// clockSet checks that sandboxes end, and questions expire, when they would have, also
// where the clock was set while the store was closed.
func clockSet(t *testing.T, open Open) {
	dir := t.TempDir()
	s := open(t, dir)
	one, endless := aSandbox("work"), aSandbox("work")
	one.Expires = one.Created.Add(10 * time.Minute)
	setClock(t, s, 0)
	apply(t, s, sandbox.Transaction{CreateSession: aSession("work"), PutSandboxes: []sandbox.SandboxRecord{one, endless}})
	asked := sandbox.Approval{ID: sandbox.NewID(), Digest: "d", State: sandbox.ApprovalPending, Asked: one.Created, Expires: one.Expires}
	apply(t, s, sandbox.Transaction{AskApproval: &asked})
	for _, by := range []time.Duration{30 * time.Second, time.Hour, -3 * time.Hour} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
		setClock(t, s, by)
		moved := one
		if by.Abs() >= time.Minute {
			moved.Expires = one.Expires.Add(by - 30*time.Second)
		}
		want := map[sandbox.ID]sandbox.SandboxRecord{one.ID: moved, endless.ID: endless}
		v, err := s.Session(t.Context(), "work")
		got := map[sandbox.ID]sandbox.SandboxRecord{}
		for _, rec := range v.Sandboxes {
			got[rec.ID] = rec
		}
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("set by %s: %v %s", by, err, d)
		}
		if a, err := s.Approval(t.Context(), asked.ID); err != nil || !a.Expires.Equal(moved.Expires) || !a.Asked.Equal(asked.Asked) {
			t.Errorf("set by %s, a question: %+v, %v", by, a, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// ended asks for sessions without what has ended in them, and bounds how much that is.
func ended(t *testing.T, open Open) {
	s := fresh(t, open)
	apply(t, s, sandbox.Transaction{CreateSession: aSession("other"), PutExecs: []sandbox.ExecRecord{anExec("other")}})
	runs := anExec("work")
	apply(t, s, sandbox.Transaction{CreateSession: aSession("work"), PutExecs: []sandbox.ExecRecord{runs}})
	old := make([]sandbox.ExecRecord, 3)
	for i := range old {
		old[i] = anExec("work")
		old[i].Ended = old[i].Started.Add(time.Duration(3-i) * time.Second) // the last one first
	}
	apply(t, s, sandbox.Transaction{PutExecs: old})
	ids := func(f sandbox.SessionFilter) (ids []sandbox.ID) {
		t.Helper()
		views, err := s.Sessions(t.Context(), f)
		if err != nil || len(views) != 1 || views[0].Name != "work" {
			t.Fatalf("%v, %+v", err, views)
		}
		for _, e := range views[0].Execs {
			ids = append(ids, e.ID)
		}
		return ids
	}
	if got := ids(sandbox.SessionFilter{Name: "work"}); len(got) != 4 {
		t.Errorf("all: %v", got)
	}
	// Twice, and by more conditions: it is kept parsed.
	for _, f := range []sandbox.SessionFilter{{Name: "work", Running: true}, {Name: "work", Running: true}, {After: "other", Running: true}} {
		if got := ids(f); !slices.Equal(got, []sandbox.ID{runs.ID}) {
			t.Errorf("what runs by %+v: %v", f, got)
		}
	}
	// The newest are kept, and what runs is.
	more := anExec("work")
	apply(t, s, sandbox.Transaction{KeepEnded: 2, PutExecs: []sandbox.ExecRecord{more}})
	want := []sandbox.ID{runs.ID, more.ID, old[0].ID, old[1].ID}
	slices.Sort(want)
	if got := ids(sandbox.SessionFilter{Name: "work"}); !slices.Equal(got, want) {
		t.Errorf("left are %v, not %v", got, want)
	}
	if other, err := s.Session(t.Context(), "other"); err != nil || len(other.Execs) != 1 {
		t.Errorf("of another session: %v, %+v", err, other.Execs)
	}
}

func names(t *testing.T, open Open) {
	s := fresh(t, open)
	apply(t, s, sandbox.Transaction{CreateSession: aSession("work")})
	refuse(t, s, sandbox.Transaction{CreateSession: aSession("work")}, sandbox.Conflict)
	refuse(t, s, sandbox.Transaction{PutSession: aSession("other")}, sandbox.NotFound)
	refuse(t, s, sandbox.Transaction{PutSandboxes: []sandbox.SandboxRecord{aSandbox("other")}}, sandbox.NotFound)
	refuse(t, s, sandbox.Transaction{PutExecs: []sandbox.ExecRecord{anExec("other")}}, sandbox.NotFound)
	for _, name := range []string{"other", ""} {
		if _, err := s.Session(t.Context(), name); !errors.Is(err, sandbox.NotFound) {
			t.Errorf("session %q: error %v", name, err)
		}
	}
}

// whole checks that of a change that fails at its last part nothing is made.
func whole(t *testing.T, open Open) {
	s := fresh(t, open)
	refuse(t, s, sandbox.Transaction{
		CreateSession: aSession("work"), PutSandboxes: []sandbox.SandboxRecord{aSandbox("work")},
		PutExecs: []sandbox.ExecRecord{anExec("work"), anExec("missing")}, Events: []sandbox.Event{anEvent("x", "work")},
	}, sandbox.NotFound)
	if _, err := s.Session(t.Context(), "work"); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("half a change was made: %v", err)
	}
	if list := all(t, s, sandbox.EventFilter{}); len(list) != 0 {
		t.Errorf("a change that failed left events: %v", list)
	}
	apply(t, s, sandbox.Transaction{Events: []sandbox.Event{anEvent("x", "")}})
	if r := Sound(t, s); r.First != 1 || r.Last != 1 {
		t.Errorf("a change that failed used up numbers: %+v", r)
	}
}

// while checks that of many that tell one exec's end, one does.
func while(t *testing.T, open Open) {
	s := fresh(t, open)
	run, back := anExec(""), anExec("work")
	back.Background = true
	apply(t, s, sandbox.Transaction{CreateSession: aSession("work"), PutExecs: []sandbox.ExecRecord{run, back}})
	ended := back
	ended.Ended = time.Now().UTC()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for _, c := range []sandbox.Transaction{
				{While: run.ID, DeleteExecs: []sandbox.ID{run.ID}, Events: []sandbox.Event{{Time: time.Now(), Kind: "end", Exec: run.ID}}},
				{While: back.ID, PutExecs: []sandbox.ExecRecord{ended}, Events: []sandbox.Event{{Time: time.Now(), Kind: "end", Exec: back.ID}}},
			} {
				if err := s.Apply(t.Context(), c); err != nil && !errors.Is(err, sandbox.Conflict) {
					t.Errorf("an end: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range []sandbox.ID{run.ID, back.ID} {
		if list := all(t, s, sandbox.EventFilter{Exec: id}); len(list) != 1 {
			t.Errorf("exec %s has %d ends", id, len(list))
		}
	}
}

// oneshots checks that execs of no session are told, under no name.
func oneshots(t *testing.T, open Open) {
	s := fresh(t, open)
	run := anExec("")
	apply(t, s, sandbox.Transaction{CreateSession: aSession("work"), PutExecs: []sandbox.ExecRecord{run}})
	got, err := s.Sessions(t.Context(), sandbox.SessionFilter{})
	if err != nil || len(got) != 2 || got[0].Name != "" || len(got[0].Execs) != 1 {
		t.Fatalf("sessions: %+v, %v", got, err)
	}
	apply(t, s, sandbox.Transaction{DeleteExecs: []sandbox.ID{run.ID}})
	if got, err = s.Sessions(t.Context(), sandbox.SessionFilter{}); err != nil || len(got) != 1 {
		t.Errorf("sessions: %+v, %v", got, err)
	}
}

// neighbours checks that changes that fail do not take others with them that
// share their commit.
func neighbours(t *testing.T, open Open) {
	s := fresh(t, open)
	apply(t, s, sandbox.Transaction{CreateSession: aSession("taken")})
	const n = 200
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name, kind := fmt.Sprintf("s%d", i), error(nil)
			if i%3 == 0 {
				name, kind = "taken", sandbox.Conflict
			}
			err := s.Apply(t.Context(), sandbox.Transaction{CreateSession: aSession(name), Events: []sandbox.Event{anEvent("made", name)}})
			if kind == nil && err != nil || kind != nil && !errors.Is(err, kind) {
				t.Errorf("change %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	got, err := s.Sessions(t.Context(), sandbox.SessionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	good := n - (n+2)/3
	if r := Sound(t, s); len(got) != good+1 || r.Events != int64(good) {
		t.Errorf("%d sessions and %d events, not %d and %d", len(got), r.Events, good+1, good)
	}
}

func reopened(t *testing.T, open Open) {
	dir := t.TempDir()
	s := open(t, dir)
	a, box := aSession("work"), aSandbox("work")
	apply(t, s, sandbox.Transaction{CreateSession: a, PutSandboxes: []sandbox.SandboxRecord{box}, Events: []sandbox.Event{anEvent("x", "work")}})
	id, head := s.ID(), Sound(t, s).Head
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	got, err := s.Session(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sandbox.SessionView{Session: *a, Sandboxes: []sandbox.SandboxRecord{box}, Execs: []sandbox.ExecRecord{}}, got); diff != "" {
		t.Errorf("after opening again (-want +got):\n%s", diff)
	}
	if s.ID() != id || id == "" {
		t.Errorf("the state's id was %q and is %q", id, s.ID())
	}
	if r := Sound(t, s); r.Head != head {
		t.Errorf("the audit's head was %s and is %s", head, r.Head)
	}
	apply(t, s, sandbox.Transaction{Events: []sandbox.Event{anEvent("y", "work")}})
	Sound(t, s)
}

// secrets checks that an agent's secret is kept, and shown by nothing.
func secrets(t *testing.T, open Open) {
	s := fresh(t, open)
	box := aSandbox("work")
	apply(t, s, sandbox.Transaction{CreateSession: aSession("work"), PutSandboxes: []sandbox.SandboxRecord{box}, Events: []sandbox.Event{anEvent("x", "work")}})
	v, err := s.Session(t.Context(), "work")
	if err != nil || len(v.Sandboxes) != 1 || !bytes.Equal(v.Sandboxes[0].Secret, box.Secret) {
		t.Fatalf("the secret is not kept: %+v, %v", v, err)
	}
	shown, err := json.Marshal([]any{v, all(t, s, sandbox.EventFilter{})})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(box.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(shown, box.Secret) || bytes.Contains(shown, bytes.Trim(encoded, `"=`)) {
		t.Errorf("the secret is shown: %s", shown)
	}
}

func closed(t *testing.T, open Open) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	applied := make(chan struct{})
	for range 20 {
		wg.Go(func() {
			for {
				err := s.Apply(t.Context(), sandbox.Transaction{Events: []sandbox.Event{anEvent("x", "")}})
				if errors.Is(err, sandbox.Unavailable) {
					return
				}
				if err != nil {
					t.Errorf("apply beside close: %v", err)
					return
				}
				select {
				case applied <- struct{}{}:
				default: // nobody counts any more
				}
			}
		})
	}
	for range 20 {
		select {
		case <-applied:
		case <-time.After(10 * time.Second):
			t.Error("nothing was applied")
		}
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	wg.Wait()
}
