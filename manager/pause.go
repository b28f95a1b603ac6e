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

// StopSession ends a session's sandboxes with all that runs in them. Its workspace
// stays, and its next use makes another. Errors: NotFound.
func (m *Manager) StopSession(ctx context.Context, name string) error {
	const cause = "its session was stopped"
	v, unlock, err := m.lockSession(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	m.stopAll(ctx, v, cause)
	if v, err = m.running(ctx, name); err != nil {
		return err
	}
	return m.endBoxes(ctx, v, cause)
}

// stopAll has what runs in a session's sandboxes told why it ends. What cannot be told
// that ends with its sandbox.
func (m *Manager) stopAll(ctx context.Context, v sandbox.SessionView, cause string) {
	for _, rec := range v.Sandboxes {
		if rec.State != sandbox.StateReady {
			continue
		}
		b, err := m.connect(ctx, v, rec)
		if err != nil {
			continue // it has ended, or ends now
		}
		if err := m.stopExecs(ctx, b, cause); err != nil {
			m.cfg.Log.Info("end what runs in a sandbox that goes", "sandbox", rec.ID, "error", err)
		}
	}
}

// eachBox moves all sandboxes of a session from one state to another.
func (m *Manager) eachBox(ctx context.Context, name string, from, to sandbox.State, kind string, do func(runtimes.Pauser) error) error {
	v, unlock, err := m.lockSession(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	done, err := m.moveBoxes(ctx, v, from, to, kind, do)
	if err == nil && done == 0 {
		err = sandbox.Errorf(sandbox.Conflict, "session %s has no sandbox that is %s", name, from).
			WithHint("see its state with: caisson session show %s", name)
	}
	return err
}

// moveBoxes is eachBox while the session's lock is held. It returns how many were moved.
func (m *Manager) moveBoxes(ctx context.Context, v sandbox.SessionView, from, to sandbox.State, kind string, do func(runtimes.Pauser) error) (done int, err error) {
	for _, rec := range v.Sandboxes {
		if rec.State != from {
			continue
		}
		if to == sandbox.StatePaused {
			if err := m.checkHeld(rec.ID); err != nil {
				return done, err
			}
		}
		h, err := handleOf(rec)
		if err != nil {
			return done, err
		}
		err = m.freeze(ctx, h, do)
		if errors.Is(err, box.ErrEnded) {
			if err := m.giveUp(ctx, v, rec, "it had ended"); err != nil {
				return done, err
			}
			continue
		}
		if err != nil {
			return done, err
		}
		if rec.State, err = rec.State.Next(to); err != nil {
			return done, err
		}
		change := sandbox.Transaction{PutSandboxes: []sandbox.SandboxRecord{rec}, Events: []sandbox.Event{{Kind: kind, Session: v.Name, Sandbox: rec.ID}}}
		if err := m.recordLate(ctx, change); err != nil {
			return done, err
		}
		if to == sandbox.StateReady {
			m.use(ctx, v, rec)
		}
		done++
	}
	return done, nil
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
