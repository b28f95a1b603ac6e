package manager_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// meanwhile is a store behind whose back something happens right after a change
// of a kind was made.
type meanwhile struct {
	manager.Store
	kind string
	do   func()
}

func (s *meanwhile) Apply(ctx context.Context, c sandbox.Transaction) error {
	err := s.Store.Apply(ctx, c)
	if err == nil && len(c.Events) > 0 && c.Events[0].Kind == s.kind {
		s.do()
	}
	return err
}

// between has another process do something between the announcement of a
// background exec and its start, and returns what the start said.
func (p *place) between(t *testing.T, do func(other *manager.Manager)) (sandbox.ExecRecord, error) {
	t.Helper()
	other := p.manager(t)
	s := &meanwhile{Store: p.store, kind: sandbox.EventExecStarted, do: func() { do(other) }}
	m, err := manager.New(manager.Config{
		Runtimes: p.kit.Runtimes(t), Images: p.kit.Images, Gate: manager.Unjudged, Store: s, StateID: p.store.ID(), LockDir: p.dir + "/locks",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m.StartIn(t.Context(), "work", sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "touch began; exec sleep 600"}}, sandbox.Local{})
}

// TestAnnouncedIsLeftAlone has another process recover while one is about to
// start a background exec. It is that one's until it runs, and nobody's from then
// on.
func TestAnnouncedIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	sh(t, p.Manager, "work", "true")
	e, err := p.between(t, func(other *manager.Manager) {
		if rec, err := other.Recover(t.Context()); err != nil || rec.Ended != 0 || len(rec.Failures) > 0 {
			t.Errorf("recovered %+v, %v", rec, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	v := must(p.Session(t.Context(), "work"))
	if len(v.Execs) != 1 || v.Execs[0].ID != e.ID || !v.Execs[0].Ended.IsZero() || v.Execs[0].Holder != "" {
		t.Errorf("the session has %+v", v.Execs)
	}
	if _, err := p.Snapshot(t.Context(), "work", ""); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a snapshot under it: %v", err)
	}
	if rec, err := p.Recover(t.Context()); err != nil || rec.Running != 1 || rec.Ended != 0 {
		t.Errorf("once it runs: %+v, %v", rec, err)
	}
	if err := p.KillExec(t.Context(), "work", e.ID); err != nil {
		t.Error(err)
	}
}

// TestTakenForDead has another process take one for dead that is about to start a
// background exec, as where its request is still on its way when it dies: what is
// said never to have begun never does.
func TestTakenForDead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	sh(t, p.Manager, "work", "true")
	other, err := manager.New(manager.Config{
		Runtimes: p.kit.Runtimes(t), Images: p.kit.Images, Gate: manager.Unjudged, Store: p.store, StateID: p.store.ID(), LockDir: p.dir + "/locks",
		Holder: "other", Alive: func(holder string) bool { return holder == "other" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	if e, err := p.between(t, func(*manager.Manager) {
		if rec, err := other.Recover(t.Context()); err != nil || rec.Ended != 1 || len(rec.Failures) > 0 {
			t.Errorf("recovered %+v, %v", rec, err)
		}
	}); err == nil {
		t.Errorf("it begins: %+v", e)
	}
	v := must(p.Session(t.Context(), "work"))
	if len(v.Execs) != 1 || v.Execs[0].Ended.IsZero() || v.Execs[0].Exit.Reason != sandbox.ReasonInfra || v.Execs[0].Exit.Cause != sandbox.NeverBegan {
		t.Errorf("the session has %+v", v.Execs)
	}
	if res := sh(t, p.Manager, "work", "test ! -e began"); res.Code != 0 || res.Replaced {
		t.Errorf("it began: %+v", res.Exit)
	}
}

// TestEndedWhileItStarts has another process write down the end of a background
// exec that is about to start. It does not run on.
func TestEndedWhileItStarts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	sh(t, p.Manager, "work", "true")
	e, err := p.between(t, func(*manager.Manager) {
		v := must(p.Session(t.Context(), "work"))
		over := v.Execs[0]
		over.Ended, over.Exit = v.Created, sandbox.Exit{Reason: sandbox.ReasonInfra, Code: 125}
		if err := p.store.Apply(t.Context(), sandbox.Transaction{While: over.ID, PutExecs: []sandbox.ExecRecord{over}, Events: []sandbox.Event{{
			Time: v.Created, Kind: sandbox.EventExecEnded, Session: "work", Sandbox: over.Sandbox, Exec: over.ID,
		}}}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || e.Ended.IsZero() {
		t.Errorf("%+v, %v", e, err)
	}
	for _, i := range must(p.Processes(t.Context(), "work")) {
		if i.Running {
			t.Errorf("it runs on: %+v", i)
		}
	}
}
