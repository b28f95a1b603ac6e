package manager

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// An exec in the background has what it started in its record. Who judges that puts it
// there with the end, or behind that where another process has told of the end.

// keep judges for an exec in the background until that has ended, or this process is
// about to. Nothing is written down of its end before this process lets go of it.
func (s *starting) keep(ctx context.Context, b *box.Box, free <-chan struct{}) {
	if s == nil {
		return
	}
	id := s.event.Exec
	s.m.mu.Lock()
	s.m.judges[id] = s
	s.m.mu.Unlock()
	s.m.tasks.Go(func() {
		<-s.over
		<-free
		if err := errors.Join(s.close(ctx), s.settle(context.WithoutCancel(ctx), b)); err != nil {
			s.m.cfg.Log.Error("not all is written down of what an exec started", "exec", id, "error", err)
		}
		s.m.mu.Lock()
		defer s.m.mu.Unlock()
		if s.m.judges[id] == s { // else another one took its place
			delete(s.m.judges, id)
		}
		close(s.settled)
	})
}

// Outlast waits until nothing runs any more in the background whose starts this process
// sees, and all is written down of that, or ctx is done.
func (m *Manager) Outlast(ctx context.Context) {
	for {
		var s *starting
		m.mu.Lock()
		for _, s = range m.judges {
			break
		}
		m.mu.Unlock()
		if s == nil {
			return
		}
		select {
		case <-s.settled:
		case <-ctx.Done():
			return
		}
	}
}

// settle writes down what an exec in the background started, with its end where it has
// ended and nobody has told of that.
func (s *starting) settle(ctx context.Context, b *box.Box) error {
	for range 3 { // somebody else may tell of the end meanwhile
		e, err := s.m.execRecord(ctx, s.event.Session, s.event.Exec)
		switch {
		case errors.Is(err, sandbox.NotFound):
			return nil // it went with its session
		case err != nil:
			return err
		case len(e.Starts) > 0 && !s.again, s.again && !s.seated.Load():
			return nil
		case !e.Ended.IsZero():
			if s.record(&e, 0); len(e.Starts) == 0 {
				return nil
			}
			return s.m.recordLate(ctx, sandbox.Transaction{PutExecs: []sandbox.ExecRecord{e}})
		}
		wait, cancel := context.WithTimeout(ctx, killPatience)
		out, err := b.Client.Attach(wait, client.Command{ID: e.ID, Drop: true, Look: true}, 0, 0)
		cancel()
		if err == nil && out.Reason != sandbox.ReasonInfra {
			if err := s.m.conclude(ctx, b, e, out); err != nil {
				return err
			}
			continue
		}
		// It goes on, as this process does not, or its sandbox is gone.
		s.record(&e, 0)
		err = s.m.recordLate(ctx, sandbox.Transaction{While: e.ID, PutExecs: []sandbox.ExecRecord{e}})
		if !errors.Is(err, sandbox.Conflict) {
			return err
		}
	}
	return nil
}

// judgeOf is who judges for an exec in the background, once that has heard all, where
// it is of this process; nil is none.
func (m *Manager) judgeOf(ctx context.Context, id sandbox.ID) *starting {
	m.mu.Lock()
	s := m.judges[id]
	m.mu.Unlock()
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	select {
	case <-s.over:
	case <-ctx.Done(): // the agent does not do as agents do
	}
	return s
}

// record puts what an exec in the background started into its record; all counts it,
// as far as its agent said.
func (s *starting) record(e *sandbox.ExecRecord, all int) {
	all = max(all, len(e.Starts)+e.StartsLeftOut)
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if all = max(all, len(s.told)+s.count); len(s.told) > 0 {
			e.Starts = recorded(s.told)
		}
	}
	e.StartsLeftOut = all - len(e.Starts)
}

// What a record has room for: bytes of all starts, and of each beside its texts; and
// of the words of one.
const (
	recordedStarts = 64 << 10
	recordedOne    = 150
	recordedWords  = 256
)

// recorded are the starts that a record has room for, those that were refused before
// others, in the order in which they were.
func recorded(told []sandbox.Start) []sandbox.Start {
	room := recordedStarts
	var kept []sandbox.Start
	for _, refused := range []bool{true, false} {
		for _, t := range told {
			if (t.Verdict == sandbox.Deny) != refused {
				continue
			}
			words := recordedWords
			for i, a := range t.Argv {
				if words -= len(a); words < 0 {
					t.Argv, t.Cut = t.Argv[:i], true
					break
				}
			}
			if room -= recordedOne + len(t.Path) + len(t.Why) + recordedWords - max(words, 0); room < 0 {
				break
			}
			kept = append(kept, t)
		}
	}
	slices.SortStableFunc(kept, func(a, b sandbox.Start) int { return cmp.Compare(a.At, b.At) })
	return kept
}

// shownStarts are starts as an agent remembers them.
func shownStarts(list []Start) (shown []sandbox.Start) {
	for _, t := range list {
		one := toldOf(t)
		if t.Asks {
			one.Verdict = sandbox.Ask
		}
		if t.End != nil {
			endOf(&one, t.End)
		}
		shown = append(shown, one)
	}
	return shown
}

// addStarts adds to execs that have ended what their records say that they started.
func (m *Manager) addStarts(ctx context.Context, session string, all []Process) error {
	if !m.cfg.Starts.Sees() || !slices.ContainsFunc(all, func(p Process) bool { return !p.Running }) {
		return nil
	}
	v, err := m.Session(ctx, session)
	if err != nil {
		return err
	}
	of := map[sandbox.ID]*sandbox.ExecRecord{}
	for i := range v.Execs {
		of[v.Execs[i].ID] = &v.Execs[i]
	}
	for i := range all {
		if e := of[all[i].ID]; e != nil && !all[i].Running {
			all[i].Starts, all[i].StartsLeftOut, all[i].StartsUnjudged = e.Starts, e.StartsLeftOut, e.StartsUnjudged
		}
	}
	return nil
}
