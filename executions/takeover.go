package executions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// trace is what the audit has of an execution's exec.
type trace struct {
	began bool   // or was refused
	end   string // how it ended; "" is not known
}

// takeOver settles what a server that is gone has left running. Nobody else does:
// the lock is held.
func (s *server) takeOver(ctx context.Context) error {
	list, err := s.b.cfg.Store.Executions(ctx, sandbox.ExecutionFilter{States: []sandbox.ExecutionState{sandbox.ExecutionRunning}})
	if err != nil || len(list) == 0 {
		return err
	}
	traces, err := s.traces(ctx, list)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := s.takeUp(ctx, e, traces[e.ID]); err != nil {
			return err
		}
	}
	return nil
}

// traces reads the audit once for all of them.
func (s *server) traces(ctx context.Context, list []sandbox.Execution) (map[sandbox.ID]trace, error) {
	traces := map[sandbox.ID]trace{}
	for _, e := range list {
		traces[e.ID] = trace{}
	}
	kinds := []string{sandbox.EventExecStarted, sandbox.EventExecDenied, sandbox.EventExecEnded}
	for event, err := range s.b.cfg.Store.Events(ctx, sandbox.EventFilter{Kinds: kinds}) {
		if err != nil {
			return nil, err
		}
		var data struct {
			Labels sandbox.Labels     `json:"labels"`
			Reason sandbox.ExitReason `json:"exit_reason"`
			Code   int                `json:"exit_code"`
		}
		if err := json.Unmarshal(event.Data, &data); err != nil {
			continue // an altered line is the audit's to find
		}
		id := sandbox.ID(data.Labels[sandbox.ExecutionLabel])
		t, ours := traces[id]
		if !ours {
			continue
		}
		t.began = true
		switch {
		case event.Kind == sandbox.EventExecDenied:
			t.end = "it was refused"
		case event.Kind == sandbox.EventExecEnded && data.Reason != sandbox.ReasonInfra:
			t.end = fmt.Sprintf("it ended with exit code %d (%s)", data.Code, data.Reason)
		}
		traces[id] = t
	}
	return traces, nil
}

// takeUp settles one.
func (s *server) takeUp(ctx context.Context, e sandbox.Execution, t trace) error {
	if !t.began {
		e.State = sandbox.ExecutionQueued
		if e.CancelAsked {
			e.State, e.Ended, e.Exit = sandbox.ExecutionCanceled, s.b.now(), sandbox.Exit{Reason: sandbox.ReasonCanceled}.Coded()
			return s.b.settle(ctx, sandbox.ExecutionRunning, &e)
		}
		e.Started = time.Time{}
		return s.b.cfg.Store.Apply(ctx, sandbox.Transaction{
			MoveExecution: &sandbox.ExecutionMove{From: []sandbox.ExecutionState{sandbox.ExecutionRunning}, To: e}, Events: []sandbox.Event{s.b.event(e)},
		})
	}
	if e.Session != "" {
		recs, err := s.runner.ListExecs(sandbox.WithCaller(ctx, e.Caller()), sandbox.ExecFilter{Session: e.Session, Labels: labelOf(e.ID)})
		if err != nil && !errors.Is(err, sandbox.NotFound) {
			return err
		}
		if len(recs) > 0 {
			return s.followAgain(ctx, e, recs[0])
		}
	}
	why := "the server died while it ran"
	if t.end != "" {
		why = "the server died before it had read what came of it: " + t.end
	}
	s.conclude(ctx, e, outcome{lost: why})
	return nil
}

// followAgain goes on where the last server stopped to read.
func (s *server) followAgain(ctx context.Context, e sandbox.Execution, rec sandbox.ExecRecord) error {
	asked, err := s.b.cfg.Store.ExecutionOptions(ctx, e.ID)
	if err != nil {
		return err
	}
	s.start(e.ID, e.Owner, func(ctx context.Context) {
		who := sandbox.WithCaller(ctx, e.Caller())
		quiet := s.heartbeat(who, e, asked.Callback)
		out := s.follow(who, e, asked.Run, rec, true)
		if out.result.Cause == sandbox.NeverBegan { // the last server died on its way to it
			out = s.inSession(who, e, asked.Run)
		}
		quiet()
		s.conclude(ctx, e, out)
	})
	if e.CancelAsked {
		s.b.stop(e.ID)
	}
	return nil
}
