package manager

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// Run runs one exec in a sandbox of its own and destroys that. Judging the run
// goes on beside making the sandbox.
//
// Errors are those of [Manager.Open] and [Sandbox.Exec]. A Result that comes
// with an error of the kind Denied says what was decided. An error of the
// clean-up is joined to the others; the Result stands.
func (m *Manager) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (_ sandbox.Result, err error) {
	limits := run.Limits
	if run.Timeout != 0 {
		limits.Timeout = run.Timeout
	}
	if run.Language == "" && run.Image == "" && len(run.Command) > 0 {
		run.Language = "shell"
	}
	s, err := m.prepare(OpenOptions{
		Language: run.Language, Image: run.Image, Limits: limits, Network: run.Network, Workspace: run.Workspace, Keep: run.Keep,
		OCIRuntime: run.OCIRuntime,
	})
	if err != nil {
		return sandbox.Result{}, err
	}
	r, err := resolve(run, s.language, s.opts.Limits, streams)
	if err != nil {
		return sandbox.Result{}, err
	}
	s.approve, s.ask = run.Approve, run.Ask
	if err := m.track(s); err != nil {
		return sandbox.Result{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r.question.Making = true
	decision, err := s.judgeAndStart(ctx, r)
	if err != nil {
		return m.refused(ctx, r, err)
	}
	return s.exec(ctx, r, decision, streams)
}

// judgeAndStart asks the gate while the sandbox is made. The first to fail
// stops the other, and both have ended when it returns.
func (s *Sandbox) judgeAndStart(ctx context.Context, r *resolved) (sandbox.Decision, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started, ready := make(chan error, 1), make(chan struct{})
	go func() {
		err := s.start(ctx)
		if err != nil {
			cancel(err)
		}
		started <- err
		close(ready)
	}()
	wait := func(ctx context.Context) error {
		select {
		case <-ready:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.question.Image = func(ctx context.Context) (string, error) {
		if err := wait(ctx); err != nil {
			return "", err
		}
		return s.imageID(ctx)
	}
	if w := s.opts.Workspace; w.Source != "" {
		// It is not new: what is there is looked at.
		r.space.connect = func(ctx context.Context) (*client.Client, error) {
			if err := wait(ctx); err != nil {
				return nil, err
			}
			return s.agent(ctx)
		}
	}
	decision, judged := s.m.judgeExec(ctx, r)
	if judged != nil {
		cancel(judged)
		<-started
		// What stopped the gate may have been the other's failure.
		if cause := context.Cause(ctx); errors.Is(judged, context.Canceled) && cause != nil {
			return decision, cause
		}
		return decision, judged
	}
	return decision, <-started
}
