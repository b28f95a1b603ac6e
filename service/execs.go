package service

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// Run runs one exec in a sandbox of its own. The first run of a process also
// removes what dead processes left, beside its own work.
func (s *Service) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	who, err := may(ctx, uses)
	if err != nil {
		return sandbox.Result{}, err
	}
	if err := errors.Join(s.mayUse(who, run.Runtime), s.onlyOthers(who, run.Approve, &streams.Local)); err != nil {
		return sandbox.Result{}, err
	}
	w, err := s.workspace(run.Workspace, sandbox.Local{})
	if err != nil {
		return sandbox.Result{}, err
	}
	if w.Kind == sandbox.WorkspaceHost {
		return sandbox.Result{}, sandbox.Errorf(sandbox.Unsupported, "a run has a workspace of its own").WithHint("make a session with that folder: caisson session create --workspace FOLDER")
	}
	release, err := s.admit(ctx, who, wish{limits: run.Limits, waits: true})
	if err != nil {
		return sandbox.Result{}, err
	}
	defer release()
	s.tidy(ctx, true)
	return s.cfg.Manager.Run(ctx, run, streams)
}

// Exec runs one exec in a session.
func (s *Service) Exec(ctx context.Context, in string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	who, in, err := session(ctx, uses, in)
	if err != nil {
		return sandbox.Result{}, err
	}
	if err := s.onlyOthers(who, run.Approve, &streams.Local); err != nil {
		return sandbox.Result{}, err
	}
	release, err := s.admit(ctx, who, wish{session: in, language: run.Language, waits: true})
	if err != nil {
		return sandbox.Result{}, err
	}
	defer release()
	s.tidy(ctx, false)
	res, err := s.cfg.Manager.ExecIn(ctx, in, run, streams)
	res.Session = who.Shown(res.Session)
	return res, err
}

// StartExec starts one in the background.
func (s *Service) StartExec(ctx context.Context, in string, run sandbox.Run, local sandbox.Local) (sandbox.ExecRecord, error) {
	who, in, err := session(ctx, uses, in)
	if err != nil {
		return sandbox.ExecRecord{}, err
	}
	if err := s.onlyOthers(who, run.Approve, &local); err != nil {
		return sandbox.ExecRecord{}, err
	}
	release, err := s.admit(ctx, who, wish{session: in, language: run.Language})
	if err != nil {
		return sandbox.ExecRecord{}, err
	}
	defer release()
	s.tidy(ctx, false)
	e, err := s.cfg.Manager.StartIn(ctx, in, run, local)
	e.Session = who.Shown(e.Session)
	return e, err
}

// ListExecs returns the execs that a filter selects, the newest first.
func (s *Service) ListExecs(ctx context.Context, f sandbox.ExecFilter) ([]sandbox.ExecRecord, error) {
	who, of, err := session(ctx, reads, f.Session)
	if err != nil {
		return nil, err
	}
	f.Session = of
	if f.Owner, err = own(who, f.Owner); err != nil {
		return nil, err
	}
	execs, err := s.cfg.Manager.Execs(ctx, f)
	shownExecs(who, execs)
	return execs, err
}

// Processes lists the execs of a session.
func (s *Service) Processes(ctx context.Context, in string) ([]api.Process, error) {
	_, in, err := session(ctx, reads, in)
	if err != nil {
		return nil, err
	}
	infos, err := s.cfg.Manager.Processes(ctx, in)
	list := make([]api.Process, 0, len(infos))
	for _, i := range infos {
		list = append(list, api.Process{
			ID: i.ID, Command: i.Argv, PID: i.PID, AgeMS: i.Age.Milliseconds(), Running: i.Running, Processes: i.Processes,
			Stdout: i.Stdout, Stderr: i.Stderr, Starts: i.Starts, StartsLeftOut: i.StartsLeftOut, StartsUnjudged: i.StartsUnjudged,
		})
	}
	return list, err
}

// AttachExec copies what an exec has put out.
func (s *Service) AttachExec(ctx context.Context, in string, id sandbox.ID, o sandbox.AttachOptions, stdout, stderr io.Writer) (sandbox.Attached, error) {
	_, in, err := session(ctx, reads, in)
	if err != nil {
		return sandbox.Attached{}, err
	}
	return s.cfg.Manager.AttachExec(ctx, in, id, o, stdout, stderr)
}

// InputExec writes to the standard input of an exec in the background.
func (s *Service) InputExec(ctx context.Context, in string, id sandbox.ID, b []byte, end bool) (int, error) {
	_, in, err := session(ctx, uses, in)
	if err != nil {
		return 0, err
	}
	return s.cfg.Manager.InputExec(ctx, in, id, b, end)
}

// AttachTerminal joins the terminal of an exec. Who watches needs to read alone.
func (s *Service) AttachTerminal(ctx context.Context, in string, id sandbox.ID, streams sandbox.Streams) (sandbox.Attached, error) {
	right := reads
	if streams.Stdin != nil {
		right = uses
	}
	_, in, err := session(ctx, right, in)
	if err != nil {
		return sandbox.Attached{}, err
	}
	return s.cfg.Manager.AttachTerminal(ctx, in, id, streams)
}

// ResizeExec sets the size of an exec's terminal.
func (s *Service) ResizeExec(ctx context.Context, in string, id sandbox.ID, rows, cols uint16) error {
	_, in, err := session(ctx, uses, in)
	if err != nil {
		return err
	}
	return s.cfg.Manager.ResizeExec(ctx, in, id, rows, cols)
}

// SignalExec signals an exec.
func (s *Service) SignalExec(ctx context.Context, in string, id sandbox.ID, signal int, all bool) error {
	_, in, err := session(ctx, uses, in)
	if err != nil {
		return err
	}
	return s.cfg.Manager.SignalExec(ctx, in, id, signal, all)
}

// KillExec ends an exec and everything that it started.
func (s *Service) KillExec(ctx context.Context, in string, id sandbox.ID) error {
	_, in, err := session(ctx, uses, in)
	if err != nil {
		return err
	}
	return s.cfg.Manager.KillExec(ctx, in, id)
}

// tidy takes up, once in a process, what dead ones left: execs without an end,
// and with sweep whatever carries a dead holder's label, which asks the engine.
// It goes on beside its caller's own work; Close waits for it.
func (s *Service) tidy(ctx context.Context, sweep bool) {
	ctx = asLocal(context.WithoutCancel(ctx))
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

// Outlast waits until nothing runs any more in the background whose starts this process
// sees, or ctx is done.
func (s *Service) Outlast(ctx context.Context) { s.cfg.Manager.Outlast(ctx) }

// JudgeOn has this process judge what an exec in the background starts, as soon as who
// does so goes.
func (s *Service) JudgeOn(ctx context.Context, session string, id sandbox.ID) error {
	return s.cfg.Manager.JudgeOn(ctx, session, id)
}
