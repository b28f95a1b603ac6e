package service

import (
	"context"
	"iter"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// Log is what the service needs of the audit log.
type Log interface {
	Events(ctx context.Context, filter sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
	Verify(ctx context.Context) (sandbox.AuditReport, error)
	Prune(ctx context.Context, keep sandbox.Retention) (int64, error)
}

// CreateSession remembers a session.
func (s *Service) CreateSession(ctx context.Context, o api.SessionOptions) (sandbox.Session, error) {
	return s.cfg.Manager.CreateSession(ctx, manager.SessionOptions(o))
}

// Session returns one session.
func (s *Service) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	return s.cfg.Manager.Session(ctx, name)
}

// Sessions returns all of them.
func (s *Service) Sessions(ctx context.Context) ([]sandbox.SessionView, error) {
	return s.cfg.Manager.Sessions(ctx)
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
func (s *Service) RenewSession(ctx context.Context, name string, idle, ttl *time.Duration) error {
	return s.cfg.Manager.RenewSession(ctx, name, idle, ttl)
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
	f, how, err := s.cfg.Manager.Fork(ctx, session, manager.ForkOptions(o))
	return api.Forked{Session: f, Copied: how}, err
}

// Exec runs one exec in a session.
func (s *Service) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	s.tidy(ctx, false)
	return s.cfg.Manager.ExecIn(ctx, session, run, streams)
}

// StartExec starts one in the background.
func (s *Service) StartExec(ctx context.Context, session string, run sandbox.Run) (sandbox.ExecRecord, error) {
	s.tidy(ctx, false)
	return s.cfg.Manager.StartIn(ctx, session, run)
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

// Output reads what an exec in the background has put out.
func (s *Service) Output(ctx context.Context, session string, id sandbox.ID, o api.OutputOptions) (api.OutputResult, error) {
	out, ended, err := s.cfg.Manager.Output(ctx, session, id, o.StdoutFrom, o.StderrFrom, o.Stdout, o.Stderr, o.Follow)
	r := api.OutputResult{Stdout: out.Stdout, Stderr: out.Stderr, Lost: out.Lost, Ended: ended}
	if ended {
		r.Exit = out.Exit
	}
	return r, err
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

// PruneAudit drops old events and keeps the rest verifiable.
func (s *Service) PruneAudit(ctx context.Context, keep sandbox.Retention) (int64, error) {
	return s.cfg.Audit.Prune(ctx, keep)
}

// tidy takes up, once in a process, what dead ones left: execs without an end,
// and with sweep whatever carries a dead owner's label, which asks the engine.
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
