package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// PauseSession freezes a session's sandboxes. Errors: Conflict where one is
// paused or none is there, Unsupported by the runtime.
func (m *Manager) PauseSession(ctx context.Context, name string) error {
	return m.eachBox(ctx, name, sandbox.StateReady, sandbox.StatePaused, sandbox.EventSandboxPaused,
		func(p runtimes.Pauser) error { return p.Pause(ctx) })
}

// ResumeSession lets a paused session's sandboxes go on. That is a use of them:
// their idle time begins anew.
func (m *Manager) ResumeSession(ctx context.Context, name string) error {
	return m.eachBox(ctx, name, sandbox.StatePaused, sandbox.StateReady, sandbox.EventSandboxResumed,
		func(p runtimes.Pauser) error { return p.Resume(ctx) })
}

// eachBox moves all sandboxes of a session from one state to another.
func (m *Manager) eachBox(ctx context.Context, name string, from, to sandbox.State, kind string, do func(runtimes.Pauser) error) error {
	v, unlock, err := m.lockSession(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	done := 0
	for _, rec := range v.Sandboxes {
		if rec.State != from {
			continue
		}
		if to == sandbox.StatePaused {
			if err := m.checkHeld(rec.ID); err != nil {
				return err
			}
		}
		h, err := handleOf(rec)
		if err != nil {
			return err
		}
		err = m.freeze(ctx, h, do)
		if errors.Is(err, box.ErrEnded) {
			if err := m.giveUp(ctx, v, rec, "it had ended"); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if rec.State, err = rec.State.Next(to); err != nil {
			return err
		}
		change := sandbox.Transaction{PutSandboxes: []sandbox.SandboxRecord{rec}, Events: []sandbox.Event{{Kind: kind, Session: name, Sandbox: rec.ID}}}
		if err := m.recordLate(ctx, change); err != nil {
			return err
		}
		if to == sandbox.StateReady {
			m.use(ctx, v, rec)
		}
		done++
	}
	if done == 0 {
		return sandbox.Errorf(sandbox.Conflict, "session %s has no sandbox that is %s", name, from).
			WithHint("see its state with: caisson session show %s", name)
	}
	return nil
}

// freeze pauses a sandbox, or lets it go on. The error of one that has ended says
// so.
func (m *Manager) freeze(ctx context.Context, h runtimes.Handle, do func(runtimes.Pauser) error) error {
	inst, err := m.attach(ctx, h)
	if errors.Is(err, sandbox.NotFound) {
		return fmt.Errorf("%w: %w", box.ErrEnded, err)
	}
	if err != nil {
		return err
	}
	p, ok := inst.(runtimes.Pauser)
	if !ok {
		return sandbox.Errorf(sandbox.Unsupported, "this runtime cannot pause a sandbox")
	}
	if err = do(p); err == nil {
		return nil
	}
	if why := box.Whether(ctx, inst, err); errors.Is(why, box.ErrEnded) {
		return why
	}
	return err
}

// use tells a sandbox that it is used. One that does not hear of it has what was
// left of its idle time.
func (m *Manager) use(ctx context.Context, v sandbox.SessionView, rec sandbox.SandboxRecord) {
	b, err := m.connect(ctx, v, rec)
	if err == nil {
		err = b.Client.Renew(ctx, nil, nil) // any call is a use
	}
	if err != nil {
		m.cfg.Log.Info("a sandbox was resumed and does not answer", "sandbox", rec.ID, "error", err)
	}
}
