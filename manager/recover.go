package manager

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// Recovered says what a recovery did.
type Recovered struct {
	Ended    int // execs whose end was read from their agent, or told as lost
	Running  int // execs that go on and that this manager now answers for
	Removed  int // sandboxes that had ended, or had never been finished, and temporary sessions
	Failures []error
}

// Recover takes up what dead managers of this state folder left: execs whose
// end nobody has written down, sandboxes that were being made, and temporary sessions,
// which it removes. Execs that
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
	views, err := m.cfg.Store.Sessions(ctx, sandbox.SessionFilter{})
	if err != nil {
		return Recovered{}, err
	}
	var did Recovered
	for _, v := range views {
		if m.outlives(v.Session) {
			if err := m.removeOutliving(ctx, v.Name); err != nil {
				did.Failures = append(did.Failures, err)
			}
			did.Removed++
			continue
		}
		for _, rec := range v.Sandboxes {
			if err := m.recoverBox(ctx, v, rec, &did); err != nil {
				did.Failures = append(did.Failures, err)
			}
		}
		for _, e := range v.Execs {
			if !e.Ended.IsZero() {
				continue
			}
			if e.Holder != "" && (e.Holder == m.cfg.Holder || m.cfg.Alive(e.Holder)) {
				continue // somebody starts it, or follows it
			}
			if err := m.recoverExec(ctx, v, e, &did); err != nil {
				did.Failures = append(did.Failures, err)
			}
		}
	}
	return did, ctx.Err()
}

// recoverBox removes a sandbox that was never finished, and one whose time is over
// although it could not end itself, being paused. Others know better when theirs
// is: the clock here may have been set.
func (m *Manager) recoverBox(ctx context.Context, v sandbox.SessionView, rec sandbox.SandboxRecord, did *Recovered) error {
	why := ""
	switch {
	case rec.State == sandbox.StateCreating && rec.Holder != m.cfg.Holder && !m.cfg.Alive(rec.Holder):
		why = "its maker died while making it"
	case rec.State == sandbox.StatePaused && !rec.Expires.IsZero() && m.cfg.Now().After(rec.Expires):
		why = "its time to live is over"
	default:
		return nil
	}
	v, unlock, err := m.lockSession(ctx, v.Name)
	if errors.Is(err, sandbox.NotFound) {
		return nil // it went with its session
	}
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.giveUp(ctx, v, rec, why); err != nil {
		return err
	}
	did.Removed++
	return nil
}

// outputPatience bounds what one agent may take to say how an exec goes: others
// wait to be asked.
const outputPatience = 10 * time.Second

// recoverExec writes down the end of an exec whose follower died. The agent
// keeps what nobody has read.
func (m *Manager) recoverExec(ctx context.Context, v sandbox.SessionView, e sandbox.ExecRecord, did *Recovered) error {
	lost := func(cause string) error {
		did.Ended++
		out := client.Outcome{Exit: sandbox.Exit{Reason: sandbox.ReasonInfra, Cause: cause}}
		return m.closeExec(ctx, e, out)
	}
	var rec *sandbox.SandboxRecord
	for i := range v.Sandboxes {
		if v.Sandboxes[i].ID == e.Sandbox {
			rec = &v.Sandboxes[i]
		}
	}
	if rec == nil {
		return lost("the caisson that followed it died, and its sandbox is gone")
	}
	if rec.State == sandbox.StatePaused {
		return nil // it can say nothing now
	}
	b, err := m.connect(ctx, v, *rec)
	if errors.Is(err, box.ErrEnded) {
		return lost("the caisson that followed it died, and its sandbox has ended")
	}
	if err != nil {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, outputPatience)
	defer cancel()
	out, over, err := b.Client.Output(ask, client.Command{ID: e.ID}, 0, 0)
	switch {
	case errors.Is(err, sandbox.NotFound) && e.Background && e.Holder != "":
		// Who was to start it has not heard that it began, so nobody has read its end.
		if err := b.Client.Forbid(ask, e.ID); err != nil {
			return err // it begins just now, say: then the next look finds it
		}
		return lost(sandbox.NeverBegan)
	case errors.Is(err, sandbox.NotFound):
		return lost("it had not begun, or its end was read and could not be written down")
	case err != nil:
		return err
	case over:
		did.Ended++
		return m.conclude(ctx, b, e, out)
	}
	did.Running++
	if e.Background {
		return nil // whoever asks for its output sees its end
	}
	e.Holder = m.cfg.Holder
	if err := m.record(ctx, sandbox.Transaction{While: e.ID, PutExecs: []sandbox.ExecRecord{e}, Events: []sandbox.Event{{
		Kind: sandbox.EventRecovered, Session: v.Name, Sandbox: e.Sandbox, Exec: e.ID,
	}}}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil // the next one takes it up
	}
	m.tasks.Go(func() { m.followRecovered(v, *rec, b, e) })
	return nil
}

// followRecovered waits for the end of an exec that was taken up, unless the
// manager closes first: then the next one takes it up.
func (m *Manager) followRecovered(v sandbox.SessionView, rec sandbox.SandboxRecord, b *box.Box, e sandbox.ExecRecord) {
	ctx := context.Background()
	out, err := b.Client.Attach(ctx, client.Command{ID: e.ID, Drop: true}, 0, 0)
	if err != nil || out.Reason == sandbox.ReasonInfra {
		if _, err := m.connect(ctx, v, rec); !errors.Is(err, box.ErrEnded) {
			return
		}
		out.Exit = sandbox.Exit{Reason: sandbox.ReasonInfra, Cause: "its sandbox has ended"}
		out.Usage = m.hostWall(e)
	}
	if err := m.conclude(ctx, b, e, out); err != nil {
		m.cfg.Log.Error("the end of a recovered exec could not be written down", "exec", e.ID, "error", err)
	}
}

// closeExec writes down the end of an exec, unless somebody has already: of all
// who may see it, one tells.
func (m *Manager) closeExec(ctx context.Context, e sandbox.ExecRecord, out client.Outcome) error {
	return m.closeExecWith(ctx, e, out, nil, nil)
}

func (m *Manager) closeExecWith(ctx context.Context, e sandbox.ExecRecord, out client.Outcome, changes []sandbox.FileChange, unrecorded error) error {
	out.Exit = out.Coded()
	event := endedEvent(e, out.Exit, out.Usage, out.Stdout, out.Stderr)
	change := sandbox.Transaction{While: e.ID, Events: []sandbox.Event{withChanges(event, changes, unrecorded)}}
	if e.Background {
		e.Ended, e.Exit, e.StartsUnjudged = m.cfg.Now().UTC(), out.Exit, out.Unjudged
		m.judgeOf(ctx, e.ID).record(&e, out.Starts)
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

// hostWall is what is known of the use of an exec that was ended with its
// sandbox, by the host's clock.
func (m *Manager) hostWall(e sandbox.ExecRecord) sandbox.Usage {
	return sandbox.Usage{Wall: max(0, m.cfg.Now().Sub(e.Started)), Methods: sandbox.Methods{Wall: client.HostClock}}
}
