package service

import (
	"context"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// Log is what the service needs of the audit log.
type Log interface {
	Events(ctx context.Context, filter sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
	Verify(ctx context.Context) (sandbox.AuditReport, error)
	Reanchor(ctx context.Context, actor, reason string) (int64, error)
	Prune(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error)
	Sizes(ctx context.Context) ([]sandbox.StateSize, error)
}

// CreateSession remembers a session.
func (s *Service) CreateSession(ctx context.Context, o api.SessionOptions, local sandbox.Local) (sandbox.Session, error) {
	var err error
	if o.Workspace, err = s.workspace(o.Workspace, local); err != nil {
		return sandbox.Session{}, err
	}
	made, err := s.cfg.Manager.CreateSession(ctx, o)
	return made.WithoutValues(), err
}

// Session returns one session.
func (s *Service) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	v, err := s.cfg.Manager.Session(ctx, name)
	if err != nil {
		return v, err
	}
	v.HeldBy = s.cfg.Manager.HeldBy(ctx, v.Session)
	v.Session = v.WithoutValues()
	return v, nil
}

// Sessions returns those that a filter selects, by name.
func (s *Service) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	views, err := s.cfg.Manager.Sessions(ctx, f)
	for i := range views {
		views[i].Session = views[i].WithoutValues()
	}
	return views, err
}

// SessionEnv returns a session's environment with its values.
func (s *Service) SessionEnv(ctx context.Context, name string) ([]string, error) {
	v, err := s.cfg.Manager.Session(ctx, name)
	return v.Env, err
}

// SessionStats reads what a session's sandboxes use now.
func (s *Service) SessionStats(ctx context.Context, name string) (sandbox.SessionStats, error) {
	return s.cfg.Manager.SessionStats(ctx, name)
}

// RemoveSession destroys a session with its workspace.
func (s *Service) RemoveSession(ctx context.Context, name string, force bool) error {
	return s.cfg.Manager.RemoveSession(ctx, name, force)
}

// PauseSession freezes a session's sandboxes.
func (s *Service) PauseSession(ctx context.Context, name string) error {
	return s.cfg.Manager.PauseSession(ctx, name)
}

// ResumeSession lets them go on.
func (s *Service) ResumeSession(ctx context.Context, name string) error {
	return s.cfg.Manager.ResumeSession(ctx, name)
}

// RenewSession sets when a session's sandboxes end.
func (s *Service) RenewSession(ctx context.Context, name string, o api.RenewOptions) error {
	return s.cfg.Manager.RenewSession(ctx, name, o.Idle, o.TTL)
}

// Snapshot keeps a session's workspace.
func (s *Service) Snapshot(ctx context.Context, session, name string) (sandbox.Snapshot, error) {
	return s.cfg.Manager.Snapshot(ctx, session, name)
}

// RestoreSession makes a workspace what a snapshot kept.
func (s *Service) RestoreSession(ctx context.Context, session, snapshot string) (sandbox.Snapshot, error) {
	return s.cfg.Manager.Restore(ctx, session, snapshot)
}

// RemoveSnapshot forgets a snapshot.
func (s *Service) RemoveSnapshot(ctx context.Context, session, snapshot string) error {
	return s.cfg.Manager.RemoveSnapshot(ctx, session, snapshot)
}

// ForkSession makes a session with a copy of another's workspace.
func (s *Service) ForkSession(ctx context.Context, session string, o api.ForkOptions) (api.Forked, error) {
	f, how, err := s.cfg.Manager.Fork(ctx, session, o)
	return api.Forked{Session: f.WithoutValues(), Copied: how}, err
}

// Exec runs one exec in a session.
func (s *Service) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	s.tidy(ctx, false)
	return s.cfg.Manager.ExecIn(ctx, session, run, streams)
}

// StartExec starts one in the background.
func (s *Service) StartExec(ctx context.Context, session string, run sandbox.Run, local sandbox.Local) (sandbox.ExecRecord, error) {
	s.tidy(ctx, false)
	return s.cfg.Manager.StartIn(ctx, session, run, local)
}

// ListExecs returns the execs that a filter selects, the newest first.
func (s *Service) ListExecs(ctx context.Context, f sandbox.ExecFilter) ([]sandbox.ExecRecord, error) {
	return s.cfg.Manager.Execs(ctx, f)
}

