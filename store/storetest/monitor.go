package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

func aReading(session string, at time.Time) sandbox.Reading {
	return sandbox.Reading{
		Sandbox: sandbox.NewID(), Session: session, Language: "python", First: at, Samples: 2,
		Sample: sandbox.Sample{Time: at, CPU: sandbox.Duration(1500 * time.Microsecond), Memory: 7, Cores: 2}, Peak: sandbox.Figures{CPU: 80}, Mean: sandbox.Figures{CPU: 40.5},
	}
}

// readings are kept while a sandbox lives, and after it is gone.
func readings(t *testing.T, open Open) {
	s := fresh(t, open)
	now := time.Now().UTC().Truncate(time.Millisecond)
	live, box := aReading("", now), aSandbox("work")
	of := aReading("work", now.Add(-time.Second))
	of.Sandbox = box.ID
	apply(t, s, sandbox.Transaction{CreateSession: aSession("work"), PutSandboxes: []sandbox.SandboxRecord{box}, PutReadings: []sandbox.Reading{live, of}})
	got := func(f sandbox.ReadingFilter) []sandbox.Reading {
		list, err := s.Readings(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if d := cmp.Diff([]sandbox.Reading{live, of}, got(sandbox.ReadingFilter{Live: true})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]sandbox.Reading{live}, got(sandbox.ReadingFilter{Since: now})); d != "" {
		t.Error(d)
	}
	// A reading ends with its sandbox's record, or by itself, and stays.
	apply(t, s, sandbox.Transaction{DeleteSandboxes: []sandbox.ID{box.ID}})
	live.Ended = now
	apply(t, s, sandbox.Transaction{PutReadings: []sandbox.Reading{live}})
	apply(t, s, sandbox.Transaction{PutReadings: []sandbox.Reading{of}}) // by who has not seen the end
	if left := got(sandbox.ReadingFilter{Live: true}); len(left) != 0 {
		t.Errorf("live: %+v", left)
	}
	if list := got(sandbox.ReadingFilter{Session: "work"}); len(list) != 1 || list[0].Ended.IsZero() || list[0].Peak.CPU != 80 || list[0].Mean.CPU != 40.5 {
		t.Errorf("gone: %+v", list)
	}
	other := aReading("work", now)
	apply(t, s, sandbox.Transaction{PutReadings: []sandbox.Reading{other}})
	apply(t, s, sandbox.Transaction{DeleteSession: "work"})
	if left := got(sandbox.ReadingFilter{Live: true}); len(left) != 0 {
		t.Errorf("live after their session: %+v", left)
	}
	if list := got(sandbox.ReadingFilter{Limit: 1}); len(list) != 1 || list[0].Ended.IsZero() {
		t.Errorf("the newest: %+v", list)
	}
	apply(t, s, sandbox.Transaction{PutReadings: []sandbox.Reading{aReading("none", now.Add(-time.Hour))}})
	pages(t, len(got(sandbox.ReadingFilter{})), func(after sandbox.ID) (ids []sandbox.ID) {
		for _, r := range got(sandbox.ReadingFilter{After: after, Limit: 2}) {
			// A sample between two pages moves nothing.
			r.Sample.Time = r.Sample.Time.Add(time.Minute)
			apply(t, s, sandbox.Transaction{PutReadings: []sandbox.Reading{r}})
			ids = append(ids, r.Sandbox)
		}
		return ids
	})
	Sound(t, s)
}

// pages reads a list page by page, and finds each of its items once.
func pages(t *testing.T, items int, page func(after sandbox.ID) []sandbox.ID) {
	t.Helper()
	seen := map[sandbox.ID]bool{}
	var last sandbox.ID
	for ids := page(""); len(ids) > 0; ids = page(last) {
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%s is on two pages", id)
			}
			seen[id], last = true, id
		}
	}
	if len(seen) != items || items < 3 {
		t.Errorf("%d of %d on the pages", len(seen), items)
	}
}

