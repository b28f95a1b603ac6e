package executions

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// outcome is what came of a run.
type outcome struct {
	result sandbox.Result // ExecID is "" where there is none
	err    error          // nil beside a result is fine
	lost   string         // why what came of it is not known; "" where it is
	left   bool           // it goes on without this server
}

// carryOut takes an execution from the queue and runs it.
func (s *server) carryOut(ctx context.Context, q sandbox.QueuedExecution) {
	e, asked, err := s.look(ctx, q.ID)
	var who context.Context
	if err == nil {
		var release func()
		var ok bool
		if who, release, ok = s.room(ctx, q, e, asked.Run); !ok {
			return
		}
		defer release()
		e, err = s.claim(ctx, e)
	}
	if errors.Is(err, sandbox.Conflict) || errors.Is(err, sandbox.NotFound) || err != nil && s.accept.Err() != nil {
		return // it was canceled, or waits for the next server
	}
	if err != nil {
		s.b.cfg.Log.Warn("an execution cannot begin, and waits", "execution", q.ID, "error", err)
		s.pause(s.accept, claimPause)
		s.mu.Lock()
		s.again = append(s.again, q)
		s.mu.Unlock()
		return
	}
	quiet := s.heartbeat(who, e, asked.Callback)
	var out outcome
	if e.Session != "" {
		out = s.inSession(who, e, asked.Run)
	} else {
		out = s.alone(who, e, asked)
	}
	quiet()
	s.conclude(ctx, e, out)
}

// claimPause is how long one that could not be taken from the queue waits.
const claimPause = 2 * time.Second

// look reads what is to be carried out. One that was canceled is a Conflict.
func (s *server) look(ctx context.Context, id sandbox.ID) (e sandbox.Execution, asked sandbox.ExecutionOptions, err error) {
	if e, err = s.b.cfg.Store.Execution(ctx, id); err != nil {
		return e, asked, err
	}
	if e.State != sandbox.ExecutionQueued {
		return e, asked, sandbox.Errorf(sandbox.Conflict, "execution %s is %s", id.Short(), e.State)
	}
	asked, err = s.b.cfg.Store.ExecutionOptions(ctx, id)
	return e, asked, err
}

// claim writes down that an execution runs, before it does.
func (s *server) claim(ctx context.Context, e sandbox.Execution) (sandbox.Execution, error) {
	e.State, e.Started = sandbox.ExecutionRunning, s.b.now()
	err := s.b.cfg.Store.Apply(ctx, sandbox.Transaction{
		MoveExecution: &sandbox.ExecutionMove{From: []sandbox.ExecutionState{sandbox.ExecutionQueued}, To: e}, Events: []sandbox.Event{s.b.event(e)},
	})
	return e, err
}

// alone runs an execution in a sandbox of its own.
func (s *server) alone(ctx context.Context, e sandbox.Execution, asked sandbox.ExecutionOptions) (out outcome) {
	streams := sandbox.Streams{}
	if in := append([]byte(asked.Stdin), asked.StdinBytes...); len(in) > 0 {
		streams.Stdin = bytes.NewReader(in)
	}
	shelf := s.b.shelf(e.ID)
	streams.Artifact = shelf.take
	run := asked.Run
	out.result, out.err = s.runner.Run(ctx, run, streams)
	shelf.link(out.result.Artifacts)
	if errors.Is(context.Cause(ctx), errStopped) && (out.result.ExecID == "" || out.result.Reason == sandbox.ReasonCanceled) {
		out.lost = "the server was stopped while it ran"
	}
	return out
}

// conclude writes down what came of an execution.
func (s *server) conclude(ctx context.Context, e sandbox.Execution, out outcome) {
	if out.left {
		return // the next server follows it
	}
	e.Ended, e.Error = s.b.now(), nil
	if out.result.ExecID != "" {
		e.Exec, e.Exit, e.Result = out.result.ExecID, out.result.Exit, &out.result
	}
	canceled := errors.Is(context.Cause(ctx), errCanceled)
	switch {
	case out.lost != "":
		e.State = sandbox.ExecutionLost
		e.Exit = sandbox.Exit{Reason: sandbox.ReasonInfra, Cause: out.lost}.Coded()
		out.result.Exit, e.Result = e.Exit, &out.result
	case canceled && (e.Result == nil || e.Exit.Reason == sandbox.ReasonCanceled):
		e.State, e.Exit = sandbox.ExecutionCanceled, sandbox.Exit{Reason: sandbox.ReasonCanceled, Events: e.Exit.Events}.Coded()
		out.err = nil
	case e.Result == nil:
		e.State = sandbox.ExecutionFailed
	default:
		e.State = stateOf(e.Exit)
	}
	if out.err != nil {
		e.Error = new(sandbox.ProblemOf(out.err, codeOf(out.err)))
	}
	s.write(&e)
}

// stateOf is the state that a program's end makes.
func stateOf(x sandbox.Exit) sandbox.ExecutionState {
	switch {
	case x.Reason == sandbox.ReasonExited && x.Code == 0:
		return sandbox.ExecutionSucceeded
	case x.Reason == sandbox.ReasonInfra:
		return sandbox.ExecutionLost
	case x.Reason == sandbox.ReasonCanceled:
		return sandbox.ExecutionCanceled
	}
	return sandbox.ExecutionFailed
}

// codeOf is the exit code of a run that could not be: that of its reason.
func codeOf(err error) int {
	reason := sandbox.ReasonInfra
	if errors.Is(err, sandbox.Denied) {
		reason = sandbox.ReasonDenied
	}
	return sandbox.Exit{Reason: reason}.Coded().Code
}

// write settles an execution, and tries again while the store cannot: what came of
// it is in memory alone until then.
func (s *server) write(e *sandbox.Execution) {
	for pause := claimPause; ; pause = min(2*pause, time.Minute) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := s.b.settle(ctx, sandbox.ExecutionRunning, e)
		cancel()
		if err == nil || errors.Is(err, sandbox.Conflict) || errors.Is(err, sandbox.NotFound) {
			return
		}
		s.b.cfg.Log.Error("what came of an execution cannot be written down, and waits", "execution", e.ID, "error", err)
		if s.hard.Err() != nil {
			return // the next server finds that it ran
		}
		s.pause(s.hard, pause)
	}
}

// pause waits, unless ctx or the server ends.
func (s *server) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-s.hard.Done():
	}
}
