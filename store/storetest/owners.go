package storetest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// owners has lists filtered by owner and by label, and read page by page; what
// belongs to a session has its owner, whatever it says.
func owners(t *testing.T, open Open) {
	s := fresh(t, open)
	ann, bob := "ann", "bob"
	for _, name := range []string{"a", "b", "c"} {
		one := aSession(name)
		one.Owner, one.Labels = ann, sandbox.Labels{"team": "x", "n": name}
		if name == "b" {
			one.Owner = bob
		}
		run := anExec(name)
		run.Started, run.Owner, run.Labels = time.Unix(int64(name[0]), 0).UTC(), "nobody", sandbox.Labels{"n": name}
		apply(t, s, sandbox.Transaction{CreateSession: one, PutExecs: []sandbox.ExecRecord{run}, Events: []sandbox.Event{anEvent("made", name)}})
	}
	sessions := func(f sandbox.SessionFilter) (names []string) {
		list, err := s.Sessions(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			if names = append(names, v.Name); len(v.Execs) != 1 || v.Execs[0].Owner != v.Owner {
				t.Errorf("%+v", v)
			}
		}
		return names
	}
	execs := func(f sandbox.ExecFilter) (of []string, last sandbox.ID) {
		list, err := s.Execs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			of, last = append(of, e.Session), e.ID
		}
		return of, last
	}
	for want, f := range map[string]sandbox.SessionFilter{
		"[a b c]": {}, "[a c]": {Owner: &ann}, "[b]": {Owner: &bob, Labels: sandbox.Labels{"team": "x"}}, "[a b]": {Limit: 2}, "[c]": {After: "b", Limit: 2},
		"[a]": {Name: "a", Owner: &ann},
		"[]":  {Labels: sandbox.Labels{"team": "x", "n": "z"}},
	} {
		if got := "[" + join(sessions(f)) + "]"; got != want {
			t.Errorf("sessions %+v: %s, not %s", f, got, want)
		}
	}
	page, last := execs(sandbox.ExecFilter{Limit: 2})
	rest, _ := execs(sandbox.ExecFilter{After: last})
	if !slices.Equal(page, []string{"c", "b"}) || !slices.Equal(rest, []string{"a"}) {
		t.Errorf("pages of execs: %v, %v", page, rest)
	}
	if got, _ := execs(sandbox.ExecFilter{Owner: &ann, Labels: sandbox.Labels{"n": "a"}, Running: true}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("execs by owner and label: %v", got)
	}
	if got, _ := execs(sandbox.ExecFilter{ID: last}); !slices.Equal(got, page[1:]) {
		t.Errorf("an exec by its id: %v, not %v", got, page[1:])
	}
	run, err := s.Session(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	ended := run.Execs[0]
	ended.Ended = time.Now().UTC()
	apply(t, s, sandbox.Transaction{PutExecs: []sandbox.ExecRecord{ended}})
	apply(t, s, sandbox.Transaction{DeleteSession: "b", Events: []sandbox.Event{anEvent("gone", "b")}})
	if got := all(t, s, sandbox.EventFilter{Owner: &bob}); len(got) != 2 || got[1].Kind != "gone" {
		t.Errorf("events of an owner: %+v", got)
	}
	bare, labelled := anEvent("bare", "a"), anEvent("labelled", "a")
	bare.Data, labelled.Data = nil, json.RawMessage(`{"labels":{"n":"a"}}`)
	apply(t, s, sandbox.Transaction{Events: []sandbox.Event{bare, labelled}})
	if got := all(t, s, sandbox.EventFilter{Labels: sandbox.Labels{"n": "a"}}); len(got) != 1 || got[0].Kind != "labelled" {
		t.Errorf("events by label: %+v", got)
	}
	Sound(t, s)
}

func join(names []string) string {
	text := ""
	for i, n := range names {
		if i > 0 {
			text += " "
		}
		text += n
	}
	return text
}
