package manager

import (
	"context"
	"errors"
	"sync"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// Run runs one exec in a sandbox of its own and destroys that. Judging the run
// goes on beside making the sandbox.
//
// Errors are those of [Manager.Open] and [Sandbox.Exec]. A Result that comes
// with an error of the kind Denied says what was decided. An error of the
// clean-up is joined to the others; the Result stands.
func (m *Manager) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (_ sandbox.Result, err error) {
	ctx, done := telemetry.Begin(ctx, m.cfg.Tracer, "run")
	defer func() { done(err) }()
	if run.Language == "" && run.Image == "" && len(run.Command) > 0 {
		run.Language = "shell"
	}
	s, err := m.prepare(ctx, OpenOptions{
		Language: run.Language, Image: run.Image, Limits: run.Limits, Network: run.Network, Workspace: run.Workspace, Keep: run.Keep,
		Runtime: run.Runtime, OCIRuntime: run.OCIRuntime, Labels: run.Labels,
	})
	if err != nil {
		return sandbox.Result{}, err
	}
	run.Network = s.opts.Network
	r, err := m.resolve(ctx, run, s.language, s.opts.Limits, streams, false)
	if err != nil {
		return sandbox.Result{}, err
	}
	r.note(ctx)
	place := m.cleaned.placeOf(ctx, run)
	old, made, err := m.cleaned.take(ctx, place)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer made()
	ready := func(ctx context.Context) (*box.Box, error) {
		defer made()
		return s.start(ctx)
	}
	if old != nil {
		s, ready = old, old.again
	} else if err := m.track(s); err != nil {
		return sandbox.Result{}, err
	}
	var res sandbox.Result
	ended := func() error { return nil }
	if place == "" && !run.Keep {
		ended = s.endsWith(r)
	}
	defer func() { err = errors.Join(err, ended(), m.cleaned.put(ctx, place, s, res)) }()
	s.who = asker{run.Approve, streams.Ask}
	r.question.Making = true
	_, decision, err := m.judgeBeside(ctx, r, true, ready)
	if err != nil {
		return m.refused(ctx, r, err)
	}
	res, err = s.exec(ctx, r, decision, streams)
	return res, err
}

// endsWith has a sandbox end as soon as its only exec asks nothing more of it, beside
// the writing down of that. ended waits for it.
func (s *Sandbox) endsWith(r *resolved) (ended func() error) {
	var ending sync.WaitGroup
	var err error
	r.over = func() { ending.Go(func() { err = s.Close() }) }
	return func() error {
		ending.Wait()
		return err
	}
}

// judgeBeside asks the gate about an exec while its sandbox is made ready, and
// returns once both are done. The sandbox's failure ends the judging. Where alone
// is set the sandbox is made for this exec, and a refusal ends the making; what
// is being made for others is theirs.
func (m *Manager) judgeBeside(ctx context.Context, r *resolved, alone bool, ready func(context.Context) (*box.Box, error)) (*box.Box, sandbox.Decision, error) {
	judging, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	making := ctx
	if alone {
		making = judging
	}
	var made *box.Box
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if made, failed = ready(making); failed != nil {
			stop(failed)
		}
	}()
	wait := func(ctx context.Context) (*box.Box, error) {
		select {
		case <-done:
			return made, failed
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	r.question.Plan = func(ctx context.Context) (runtimes.Plan, error) {
		b, err := wait(ctx)
		if err != nil {
			return runtimes.Plan{}, err
		}
		return b.Plan, nil
	}
	if !alone || r.run.Workspace.Source != "" { // it may hold something: what is there is looked at
		r.space.connect = func(ctx context.Context) (*client.Client, error) {
			b, err := wait(ctx)
			if err != nil {
				return nil, err
			}
			return b.Client, nil
		}
	}
	d, refused := m.judgeExec(judging, r)
	if refused == nil {
		<-done
		return made, d, failed
	}
	stop(refused)
	<-done
	if errors.Is(refused, context.Canceled) {
		refused = context.Cause(judging) // what stopped the gate may have been the other's failure
	}
	return nil, d, refused
}