// Processes lists the execs of a session.
func (s *Service) Processes(ctx context.Context, session string) ([]api.Process, error) {
	infos, err := s.cfg.Manager.Processes(ctx, session)
	list := make([]api.Process, 0, len(infos))
	for _, i := range infos {
		list = append(list, api.Process{
			ID: i.ID, Command: i.Argv, PID: i.PID, AgeMS: i.Age.Milliseconds(), Running: i.Running, Processes: i.Processes,
			Stdout: i.Stdout, Stderr: i.Stderr,
		})
	}
	return list, err
}

// AttachExec copies what an exec has put out.
func (s *Service) AttachExec(ctx context.Context, session string, id sandbox.ID, o sandbox.AttachOptions, stdout, stderr io.Writer) (sandbox.Attached, error) {
	return s.cfg.Manager.AttachExec(ctx, session, id, o, stdout, stderr)
}

// InputExec writes to the standard input of an exec in the background.
func (s *Service) InputExec(ctx context.Context, session string, id sandbox.ID, b []byte, end bool) (int, error) {
	return s.cfg.Manager.InputExec(ctx, session, id, b, end)
}

// ResizeExec sets the size of an exec's terminal.
func (s *Service) ResizeExec(ctx context.Context, session string, id sandbox.ID, rows, cols uint16) error {
	return s.cfg.Manager.ResizeExec(ctx, session, id, rows, cols)
}

// SignalExec signals an exec.
func (s *Service) SignalExec(ctx context.Context, session string, id sandbox.ID, signal int, all bool) error {
	return s.cfg.Manager.SignalExec(ctx, session, id, signal, all)
}

// KillExec ends an exec and everything that it started.
func (s *Service) KillExec(ctx context.Context, session string, id sandbox.ID) error {
	return s.cfg.Manager.KillExec(ctx, session, id)
}

// Files opens a session's workspace.
func (s *Service) Files(ctx context.Context, session string) (api.Files, error) {
	return s.cfg.Manager.Files(ctx, session)
}

// Events returns the audit's events in their order.
func (s *Service) Events(ctx context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error] {
	return s.cfg.Audit.Events(ctx, f)
}

// VerifyAudit checks the chain of events.
func (s *Service) VerifyAudit(ctx context.Context) (sandbox.AuditReport, error) {
	return s.cfg.Audit.Verify(ctx)
}

// ReanchorAudit takes a log that has lost its anchor as it is.
func (s *Service) ReanchorAudit(ctx context.Context, reason string) (int64, error) {
	if strings.TrimSpace(reason) == "" {
		return 0, sandbox.Errorf(sandbox.Invalid, "no reason is given").WithHint("say why the anchor is gone: it stands in the audit")
	}
	return s.cfg.Audit.Reanchor(ctx, s.cfg.Actor, reason)
}

// StateSizes tells how much there is of what grows.
func (s *Service) StateSizes(ctx context.Context) ([]sandbox.StateSize, error) {
	return s.cfg.Audit.Sizes(ctx)
}

// PruneAudit drops old events and keeps the rest verifiable; and old questions.
func (s *Service) PruneAudit(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error) {
	return s.cfg.Audit.Prune(ctx, keep)
}

// tidy takes up, once in a process, what dead ones left: execs without an end,
// and with sweep whatever carries a dead holder's label, which asks the engine.
// It goes on beside its caller's own work; Close waits for it.
func (s *Service) tidy(ctx context.Context, sweep bool) {
	ctx = context.WithoutCancel(ctx)
	s.sweep.Do(func() {
		s.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, tidyPatience)
			defer cancel()
			if rec, err := s.cfg.Manager.Recover(ctx); err != nil || len(rec.Failures) > 0 {
				s.cfg.Log.Debug("recover", "error", err, "failures", rec.Failures)
			}
			if !sweep {
				return
			}
			if _, err := s.cfg.Manager.Sweep(ctx, false, false); err != nil {
				s.cfg.Log.Debug("sweep", "error", err) // the caller meets the same engine and tells the user
			}
		})
	})
}

// tidyPatience bounds what a command does for others beside its own work.
const tidyPatience = 20 * time.Second