// monitored has readings and alerts filtered by owner and label; they have the
// owner of their session.
func monitored(t *testing.T, open Open) {
	s := fresh(t, open)
	ann, bob, nobody := "ann", "bob", ""
	now := time.Now().UTC()
	for _, of := range []struct{ name, owner string }{{"a", ann}, {"b", bob}, {"", bob}} {
		r := aReading(of.name, now)
		r.Owner, r.Labels = "somebody else", sandbox.Labels{"team": "x", "of": of.name}
		alert := sandbox.Alert{ID: sandbox.NewID(), Rule: "cpu", Sandbox: r.Sandbox, Session: of.name, Owner: r.Owner, Severity: sandbox.Low, Fired: now, Labels: map[string]string{"page": of.name}}
		c := sandbox.Transaction{PutReadings: []sandbox.Reading{r}, FireAlert: &alert}
		if of.name == "" {
			c.PutReadings[0].Owner, alert.Owner = of.owner, of.owner
		} else {
			c.CreateSession = aSession(of.name)
			c.CreateSession.Owner = of.owner
		}
		apply(t, s, c)
	}
	for name, c := range map[string]struct {
		readings sandbox.ReadingFilter
		alerts   sandbox.AlertFilter
		want     string
	}{
		"of ann":   {sandbox.ReadingFilter{Owner: &ann}, sandbox.AlertFilter{Owner: &ann}, "a"},
		"of bob":   {sandbox.ReadingFilter{Owner: &bob}, sandbox.AlertFilter{Owner: &bob}, " b"},
		"of none":  {sandbox.ReadingFilter{Owner: &nobody}, sandbox.AlertFilter{Owner: &nobody}, ""},
		"by label": {sandbox.ReadingFilter{Labels: sandbox.Labels{"team": "x", "of": "b"}}, sandbox.AlertFilter{Labels: sandbox.Labels{"page": "b"}}, "b"},
	} {
		readings, err := s.Readings(t.Context(), c.readings)
		if err != nil {
			t.Fatal(err)
		}
		alerts, err := s.Alerts(t.Context(), c.alerts)
		if err != nil {
			t.Fatal(err)
		}
		var ofReadings, ofAlerts []string
		for _, r := range readings {
			ofReadings = append(ofReadings, r.Session)
		}
		for _, a := range alerts {
			ofAlerts = append(ofAlerts, a.Session)
		}
		for what, got := range map[string][]string{"readings": ofReadings, "alerts": ofAlerts} {
			slices.Sort(got)
			if text := join(got); text != c.want {
				t.Errorf("%s, %s: %q, not %q", name, what, text, c.want)
			}
		}
	}
}

