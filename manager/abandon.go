package manager

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// errCut is why a sandbox must not be used by who lost the connection to it.
// Nothing is known of the sandbox itself.
var errCut = errors.New("the connection to its agent was lost")

// brokenBy is why a sandbox must not be used again after an exec ended so in it:
// something may be left in it that could not be ended. nil is that it may.
func brokenBy(out client.Outcome) error {
	switch {
	case out.Cut:
		return errCut
	case out.Broken:
		return errors.New(out.Cause)
	}
	return nil
}

// brokenByCall is the same after a call of its agent failed.
func brokenByCall(err error) error {
	if errors.Is(err, sandbox.Unavailable) && !errors.Is(err, client.ErrForged) {
		return errCut
	}
	return forgedBy(err)
}

// forgedBy is err where it says that the agent broke the protocol.
func forgedBy(err error) error {
	if errors.Is(err, client.ErrForged) {
		return err
	}
	return nil
}

// abandonPatience bounds the end of a session's sandbox, and writeOffPatience the
// wait to write it down for others that make or end one of that session.
const (
	abandonPatience  = 2 * box.EndPatience
	writeOffPatience = 30 * time.Second
)

// killPatience bounds the end of an exec that nobody follows any more.
const killPatience = 10 * time.Second

// abandon gives up a session's sandbox that an exec found broken: for every
// process, with all that runs in it. One whose connection alone was lost goes on
// where it can be reached again and the exec be ended in it.
func (m *Manager) abandon(ctx context.Context, b *box.Box, exec sandbox.ID, broken error) error {
	m.drop(b.ID)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonPatience)
	defer cancel()
	v, rec, err := m.standing(ctx, b.Plan.Spec.Session, b.ID)
	if err != nil || rec == nil {
		return err
	}
	cut := errors.Is(broken, errCut) && forgedBy(broken) == nil
	if cut && (m.isClosed() || rec.State == sandbox.StatePaused || m.reach(ctx, v, *rec, exec)) {
		return nil
	}
	if err = m.writeOff(ctx, *rec, broken.Error(), cut); err != nil && cut {
		m.cfg.Log.Warn("a sandbox whose connection was lost could not be given up", "sandbox", rec.ID, "error", err)
		return nil // an engine that went away too: the next use finds out
	}
	return err
}

// standing looks a session's sandbox up. nil is that it is gone, maybe with its
// session.
func (m *Manager) standing(ctx context.Context, session string, id sandbox.ID) (sandbox.SessionView, *sandbox.SandboxRecord, error) {
	v, err := m.running(ctx, session)
	if errors.Is(err, sandbox.NotFound) {
		return v, nil, nil
	}
	for i := range v.Sandboxes {
		if rec := &v.Sandboxes[i]; rec.ID == id && rec.State != sandbox.StateGone {
			return v, rec, err
		}
	}
	return v, nil, err
}

// writeOff gives a sandbox up and writes down why. What is broken ends even while
// others hold the session for long; who lost a connection waits for its turn, since
// another may have ended the sandbox and know why.
func (m *Manager) writeOff(ctx context.Context, gone sandbox.SandboxRecord, why string, cut bool) error {
	unlock, free, err := filelock.Try(m.lockPath(sessionLock(gone.Session)))
	if err != nil {
		return err
	}
	if !free {
		if !cut {
			if err := m.destroyBox(ctx, gone); err != nil {
				return err
			}
		}
		wait, cancel := context.WithTimeout(ctx, writeOffPatience)
		defer cancel()
		unlock, err = m.lock(wait, sessionLock(gone.Session))
		if err != nil && wait.Err() != nil {
			// Whoever uses it next finds that it is not there.
			m.cfg.Log.Warn("a sandbox was given up, which is not written down", "sandbox", gone.ID, "why", why)
			return nil
		}
		if err != nil {
			return err
		}
	}
	defer unlock()
	v, rec, err := m.standing(ctx, gone.Session, gone.ID)
	if err != nil || rec == nil {
		return err
	}
	return m.giveUp(ctx, v, *rec, why)
}

// reach connects to a sandbox again, and ends an exec in it that nobody follows
// any more.
func (m *Manager) reach(ctx context.Context, v sandbox.SessionView, rec sandbox.SandboxRecord, exec sandbox.ID) bool {
	b, err := m.connect(ctx, v, rec)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	if err = b.Client.Kill(ctx, exec, ""); err == nil || errors.Is(err, sandbox.NotFound) {
		return true
	}
	m.drop(rec.ID)
	return false
}

func (m *Manager) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// conclude writes down the end of an exec that somebody read, and gives up its
// sandbox where that end says so.
func (m *Manager) conclude(ctx context.Context, b *box.Box, e sandbox.ExecRecord, out client.Outcome) error {
	m.unguard(e.ID)
	err := m.closeExec(ctx, e, out)
	if broken := brokenBy(out); broken != nil {
		err = joinErr(err, m.abandon(ctx, b, e.ID, broken))
	}
	return err
}
