package manager

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// Recovered says what a recovery did.
type Recovered struct {
	Ended    int // execs whose end was read from their agent, or told as lost
	Running  int // execs that go on and that this manager now answers for
	Removed  int // sandboxes that had ended, or had never been finished
	Failures []error
}

// Recover takes up what dead managers of this state folder left: execs whose
// end nobody has written down, and sandboxes that were being made. Execs that
// still run are followed until the manager closes. It can run beside anything:
// one process recovers at a time, and only what no live one answers for.
func (m *Manager) Recover(ctx context.Context) (Recovered, error) {
	if m.cfg.Store == nil {
		return Recovered{}, nil
	}
	unlock, err := m.lock(ctx, "recover")
	if err != nil {
		return Recovered{}, err
	}
	defer unlock()
	views, err := m.cfg.Store.Sessions(ctx)
	if err != nil {
		return Recovered{}, err
	}
	var rec Recovered
	for _, v := range views {
		for _, b := range v.Sandboxes {
			if err := m.recoverBox(ctx, v, b, &rec); err != nil {
				rec.Failures = append(rec.Failures, err)
			}
		}
		for _, e := range v.Execs {
			if !e.Ended.IsZero() {
				continue
			}
			if followed := e.Owner == m.cfg.Owner || m.cfg.Alive(e.Owner); followed && !e.Background {
				continue
			}
			if err := m.recoverExec(ctx, v, e, &rec); err != nil {
				rec.Failures = append(rec.Failures, err)
			}
		}
	}
	return rec, ctx.Err()
}

// recoverBox removes a sandbox that was never finished, and one whose time is
// over although it could not end itself, being paused.
func (m *Manager) recoverBox(ctx context.Context, v sandbox.SessionView, b sandbox.SandboxRecord, rec *Recovered) error {
	why := ""
	switch {
	case b.State == sandbox.StateCreating && b.Owner != m.cfg.Owner && !m.cfg.Alive(b.Owner):
		why = "its maker died while making it"
	case b.State != sandbox.StateGone && !b.Expires.IsZero() && m.cfg.Now().After(b.Expires):
		why = "its time to live is over"
	default:
		return nil
	}
	unlock, err := m.lock(ctx, "session-"+v.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.giveUp(ctx, v, b, why); err != nil {
		return err
	}
	rec.Removed++
	return nil
}

// recoverExec writes down the end of an exec whose follower died. The agent
// keeps what nobody has read.
func (m *Manager) recoverExec(ctx context.Context, v sandbox.SessionView, e sandbox.ExecRecord, rec *Recovered) error {
	lost := func(cause string) error {
		rec.Ended++
		out := client.Outcome{Exit: sandbox.Exit{Code: 137, Reason: sandbox.ReasonInfra, Cause: cause}}
		return m.closeExec(ctx, e, out)
	}
	var box *sandbox.SandboxRecord
	for i := range v.Sandboxes {
		if v.Sandboxes[i].ID == e.Sandbox {
			box = &v.Sandboxes[i]
		}
	}
	if box == nil {
		return lost("the caisson that followed it died, and its sandbox is gone")
	}
	if box.State == sandbox.StatePaused {
		return nil // it can say nothing now
	}
	l, err := m.connect(ctx, v, *box)
	if ended(err) {
		return lost("the caisson that followed it died, and its sandbox has ended")
	}
	if err != nil {
		return err
	}
	out, over, err := l.client.Output(ctx, client.Command{ID: e.ID}, 0, 0)
	switch {
	case errors.Is(err, sandbox.NotFound):
		return lost("the caisson that followed it died before it began")
	case err != nil:
		return err
	case over:
		rec.Ended++
		return m.closeExec(ctx, e, out)
	}
	rec.Running++
	if e.Background {
		return nil // whoever asks for its output sees its end
	}
	e.Owner = m.cfg.Owner
	if err := m.record(ctx, sandbox.Change{While: e.ID, PutExecs: []sandbox.ExecRecord{e}, Events: []sandbox.Event{{
		Kind: sandbox.EventRecovered, Session: v.Name, Sandbox: e.Sandbox, Exec: e.ID,
	}}}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil // the next one takes it up
	}
	m.tasks.Go(func() { m.followRecovered(v, *box, l, e) })
	return nil
}

// followRecovered waits for the end of an exec that was taken up, unless the
// manager closes first: then the next one takes it up.
func (m *Manager) followRecovered(v sandbox.SessionView, b sandbox.SandboxRecord, l *link, e sandbox.ExecRecord) {
	ctx := context.Background()
	out, err := l.client.Attach(ctx, client.Command{ID: e.ID, Drop: true}, 0, 0)
	if err != nil || out.Reason == sandbox.ReasonInfra {
		if _, err := m.connect(ctx, v, b); !ended(err) {
			return
		}
		out.Exit = sandbox.Exit{Code: 137, Reason: sandbox.ReasonInfra, Cause: "its sandbox has ended"}
	}
	if err := m.closeExec(ctx, e, out); err != nil {
		m.cfg.Log.Error("the end of a recovered exec could not be written down", "exec", e.ID, "error", err)
	}
}

// closeExec writes down the end of an exec, unless somebody has already: of all
// who may see it, one tells.
func (m *Manager) closeExec(ctx context.Context, e sandbox.ExecRecord, out client.Outcome) error {
	return m.closeExecWith(ctx, e, out, nil)
}

func (m *Manager) closeExecWith(ctx context.Context, e sandbox.ExecRecord, out client.Outcome, changes []sandbox.FileChange) error {
	event := endedEvent(e.ID, e.Sandbox, e.Session, out.Exit, out.Usage, out.Stdout, out.Stderr)
	change := sandbox.Change{While: e.ID, Events: []sandbox.Event{withChanges(event, changes)}}
	if e.Background {
		e.Ended, e.Exit = m.cfg.Now().UTC(), out.Exit
		change.PutExecs = []sandbox.ExecRecord{e}
	} else {
		change.DeleteExecs = []sandbox.ID{e.ID}
	}
	err := m.recordLate(ctx, change)
	if errors.Is(err, sandbox.Conflict) {
		return nil
	}
	return err
}
