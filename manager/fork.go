package manager

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Fork makes a session whose workspace is a copy of another's, or of a snapshot
// of it, with its user, and its settings where the options have none. What was
// recorded of the origin is known in the fork. Errors: those of [Manager.Snapshot],
// though not for execs that run where it is live, and [Manager.CreateSession].
func (m *Manager) Fork(ctx context.Context, session string, opts sandbox.ForkOptions) (fork sandbox.Session, how sandbox.CopiedBy, err error) {
	id := sandbox.NewID()
	if opts.Name == "" {
		opts.Name = "s-" + string(id[:8])
	}
	if !sessionName().MatchString(opts.Name) {
		return fork, "", sandbox.Errorf(sandbox.Invalid, "%q is not a session's name", opts.Name).
			WithHint("use lower case letters, digits, and . _ - behind the first, at most 63")
	}
	origin, err := m.running(ctx, session)
	if err != nil {
		return fork, "", err
	}
	name := sandbox.SessionName(origin.Owner, opts.Name)
	if _, err := m.running(ctx, name); err == nil {
		return fork, "", sandbox.Errorf(sandbox.Conflict, "a session %s exists", opts.Name).WithHint("choose another name")
	}
	if _, err := m.forked(ctx, origin.Session, opts); err != nil {
		return fork, "", err // before anything is ended or frozen for it
	}
	do := func(v sandbox.SessionView, used bool) (err error) {
		if fork, err = m.forked(ctx, v.Session, opts); err != nil {
			return err
		}
		fork.ID, fork.Name = id, name
		if opts.Snapshot == "" {
			v.Workspace, fork.Workspace, how, err = m.branch(ctx, v.Session, v.Workspace, id, used)
		} else {
			var at int
			if at, err = findSnapshot(v.Session, opts.Snapshot); err != nil {
				return err
			}
			v.Snapshots = append([]sandbox.Snapshot(nil), v.Snapshots...)
			v.Snapshots[at].Workspace, fork.Workspace, how, err = m.branch(ctx, v.Session, v.Snapshots[at].Workspace, id, false)
		}
		if err != nil {
			return err
		}
		what := data(map[string]any{"from": v.Name, "snapshot": opts.Snapshot, "copied": how})
		return m.keepFork(ctx, v.Session, fork, what)
	}
	switch {
	case opts.Snapshot != "":
		err = m.withLayers(ctx, session, func(v sandbox.SessionView) error { return do(v, false) }) // what the session does meanwhile is of no matter
	case opts.Live:
		err = m.whileFrozen(ctx, session, do)
	default:
		err = m.atRest(ctx, session, func(v sandbox.SessionView) error { return do(v, false) })
	}
	return fork, how, err
}

// forked is a session as its fork begins, but for what tells the two apart. Errors:
// Invalid, Unsupported.
func (m *Manager) forked(ctx context.Context, s sandbox.Session, o sandbox.ForkOptions) (sandbox.Session, error) {
	s.Created, s.Snapshots, s.Holder = m.cfg.Now().UTC(), nil, ""
	if o.Labels != nil {
		s.Labels = o.Labels
	}
	for field, d := range map[*sandbox.Duration]*sandbox.Duration{&s.Idle: o.Idle, &s.TTL: o.TTL} {
		if d != nil {
			*field = *d
		}
	}
	if s.Idle < 0 || s.TTL < 0 {
		return s, sandbox.Errorf(sandbox.Invalid, "a time that is negative").WithHint("0 is never")
	}
	if err := errors.Join(s.Labels.Check(), checkEnv(o.Env)); err != nil {
		return s, err
	}
	s.Env = slices.DeleteFunc(slices.Clone(s.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(o.Env, func(over string) bool { return strings.HasPrefix(over, name+"=") })
	})
	s.Env = append(s.Env, o.Env...)
	if o.Network == nil {
		return s, nil
	}
	s.Network = m.cfg.Egress.Named(o.Network.WithDefaults())
	rt, err := m.runtimeOf(s.Runtime)
	if err != nil {
		return s, err
	}
	caps, err := m.capabilities(ctx, s.Runtime, rt)
	if err != nil {
		return s, err
	}
	return s, caps.CheckNetwork(s.Network)
}

// keepFork writes a fork down, with its origin as it is now. Where that fails nothing
// of the fork stays.
func (m *Manager) keepFork(ctx context.Context, origin, fork sandbox.Session, what []byte) error {
	if m.cfg.Recorder != nil {
		if err := m.cfg.Recorder.Fork(ctx, origin.ID, fork.ID); err != nil {
			return errors.Join(err, m.dropVolumes(ctx, m.nameOf(fork), fork.Workspace))
		}
	}
	err := m.recordLate(ctx, sandbox.Transaction{PutSession: &origin, CreateSession: &fork, Events: []sandbox.Event{
		{Kind: sandbox.EventSessionCreated, Session: fork.Name, Data: data(fork.WithoutValues())},
		{Kind: sandbox.EventSessionForked, Session: fork.Name, Data: what},
	}})
	if err != nil && m.cfg.Recorder != nil {
		err = errors.Join(err, m.cfg.Recorder.Forget(fork.ID))
	}
	if err != nil {
		err = errors.Join(err, m.dropVolumes(ctx, m.nameOf(fork), fork.Workspace))
	}
	return err
}

// whileFrozen calls do while a session's sandboxes are paused, and has those go on that
// were not. used says that there are any.
func (m *Manager) whileFrozen(ctx context.Context, session string, do func(v sandbox.SessionView, used bool) error) error {
	return m.withLayers(ctx, session, func(v sandbox.SessionView) (err error) {
		if _, err := m.canBranch(v.Session); err != nil {
			return err
		}
		m.observeBoxes(ctx, v)
		if v, err = m.running(ctx, session); err != nil {
			return err
		}
		asleep := map[sandbox.ID]bool{} // before
		for _, rec := range v.Sandboxes {
			asleep[rec.ID] = rec.State == sandbox.StatePaused
		}
		defer func() { err = errors.Join(err, m.thaw(context.WithoutCancel(ctx), session, asleep)) }()
		if _, err := m.moveBoxes(ctx, v, sandbox.StateReady, sandbox.StatePaused, sandbox.EventSandboxPaused, func(p runtimes.Pauser) error { return p.Pause(ctx) }); err != nil {
			return err
		}
		if v, err = m.running(ctx, session); err != nil {
			return err
		}
		used := slices.ContainsFunc(v.Sandboxes, func(rec sandbox.SandboxRecord) bool { return rec.State != sandbox.StateGone })
		return do(v, used)
	})
}

// thaw has the paused sandboxes of a session go on, but for some.
func (m *Manager) thaw(ctx context.Context, session string, but map[sandbox.ID]bool) error {
	v, err := m.running(ctx, session)
	if err != nil {
		return err
	}
	v.Sandboxes = slices.DeleteFunc(v.Sandboxes, func(rec sandbox.SandboxRecord) bool { return but[rec.ID] })
	_, err = m.moveBoxes(ctx, v, sandbox.StatePaused, sandbox.StateReady, sandbox.EventSandboxResumed, func(p runtimes.Pauser) error { return p.Resume(ctx) })
	return err
}
