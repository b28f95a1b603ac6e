package service

import (
	"context"
	"io"

	"github.com/caisson-dev/caisson/sandbox"
)

// Executions is what the service needs of what is carried out while nobody waits.
type Executions interface {
	Submit(ctx context.Context, o sandbox.ExecutionOptions, local sandbox.Local) (sandbox.Execution, error)
	Execution(ctx context.Context, id sandbox.ID, wait sandbox.Duration) (sandbox.Execution, error)
	Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, error)
	Cancel(ctx context.Context, id sandbox.ID) (sandbox.Execution, error)
	Artifact(ctx context.Context, id sandbox.ID, path string, w io.Writer) (int64, error)
	DeadLetters(ctx context.Context, f sandbox.DeadLetterFilter) ([]sandbox.DeadLetter, error)
	Resend(ctx context.Context, execution sandbox.ID) (sandbox.DeadLetter, error)
}

// SubmitExecution remembers an execution. What is wrong with it already is told
// now, and not by its result.
func (s *Service) SubmitExecution(ctx context.Context, o sandbox.ExecutionOptions, local sandbox.Local) (sandbox.Execution, error) {
	who, in, err := session(ctx, uses, o.Run.Session)
	if err != nil {
		return sandbox.Execution{}, err
	}
	o.Run.Session = in
	if err := s.onlyOthers(who, o.Run.Approve, &local); err != nil {
		return sandbox.Execution{}, err
	}
	if in != "" {
		if _, err := s.cfg.Manager.Session(ctx, in); err != nil {
			return sandbox.Execution{}, err
		}
	}
	if o.Run.Language != "" {
		if _, err := s.cfg.Images.Language(o.Run.Language); err != nil {
			return sandbox.Execution{}, err
		}
	}
	e, err := s.cfg.Executions.Submit(ctx, o, local)
	return e.ShownTo(who), err
}

// Execution returns one, and may wait for its end.
func (s *Service) Execution(ctx context.Context, id sandbox.ID, wait sandbox.Duration) (sandbox.Execution, error) {
	who, err := s.execution(ctx, reads, id)
	if err != nil {
		return sandbox.Execution{}, err
	}
	e, err := s.cfg.Executions.Execution(ctx, id, wait)
	return e.ShownTo(who), err
}

// execution returns who asks, where they see an execution and may do something
// about it.
func (s *Service) execution(ctx context.Context, a act, id sandbox.ID) (sandbox.Caller, error) {
	who, err := may(ctx, a)
	if err != nil {
		return who, err
	}
	e, err := s.cfg.Executions.Execution(ctx, id, 0)
	if err == nil && !who.Sees(e.Owner) {
		err = sandbox.Errorf(sandbox.NotFound, "no execution %s", id.Short()).WithHint("see those there are with: caisson execution list")
	}
	return who, err
}

// Executions returns those that a filter selects, the newest first.
func (s *Service) Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, error) {
	who, in, err := session(ctx, reads, f.Session)
	if err != nil {
		return nil, err
	}
	f.Session = in
	if f.Owner, err = own(who, f.Owner); err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	list, err := s.cfg.Executions.Executions(ctx, f)
	for i := range list {
		list[i] = list[i].ShownTo(who)
	}
	return list, err
}

// CancelExecution ends one.
func (s *Service) CancelExecution(ctx context.Context, id sandbox.ID) (sandbox.Execution, error) {
	who, err := s.execution(ctx, uses, id)
	if err != nil {
		return sandbox.Execution{}, err
	}
	e, err := s.cfg.Executions.Cancel(ctx, id)
	return e.ShownTo(who), err
}

// ExecutionArtifact writes the content of an artifact.
func (s *Service) ExecutionArtifact(ctx context.Context, id sandbox.ID, path string, w io.Writer) (int64, error) {
	if _, err := s.execution(ctx, reads, id); err != nil {
		return 0, err
	}
	return s.cfg.Executions.Artifact(ctx, id, path, w)
}

// DeadLetters returns callbacks that nobody took.
func (s *Service) DeadLetters(ctx context.Context, f sandbox.DeadLetterFilter) ([]sandbox.DeadLetter, error) {
	who, err := may(ctx, reads)
	if err != nil {
		return nil, err
	}
	if f.Owner, err = own(who, f.Owner); err != nil {
		return nil, err
	}
	return s.cfg.Executions.DeadLetters(ctx, f)
}

// ResendDeadLetter has one sent again.
func (s *Service) ResendDeadLetter(ctx context.Context, execution sandbox.ID) (sandbox.DeadLetter, error) {
	if _, err := s.execution(ctx, uses, execution); err != nil {
		return sandbox.DeadLetter{}, err
	}
	return s.cfg.Executions.Resend(ctx, execution)
}

// Tidy takes up, once in a process and beside its work, what dead ones left.
func (s *Service) Tidy(ctx context.Context) { s.tidy(ctx, true) }
