package service

import (
	"cmp"
	"context"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// shown is a session as its caller may see it: by the name that they use, and
// of its environment the names alone.
func shown(who sandbox.Caller, s sandbox.Session) sandbox.Session {
	s = s.WithoutValues()
	s.Name = who.Shown(s.Name)
	return s
}

func shownView(who sandbox.Caller, v sandbox.SessionView) sandbox.SessionView {
	v.Session = shown(who, v.Session)
	for i := range v.Sandboxes {
		v.Sandboxes[i].Session = who.Shown(v.Sandboxes[i].Session)
	}
	shownExecs(who, v.Execs)
	return v
}

func shownExecs(who sandbox.Caller, execs []sandbox.ExecRecord) {
	for i := range execs {
		execs[i].Session = who.Shown(execs[i].Session)
	}
}

// CreateSession remembers a session.
func (s *Service) CreateSession(ctx context.Context, o api.SessionOptions, local sandbox.Local) (sandbox.Session, error) {
	who, err := may(ctx, uses)
	if err != nil {
		return sandbox.Session{}, err
	}
	if err := s.mayUse(who, o.Runtime); err != nil {
		return sandbox.Session{}, err
	}
	if o.Workspace.Kind == sandbox.WorkspaceHost && !who.IsAdmin() {
		return sandbox.Session{}, sandbox.Errorf(sandbox.Denied, "folders of the host are for admins").WithHint("leave the workspace out, and copy files with: caisson files push")
	}
	if o.Workspace, err = s.workspace(o.Workspace, local); err != nil {
		return sandbox.Session{}, err
	}
	unlock, err := s.room(ctx, who, cmp.Or(o.Workspace.Size, o.Limits.WithDefaults().Workspace))
	if err != nil {
		return sandbox.Session{}, err
	}
	defer unlock()
	made, err := s.cfg.Manager.CreateSession(ctx, o)
	return shown(who, made), err
}

// Session returns one session.
func (s *Service) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	who, name, err := session(ctx, reads, name)
	if err != nil {
		return sandbox.SessionView{}, err
	}
	v, err := s.cfg.Manager.Session(ctx, name)
	if err != nil {
		return v, err
	}
	v.HeldBy = s.cfg.Manager.HeldBy(ctx, v.Session)
	return shownView(who, v), nil
}

// Sessions returns those that a filter selects, by name.
func (s *Service) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	who, after, err := session(ctx, reads, f.After)
	if err != nil {
		return nil, err
	}
	f.After = after
	if f.Name != "" {
		if _, f.Name, err = session(ctx, reads, f.Name); err != nil {
			return nil, err
		}
	}
	if f.Owner, err = own(who, f.Owner); err != nil {
		return nil, err
	}
	views, err := s.cfg.Manager.Sessions(ctx, f)
	for i := range views {
		views[i] = shownView(who, views[i])
	}
	return views, err
}

// SessionEnv returns a session's environment with its values.
func (s *Service) SessionEnv(ctx context.Context, name string) ([]string, error) {
	_, name, err := session(ctx, uses, name)
	if err != nil {
		return nil, err
	}
	v, err := s.cfg.Manager.Session(ctx, name)
	return v.Env, err
}

// SessionStats reads what a session's sandboxes use now.
func (s *Service) SessionStats(ctx context.Context, name string) (sandbox.SessionStats, error) {
	who, name, err := session(ctx, reads, name)
	if err != nil {
		return sandbox.SessionStats{}, err
	}
	stats, err := s.cfg.Manager.SessionStats(ctx, name)
	stats.Session = who.Shown(stats.Session)
	return stats, err
}

// RemoveSession destroys a session with its workspace.
func (s *Service) RemoveSession(ctx context.Context, name string, force bool) error {
	_, name, err := session(ctx, uses, name)
	if err != nil {
		return err
	}
	return s.cfg.Manager.RemoveSession(ctx, name, force)
}

// PauseSession freezes a session's sandboxes.
func (s *Service) PauseSession(ctx context.Context, name string) error {
	_, name, err := session(ctx, uses, name)
	if err != nil {
		return err
	}
	return s.cfg.Manager.PauseSession(ctx, name)
}

// ResumeSession lets them go on.
func (s *Service) ResumeSession(ctx context.Context, name string) error {
	_, name, err := session(ctx, uses, name)
	if err != nil {
		return err
	}
	return s.cfg.Manager.ResumeSession(ctx, name)
}

// StopSession ends a session's sandboxes.
func (s *Service) StopSession(ctx context.Context, name string) error {
	_, name, err := session(ctx, uses, name)
	if err != nil {
		return err
	}
	return s.cfg.Manager.StopSession(ctx, name)
}

// RenewSession sets when a session's sandboxes end.
func (s *Service) RenewSession(ctx context.Context, name string, o api.RenewOptions) error {
	_, name, err := session(ctx, uses, name)
	if err != nil {
		return err
	}
	if o.Keep {
		if err := s.cfg.Manager.KeepSession(ctx, name); err != nil || o.Idle == nil && o.TTL == nil {
			return err
		}
	}
	return s.cfg.Manager.RenewSession(ctx, name, o.Idle, o.TTL)
}

// ChangeNetwork changes which hosts a session may reach.
func (s *Service) ChangeNetwork(ctx context.Context, name string, change sandbox.NetworkChange) (sandbox.Network, error) {
	_, name, err := session(ctx, uses, name)
	if err != nil {
		return sandbox.Network{}, err
	}
	return s.cfg.Manager.ChangeNetwork(ctx, name, change)
}

// Snapshot keeps a session's workspace.
func (s *Service) Snapshot(ctx context.Context, of, name string) (sandbox.Snapshot, error) {
	_, of, err := session(ctx, uses, of)
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	return s.cfg.Manager.Snapshot(ctx, of, name)
}

// RestoreSession makes a workspace what a snapshot kept.
func (s *Service) RestoreSession(ctx context.Context, of, snapshot string) (sandbox.Snapshot, error) {
	_, of, err := session(ctx, uses, of)
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	return s.cfg.Manager.Restore(ctx, of, snapshot)
}

// RemoveSnapshot forgets a snapshot.
func (s *Service) RemoveSnapshot(ctx context.Context, of, snapshot string) error {
	_, of, err := session(ctx, uses, of)
	if err != nil {
		return err
	}
	return s.cfg.Manager.RemoveSnapshot(ctx, of, snapshot)
}

// ForkSession makes a session with a copy of another's workspace.
func (s *Service) ForkSession(ctx context.Context, of string, o api.ForkOptions) (api.Forked, error) {
	who, of, err := session(ctx, uses, of)
	if err != nil {
		return api.Forked{}, err
	}
	origin, err := s.cfg.Manager.Session(ctx, of)
	if err != nil {
		return api.Forked{}, err
	}
	unlock, err := s.room(ctx, who, origin.Workspace.Size)
	if err != nil {
		return api.Forked{}, err
	}
	defer unlock()
	f, how, err := s.cfg.Manager.Fork(ctx, of, o)
	return api.Forked{Session: shown(who, f), Copied: how}, err
}

// Files opens a session's workspace.
func (s *Service) Files(ctx context.Context, of string) (api.Files, error) {
	who, of, err := session(ctx, reads, of)
	if err != nil {
		return nil, err
	}
	release, err := s.admitFiles(ctx, who, of)
	if err != nil {
		return nil, err
	}
	defer release()
	files, err := s.cfg.Manager.Files(ctx, of)
	if err != nil {
		return nil, err
	}
	if _, err := may(ctx, uses); err != nil {
		return readOnly{files, err}, nil
	}
	return files, nil
}
