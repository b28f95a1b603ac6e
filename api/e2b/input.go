package e2b

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/sandbox"
)

// sendInput writes to a command's input, or types into its terminal.
func (s *Server) sendInput(ctx context.Context, in *inputRequest) (*empty, error) {
	e, err := s.process(ctx, in.Process, false)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Input == nil:
		return nil, sandbox.Errorf(sandbox.Invalid, "no input")
	case e.Terminal:
		return &empty{}, s.typists.write(ctx, s.svc, viewFrom(ctx).Name, e.ID, append(in.Input.PTY, in.Input.Stdin...))
	}
	_, err = s.svc.InputExec(ctx, viewFrom(ctx).Name, e.ID, append(in.Input.Stdin, in.Input.PTY...), false)
	return &empty{}, err
}

// closeStdin ends a command's input.
func (s *Server) closeStdin(ctx context.Context, in *selectRequest) (*empty, error) {
	e, err := s.process(ctx, in.Process, false)
	if err != nil {
		return nil, err
	}
	if e.Terminal {
		return &empty{}, s.typists.write(ctx, s.svc, viewFrom(ctx).Name, e.ID, []byte{4}) // as a person ends it
	}
	_, err = s.svc.InputExec(ctx, viewFrom(ctx).Name, e.ID, nil, true)
	return &empty{}, err
}

// sendSignal ends a command with all that it started, or asks its process to end.
func (s *Server) sendSignal(ctx context.Context, in *signalRequest) (*empty, error) {
	if s.killWaiting(ctx, in.Process) {
		return &empty{}, nil
	}
	e, err := s.process(ctx, in.Process, false)
	if err != nil {
		return nil, err
	}
	if in.Signal < 1 || in.Signal > 64 {
		return nil, sandbox.Errorf(sandbox.Invalid, "signal %d", in.Signal).WithHint("send SIGNAL_SIGTERM or SIGNAL_SIGKILL")
	}
	err = s.svc.SignalExec(ctx, viewFrom(ctx).Name, e.ID, int(in.Signal), in.Signal == signals["SIGNAL_SIGKILL"])
	if errors.Is(err, sandbox.Conflict) {
		err = sandbox.Errorf(sandbox.NotFound, "no such process") // it ended meanwhile
	}
	return &empty{}, err
}

// update sets the size of a command's terminal.
func (s *Server) update(ctx context.Context, in *updateRequest) (*empty, error) {
	e, err := s.process(ctx, in.Process, false)
	if err != nil {
		return nil, err
	}
	if in.PTY == nil || in.PTY.Size == nil {
		return &empty{}, nil
	}
	return &empty{}, s.svc.ResizeExec(ctx, viewFrom(ctx).Name, e.ID, uint16(min(in.PTY.Size.Rows, 1<<15)), uint16(min(in.PTY.Size.Cols, 1<<15)))
}
