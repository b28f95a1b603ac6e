package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
)

// events checks that events come back as they were given, numbered and chained
// in their order.
func events(t *testing.T, open Open) {
	s := fresh(t, open)
	const n = 1200 // more than a page of any store
	for i := range n / 4 {
		var c sandbox.Transaction
		for j := range 4 {
			e := anEvent("k", "work")
			e.Exec, e.Sandbox, e.Data = sandbox.NewID(), sandbox.NewID(), json.RawMessage(fmt.Sprintf(`{"n":%d,"text":"\u0000 ☃ \\"}`, 4*i+j))
			c.Events = append(c.Events, e)
		}
		apply(t, s, c)
	}
	prev, at := store.Genesis, int64(0)
	for _, e := range all(t, s, sandbox.EventFilter{}) {
		at++
		if e.Seq != at || e.Prev != prev || e.Hash != store.Hash(e) || e.Actor != "me@here" || e.Time.IsZero() {
			t.Fatalf("event %d: %+v", at, e)
		}
		var data struct{ N int64 }
		if err := json.Unmarshal(e.Data, &data); err != nil || data.N != at-1 {
			t.Fatalf("event %d holds %s: %v", at, e.Data, err)
		}
		prev = e.Hash
	}
	if r := Sound(t, s); at != n || r.Events != n || r.First != 1 || r.Last != n || r.Head != prev {
		t.Errorf("%d events read, and the report is %+v", at, r)
	}
}

