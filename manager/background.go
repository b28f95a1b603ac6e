package manager

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// startTracked starts a background exec. What was touched before it is recorded
// first, as the session's own. Its answers are those of [client.Client.Start].
func (m *Manager) startTracked(ctx context.Context, b *box.Box, r *resolved, d sandbox.Decision) (never *client.Outcome, err error) {
	if r.run.Guard {
		err = m.guardOn(ctx, b, r)
	} else {
		err = m.verify(ctx, b, r)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil || never != nil {
			m.unguard(r.id)
		}
	}()
	ways, err := m.openWays(ctx, b, r, d, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil || never != nil {
			err = joinErr(err, ways.close(ctx))
			return
		}
		ways.keep(ctx, b, r)
	}()
	r.free = make(chan struct{})
	cmd := r.command()
	ways.into(ctx, &cmd)
	cmd.Track, cmd.Later = m.tracked(r), r.run.Input || r.opens != nil
	r.record.PID, never, err = b.Client.Start(ctx, cmd)
	if errors.Is(err, sandbox.Conflict) && cmd.Track {
		if _, err := m.observe(ctx, b, sandbox.RecordOptions{Session: r.run.Session}); err != nil {
			return nil, err
		}
		cmd.Late = true
		r.record.PID, never, err = b.Client.Start(ctx, cmd)
	}
	return never, err
}

// guardOn watches what an exec in the background reads later, until its end is seen, its
// sandbox ends or this process does. Where it cannot be watched any more, and where it
// is another, the exec is ended.
func (m *Manager) guardOn(ctx context.Context, b *box.Box, r *resolved) error {
	ctx = context.WithoutCancel(ctx)
	watched, g, err := m.watch(ctx, b, r)
	if err != nil || watched == ctx {
		return err // or nothing is to be watched
	}
	m.guards.Store(r.id, g)
	m.tasks.Go(func() {
		<-watched.Done()
		g.stop()
		m.guards.Delete(r.id)
		why := context.Cause(watched)
		if errors.Is(why, context.Canceled) {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, killPatience)
		defer cancel()
		if err := m.killExec(ctx, r.run.Session, r.id, why.Error()); err != nil && !errors.Is(err, sandbox.NotFound) {
			m.cfg.Log.Warn("an exec goes on that is not watched any more", "exec", r.id, "why", why, "error", err)
		}
	})
	return nil
}

// unguard ends the watch over an exec, where there is one.
func (m *Manager) unguard(id sandbox.ID) {
	if g, ok := m.guards.LoadAndDelete(id); ok {
		g.(*guard).cancel(nil)
	}
}

// notStarted writes down that a background exec did not begin, once that is so:
// where nobody waited for the agent's answer, it may have.
func (m *Manager) notStarted(ctx context.Context, b *box.Box, r *resolved, why error) error {
	broken := brokenByCall(why)
	if broken == nil && ctx.Err() != nil {
		switch err := m.endUnheard(ctx, b, r); {
		case err == nil:
			exit := sandbox.Exit{Reason: sandbox.ReasonCanceled, Cause: "nobody waited for its start"}
			return m.finish(ctx, b, r, client.Outcome{Exit: exit}, nil, nil)
		case !errors.Is(err, sandbox.NotFound):
			broken = err
		}
	}
	err := m.neverBegan(ctx, b, r, why)
	if broken != nil {
		err = joinErr(err, m.abandon(ctx, b, r.id, broken))
	}
	return err
}

// letGo writes down that a background exec runs: from here on nobody has to live
// for it. One whose end was written down meanwhile, be it with its sandbox or its
// session, is ended. Errors: Conflict where it went with its session.
func (m *Manager) letGo(ctx context.Context, b *box.Box, r *resolved) (sandbox.ExecRecord, error) {
	defer close(r.free)
	e := r.record
	e.Holder = ""
	err := m.recordLate(ctx, sandbox.Transaction{While: e.ID, PutExecs: []sandbox.ExecRecord{e}})
	if err == nil {
		return e, nil
	}
	if !errors.Is(err, sandbox.Conflict) {
		m.cfg.Log.Warn("a background exec stays this process's", "exec", e.ID, "error", err)
		return r.record, nil
	}
	if err := m.endUnheard(ctx, b, r); err != nil && !errors.Is(err, sandbox.NotFound) {
		return sandbox.ExecRecord{}, joinErr(err, m.abandon(ctx, b, e.ID, err))
	}
	ended, err := m.execRecord(context.WithoutCancel(ctx), e.Session, e.ID)
	if errors.Is(err, sandbox.NotFound) {
		err = sandbox.Errorf(sandbox.Conflict, "session %s was removed while exec %s began", e.Session, e.ID.Short())
	}
	return ended, err
}

// endUnheard ends an exec that may have begun, whatever became of ctx.
func (m *Manager) endUnheard(ctx context.Context, b *box.Box, r *resolved) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
	defer cancel()
	return b.Client.Kill(ctx, r.id, "")
}
