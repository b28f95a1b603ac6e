package manager

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/sandbox"
)

// outlives reports whether a session is still there although the process is dead that
// it was to go with.
func (m *Manager) outlives(s sandbox.Session) bool {
	return s.Holder != "" && s.Holder != m.cfg.Holder && !m.cfg.Alive(s.Holder)
}

// removeOutliving removes such a session, unless that has happened: another may have its
// name by now.
func (m *Manager) removeOutliving(ctx context.Context, name string) error {
	gone := sandbox.Errorf(sandbox.NotFound, "session %s is removed", name)
	err := m.removeSession(ctx, name, func(v sandbox.SessionView) error {
		if !m.outlives(v.Session) {
			return gone
		}
		return nil
	})
	if errors.Is(err, sandbox.NotFound) {
		return nil
	}
	return err
}

// sweepSessions removes temporary sessions of dead processes, or only looks.
func (m *Manager) sweepSessions(ctx context.Context, dry bool) ([]sandbox.Orphan, error) {
	if m.cfg.Store == nil {
		return nil, nil
	}
	views, err := m.cfg.Store.Sessions(ctx, sandbox.SessionFilter{})
	if err != nil {
		return nil, err
	}
	var orphans []sandbox.Orphan
	for _, v := range views {
		if !m.outlives(v.Session) {
			continue
		}
		o := sandbox.Orphan{Kind: "session", ID: v.ID, Name: v.Name, Holder: v.Holder, Created: v.Created}
		if !dry {
			o.Done(m.removeOutliving(ctx, v.Name))
		}
		orphans = append(orphans, o)
	}
	return orphans, nil
}

// KeepSession has a session stay that was temporary. Errors: NotFound.
func (m *Manager) KeepSession(ctx context.Context, name string) error {
	v, unlock, err := m.lockSession(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if v.Holder == "" {
		return nil
	}
	v.Holder = ""
	return m.record(ctx, sandbox.Transaction{PutSession: &v.Session, Events: []sandbox.Event{{
		Kind: sandbox.EventSessionChanged, Session: name, Data: data(map[string]bool{"temporary": false}),
	}}})
}