func filters(t *testing.T, open Open) {
	s := fresh(t, open)
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := sandbox.NewID()
	for i := range 10 {
		e := sandbox.Event{Time: base.Add(time.Duration(i) * time.Second), Kind: "even", Session: "a", Data: json.RawMessage(`{}`)}
		if i%2 == 1 {
			e.Kind, e.Session, e.Exec = "odd", "b", id
		}
		apply(t, s, sandbox.Transaction{Events: []sandbox.Event{e}})
	}
	for name, c := range map[string]struct {
		filter sandbox.EventFilter
		want   []int64
	}{
		"none":     {sandbox.EventFilter{}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"after":    {sandbox.EventFilter{After: 8}, []int64{9, 10}},
		"session":  {sandbox.EventFilter{Session: "a", Limit: 2}, []int64{1, 3}},
		"exec":     {sandbox.EventFilter{Exec: id, After: 6}, []int64{8, 10}},
		"kinds":    {sandbox.EventFilter{Kinds: []string{"odd", "other"}, Limit: 1}, []int64{2}},
		"since":    {sandbox.EventFilter{Since: base.Add(8 * time.Second)}, []int64{9, 10}},
		"until":    {sandbox.EventFilter{Until: base.Add(2 * time.Second)}, []int64{1, 2}},
		"together": {sandbox.EventFilter{Since: base.Add(2 * time.Second), Until: base.Add(6 * time.Second), Kinds: []string{"even"}}, []int64{3, 5}},
		"nothing":  {sandbox.EventFilter{Session: "c"}, nil},
		"newest":   {sandbox.EventFilter{Session: "a", Newest: true}, []int64{9}},
		"until it": {sandbox.EventFilter{Until: base.Add(2 * time.Second), Newest: true}, []int64{2}},
		"no newer": {sandbox.EventFilter{After: 10, Newest: true}, nil},
	} {
		var got []int64
		for _, e := range all(t, s, c.filter) {
			got = append(got, e.Seq)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: events %v, not %v", name, got, c.want)
		}
	}
}

// readingAndWriting checks that a reader who takes its time holds up nobody,
// and sees what comes meanwhile.
func readingAndWriting(t *testing.T, open Open) {
	s := fresh(t, open)
	Fill(t, s, 10)
	seen := 0
	for _, err := range s.Events(t.Context(), sandbox.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1 {
			Fill(t, s, 10)
		}
	}
	if seen < 10 {
		t.Errorf("%d events seen", seen)
	}
	broke := false
	for _, err := range s.Events(t.Context(), sandbox.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		broke = true
		break
	}
	if !broke {
		t.Error("nothing to read")
	}
	Fill(t, s, 1)
}

func prunedByAge(t *testing.T, open Open) {
	s := fresh(t, open)
	for i := range 10 {
		e := anEvent("k", "")
		if i < 6 {
			e.Time = time.Now().Add(-48 * time.Hour)
		}
		apply(t, s, sandbox.Transaction{Events: []sandbox.Event{e}})
	}
	before := Sound(t, s).Head
	n, err := s.Prune(t.Context(), sandbox.Retention{Age: sandbox.Duration(24 * time.Hour)})
	if err != nil || n.Events != 6 {
		t.Fatalf("pruned %+v, %v", n, err)
	}
	r := Sound(t, s)
	if r.First != 7 || r.Last != 11 || r.Events != 5 {
		t.Errorf("report: %+v", r)
	}
	list := all(t, s, sandbox.EventFilter{After: 10})
	if len(list) != 1 || list[0].Kind != sandbox.EventAuditPruned || list[0].Prev != before {
		t.Errorf("the pruning is not told by an event: %+v", list)
	}
	if n, err := s.Prune(t.Context(), sandbox.Retention{Age: sandbox.Duration(24 * time.Hour)}); err != nil || n != (sandbox.Pruned{}) {
		t.Errorf("pruned again %+v, %v", n, err)
	}
	if n, err := s.Prune(t.Context(), sandbox.Retention{}); err != nil || n != (sandbox.Pruned{}) {
		t.Errorf("a retention that keeps everything dropped %+v, %v", n, err)
	}
	Fill(t, s, 3)
	Sound(t, s)
}

func prunedBySize(t *testing.T, open Open) {
	s := fresh(t, open)
	Fill(t, s, 2000)
	for range 3 {
		n, err := s.Prune(t.Context(), sandbox.Retention{Bytes: 100 << 10})
		if err != nil || n.Events == 0 {
			t.Fatalf("pruned %+v, %v", n, err)
		}
		if r := Sound(t, s); r.Events < 100 || r.Events > 1000 {
			t.Errorf("%d events are left", r.Events)
		}
		Fill(t, s, 500)
		Sound(t, s)
	}
}

func prunedToNothing(t *testing.T, open Open) {
	dir := t.TempDir()
	s := open(t, dir)
	e := anEvent("k", "")
	e.Time = time.Now().Add(-48 * time.Hour)
	apply(t, s, sandbox.Transaction{Events: []sandbox.Event{e, e, e}})
	if n, err := s.Prune(t.Context(), sandbox.Retention{Age: sandbox.Duration(time.Hour)}); err != nil || n.Events != 3 {
		t.Fatalf("pruned %+v, %v", n, err)
	}
	if r := Sound(t, s); r.First != 4 || r.Events != 1 {
		t.Errorf("report: %+v", r)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	Fill(t, s, 1)
	Sound(t, s)
}

// verifiedUnderLoad checks that a log that grows and is pruned meanwhile is
// never called altered.
func verifiedUnderLoad(t *testing.T, open Open) {
	s := fresh(t, open)
	Fill(t, s, 300)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.Apply(t.Context(), sandbox.Transaction{Events: []sandbox.Event{anEvent("k", "")}}); err != nil {
					t.Errorf("apply: %v", err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if _, err := s.Prune(t.Context(), sandbox.Retention{Bytes: 50 << 10}); err != nil {
				t.Errorf("prune: %v", err)
				return
			}
		}
	})
	for range 12 {
		Sound(t, s)
	}
	close(stop)
	wg.Wait()
	Sound(t, s)
}

// clock checks that a clock that jumps both ways decides nothing about order.
func clock(t *testing.T, open Open) {
	s := fresh(t, open)
	now := time.Now()
	for _, d := range []time.Duration{0, -100 * 24 * time.Hour, time.Hour, -time.Hour, 1000 * 24 * time.Hour, 0} {
		e := anEvent("k", "")
		e.Time = now.Add(d)
		apply(t, s, sandbox.Transaction{Events: []sandbox.Event{e}})
	}
	if r := Sound(t, s); r.Last != 6 {
		t.Errorf("report: %+v", r)
	}
	// The second is old, but stands behind one that is young.
	if n, err := s.Prune(t.Context(), sandbox.Retention{Age: sandbox.Duration(24 * time.Hour)}); err != nil || n != (sandbox.Pruned{}) {
		t.Errorf("pruned %+v, %v", n, err)
	}
	Sound(t, s)
}

// twoHolders checks that two that have one state open see each other's changes,
// and that names and numbers are given once.
func twoHolders(t *testing.T, open Open) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	defer a.Close()
	defer b.Close()
	if a.ID() != b.ID() {
		t.Errorf("ids %q and %q of one state", a.ID(), b.ID())
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 40 {
		for _, s := range []store.Store{a, b} {
			wg.Go(func() {
				name := fmt.Sprintf("s%d", i)
				err := s.Apply(t.Context(), sandbox.Transaction{CreateSession: aSession(name), Events: []sandbox.Event{anEvent("made", name)}})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if !errors.Is(err, sandbox.Conflict) {
					t.Errorf("create: %v", err)
				}
			})
		}
	}
	wg.Wait()
	for _, s := range []store.Store{a, b} {
		list, err := s.Sessions(t.Context(), sandbox.SessionFilter{})
		if r := Sound(t, s); err != nil || len(list) != 40 || won != 40 || r.Events != 40 {
			t.Errorf("%d sessions, %d made, %d events, %v", len(list), won, r.Events, err)
		}
	}
}