// alerts fire once for each rule, sandbox and episode, and are resolved once.
func alerts(t *testing.T, open Open) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	defer s.Close()
	defer other.Close()
	now := time.Now().UTC().Truncate(time.Millisecond)
	a := sandbox.Alert{ID: sandbox.NewID(), Rule: "cpu", Sandbox: sandbox.NewID(), Session: "work", Severity: sandbox.High, Fired: now, Labels: map[string]string{"a": "b"}}
	again := a
	again.ID = sandbox.NewID()
	apply(t, s, sandbox.Transaction{FireAlert: &a, Events: []sandbox.Event{anEvent(sandbox.EventAlertFired, "work")}})
	refuse(t, other, sandbox.Transaction{FireAlert: &again, Events: []sandbox.Event{anEvent(sandbox.EventAlertFired, "work")}}, sandbox.Conflict)
	elsewhere := again
	elsewhere.Sandbox, elsewhere.Fired = sandbox.NewID(), now.Add(time.Second)
	apply(t, other, sandbox.Transaction{FireAlert: &elsewhere})
	done := a
	done.Resolved = now.Add(time.Minute)
	apply(t, other, sandbox.Transaction{ResolveAlert: &done})
	refuse(t, s, sandbox.Transaction{ResolveAlert: &done}, sandbox.Conflict)
	again.ID, again.Fired = sandbox.NewID(), now.Add(2*time.Minute)
	apply(t, s, sandbox.Transaction{FireAlert: &again}) // a new episode
	for name, c := range map[string]struct {
		filter sandbox.AlertFilter
		want   []sandbox.Alert
	}{
		"all":    {sandbox.AlertFilter{}, []sandbox.Alert{again, elsewhere, done}},
		"firing": {sandbox.AlertFilter{Firing: true, Rule: "cpu"}, []sandbox.Alert{again, elsewhere}},
		"newest": {sandbox.AlertFilter{Session: "work", Limit: 1}, []sandbox.Alert{again}},
		"none":   {sandbox.AlertFilter{Rule: "memory"}, []sandbox.Alert{}},
	} {
		got, err := other.Alerts(t.Context(), c.filter)
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
	pages(t, 3, func(after sandbox.ID) (ids []sandbox.ID) {
		list, err := s.Alerts(t.Context(), sandbox.AlertFilter{After: after, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			ids = append(ids, a.ID)
		}
		return ids
	})
	if n := len(all(t, s, sandbox.EventFilter{})); n != 1 {
		t.Errorf("%d events: one that was refused left its own", n)
	}
}

// letters wait until they were delivered, and are taken by one at a time.
func letters(t *testing.T, open Open) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	defer s.Close()
	defer other.Close()
	now := time.Now().UTC().Truncate(time.Millisecond)
	apply(t, s, sandbox.Transaction{PostLetters: []sandbox.Letter{
		{To: "a", Body: []byte("one\xff"), Posted: now}, {To: "b", Body: []byte("x"), Posted: now}, {To: "a", Body: []byte("two"), Posted: now},
	}})
	take := func(at time.Time, most int) []sandbox.Letter {
		list, err := other.TakeLetters(t.Context(), "a", at, at.Add(time.Minute), most)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := take(now, 1)
	if len(first) != 1 || string(first[0].Body) != "one\xff" || first[0].To != "a" || !first[0].Posted.Equal(now) || first[0].Attempts != 0 {
		t.Fatalf("taken: %+v", first)
	}
	second := take(now, 10)
	if len(second) != 1 || string(second[0].Body) != "two" {
		t.Fatalf("what is taken is taken again: %+v", second)
	}
	apply(t, s, sandbox.Transaction{DeleteLetters: []int64{second[0].ID}, RetryLetters: []sandbox.LetterRetry{{ID: first[0].ID, Next: now.Add(time.Second)}}})
	if early := take(now, 10); len(early) != 0 {
		t.Errorf("too early: %+v", early)
	}
	if late := take(now.Add(time.Second), 10); len(late) != 1 || late[0].Attempts != 1 {
		t.Errorf("put off: %+v", late)
	}
	// The clock is set by two days, both ways, and that is seen: it waits as before.
	apply(t, s, sandbox.Transaction{RetryLetters: []sandbox.LetterRetry{{ID: first[0].ID, Next: now.Add(time.Hour)}}})
	set := time.Duration(0)
	setClock(t, s, set)
	for _, by := range []time.Duration{48 * time.Hour, -48 * time.Hour, -30 * time.Minute} {
		now, set = now.Add(by), set+by
		setClock(t, s, set)
		if early := take(now.Add(59*time.Minute), 10); len(early) != 0 {
			t.Errorf("too early once the clock was set by %s: %+v", by, early)
		}
	}
	if late := take(now.Add(time.Hour), 10); len(late) != 1 || !late[0].Posted.Equal(now) {
		t.Errorf("once the clock was set: %+v", late)
	}
	// One that was put off before the clock was set back does not wait for that.
	if early := take(now.Add(-24*time.Hour), 10); len(early) != 1 {
		t.Errorf("after the clock was set back: %+v", early)
	}
}

// denied counts refused runs by session.
func denied(t *testing.T, open Open) {
	s := fresh(t, open)
	now := time.Now()
	old := anEvent(sandbox.EventExecDenied, "work")
	old.Time = now.Add(-time.Hour)
	apply(t, s, sandbox.Transaction{Events: []sandbox.Event{
		old, anEvent(sandbox.EventExecDenied, "work"), anEvent(sandbox.EventExecDenied, "work"), anEvent(sandbox.EventExecDenied, ""), anEvent(sandbox.EventExecEnded, "work"),
	}})
	got, err := s.Denied(t.Context(), now.Add(-time.Minute))
	if d := cmp.Diff(map[string]int{"work": 2, "": 1}, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}
