package manager

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// born and died tell who watches which sandboxes of one-shots and of [Sandbox]
// live. Those of sessions are known by their connections.
func (m *Manager) born(b *box.Box) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lives[b.ID] = b
}

func (m *Manager) died(b *box.Box) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lives, b.ID)
}

// Live lists the sandboxes that this process is connected to.
func (m *Manager) Live() []sandbox.LiveSandbox {
	var all []sandbox.LiveSandbox
	add := func(b *box.Box) {
		s := sandbox.LiveSandbox{ID: b.ID, Session: b.Plan.Spec.Session, Owner: b.Owner, Labels: b.Labels, Language: b.Plan.Spec.Language, Refused: b.RefusedSince(m.cfg.Now().Add(-time.Minute))}
		for _, x := range b.Running() {
			s.Execs = append(s.Execs, x.LiveExec)
		}
		all = append(all, s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.lives {
		add(b)
	}
	for _, b := range m.boxes {
		select {
		case <-b.Client.Done(): // its connection is lost
		default:
			add(b)
		}
	}
	slices.SortFunc(all, func(a, b sandbox.LiveSandbox) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// liveBox finds a sandbox that lives here.
func (m *Manager) liveBox(id sandbox.ID) (*box.Box, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.boxes[id]
	if b == nil {
		b = m.lives[id]
	}
	if b == nil {
		return nil, sandbox.Errorf(sandbox.NotFound, "sandbox %s does not live in this process", id.Short())
	}
	return b, nil
}

// Sample reads what a sandbox uses that lives in this process. Errors: NotFound,
// Unavailable.
func (m *Manager) Sample(ctx context.Context, id sandbox.ID) (sandbox.Sample, error) {
	b, err := m.liveBox(id)
	if err != nil {
		return sandbox.Sample{}, err
	}
	return b.Sample(ctx)
}

// Reach connects to the sandboxes of sessions that are ready, so that
// [Manager.Live] has them. Connecting is no use of them. One that does not answer
// is left out.
func (m *Manager) Reach(ctx context.Context) error {
	if m.cfg.Store == nil {
		return nil
	}
	views, err := m.Sessions(ctx, sandbox.SessionFilter{})
	if err != nil {
		return err
	}
	for _, v := range views {
		for _, b := range v.Sandboxes {
			if b.State != sandbox.StateReady {
				continue
			}
			if _, err := m.connect(ctx, v, b); err != nil {
				m.cfg.Log.Info("a sandbox cannot be watched", "sandbox", b.ID, "session", v.Name, "error", err)
			}
		}
	}
	return ctx.Err()
}

// Act does what an alert about a sandbox that lives here asks for. What it ends is
// canceled with that cause. A session is paused as a whole; a one-shot that is
// paused ends when its time is over. Errors: NotFound, Unsupported where the
// runtime cannot pause, and those of the runtime.
func (m *Manager) Act(ctx context.Context, id sandbox.ID, action sandbox.AlertAction, cause string) error {
	b, err := m.liveBox(id)
	if err != nil {
		return err
	}
	switch action {
	case sandbox.ActStopExec:
		return m.stopExecs(ctx, b, cause)
	case sandbox.ActPause:
		if b.Session != "" {
			return m.PauseSession(ctx, b.Plan.Spec.Session)
		}
		p, ok := b.Instance.(runtimes.Pauser)
		if !ok {
			return sandbox.Errorf(sandbox.Unsupported, "this runtime cannot pause a sandbox")
		}
		return p.Pause(ctx)
	case sandbox.ActStopSandbox:
		if err := m.stopExecs(ctx, b, cause); err != nil {
			return err
		}
		if b.Session == "" {
			return b.Instance.Destroy(ctx) // whoever uses it next makes another
		}
		return m.stopBox(ctx, b, cause)
	case sandbox.ActNone:
	}
	return nil
}

// stopPatience bounds how long stopped execs are waited for.
const stopPatience = 20 * time.Second

// stopExecs cancels what runs in a sandbox, and waits for the ends of what this
// process follows.
func (m *Manager) stopExecs(ctx context.Context, b *box.Box, cause string) error {
	here := b.Running()
	var errs []error
	if b.Session != "" {
		errs = append(errs, m.stopRecorded(ctx, b, here, cause))
	}
	for _, x := range here {
		x.Stop(cause)
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	for _, x := range here {
		select {
		case <-x.Over():
		case <-ctx.Done():
			errs = append(errs, sandbox.Errorf(sandbox.TimedOut, "exec %s has not ended", x.ID.Short()))
		}
	}
	return errors.Join(errs...)
}

// stopRecorded has the agent end the execs of a session's sandbox, so that all who
// follow one are told the cause. Those that this process follows need no agent for
// that, and its errors there are not told.
func (m *Manager) stopRecorded(ctx context.Context, b *box.Box, here []*box.Exec, cause string) error {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	v, err := m.running(ctx, b.Plan.Spec.Session)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range v.Execs {
		if e.Sandbox != b.ID || !e.Ended.IsZero() {
			continue
		}
		ours := slices.ContainsFunc(here, func(x *box.Exec) bool { return x.ID == e.ID })
		if err := m.killExec(ctx, v.Name, e.ID, cause); err != nil && !ours && !errors.Is(err, sandbox.NotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// stopBox destroys a session's sandbox.
func (m *Manager) stopBox(ctx context.Context, b *box.Box, why string) error {
	v, unlock, err := m.lockSession(ctx, b.Plan.Spec.Session)
	if err != nil {
		return err
	}
	defer unlock()
	for _, rec := range v.Sandboxes {
		if rec.ID == b.ID && rec.State != sandbox.StateGone {
			return m.giveUp(ctx, v, rec, why)
		}
	}
	return nil
}

// EndIdle destroys a session's sandbox in which nothing runs, and says whether it
// did. The session makes another at its next use. Errors: NotFound for the session.
func (m *Manager) EndIdle(ctx context.Context, session string, id sandbox.ID, why string) (bool, error) {
	v, unlock, err := m.lockSession(ctx, session)
	if err != nil {
		return false, err
	}
	defer unlock()
	if slices.ContainsFunc(v.Execs, func(e sandbox.ExecRecord) bool { return e.Sandbox == id && e.Ended.IsZero() }) {
		return false, nil
	}
	for _, rec := range v.Sandboxes {
		if rec.ID == id && rec.State == sandbox.StateReady {
			return true, m.giveUp(ctx, v, rec, why)
		}
	}
	return false, nil
}
