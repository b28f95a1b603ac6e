package manager

import (
	"context"
	"io"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// AttachExec copies what an exec has put out, from the given offsets on; nil
// writers discard it. The exec goes on whatever ends the copying, and what one
// reads stays for the next. Errors: NotFound, and those of the writers.
func (m *Manager) AttachExec(ctx context.Context, session string, id sandbox.ID, opts sandbox.AttachOptions, stdout, stderr io.Writer) (sandbox.Attached, error) {
	if opts.Stdout < 0 || opts.Stderr < 0 {
		return sandbox.Attached{}, sandbox.Errorf(sandbox.Invalid, "an offset that is negative").WithHint("count from the exec's start, which is 0")
	}
	e, b, err := m.execBox(ctx, session, id)
	if err != nil {
		return sandbox.Attached{}, err
	}
	var out client.Outcome
	var ended bool
	cmd := client.Command{ID: id, Stdout: stdout, Stderr: stderr, Drop: true, Look: true}
	if opts.Follow {
		out, err = b.Client.Attach(ctx, cmd, opts.Stdout, opts.Stderr)
		ended = err == nil && out.Reason != sandbox.ReasonInfra
	} else {
		out, ended, err = b.Client.Output(ctx, cmd, opts.Stdout, opts.Stderr)
	}
	out.Exit = out.Coded()
	if ended && e.Background && e.Ended.IsZero() { // the end of others is told by who runs them
		err = joinErr(err, m.conclude(ctx, b, e, out))
	}
	a := sandbox.Attached{Stdout: out.Stdout, Stderr: out.Stderr, Lost: out.Lost, Ended: ended}
	if ended {
		a.Exit, a.Usage = out.Exit, out.Usage
	}
	return a, err
}

// laterInput stands for an input that is written once the exec runs. Who judges
// the exec would wait for it without an end.
type laterInput struct{}

// Read fails.
func (laterInput) Read([]byte) (int, error) {
	return 0, sandbox.Errorf(sandbox.Invalid, "a program that is written later cannot be judged").WithHint("give it as code or as a file, and its input later")
}

// InputExec writes to the standard input of an exec that was started with
// [sandbox.Run].Input, and with end closes it behind that. It waits while the
// process does not read, and returns how much that one was given. Errors:
// NotFound, Conflict where that input is closed or was never open.
func (m *Manager) InputExec(ctx context.Context, session string, id sandbox.ID, b []byte, end bool) (int, error) {
	_, box, err := m.execBox(ctx, session, id)
	if err != nil {
		return 0, err
	}
	return box.Client.Input(ctx, id, b, end)
}

// ResizeExec sets the size of an exec's terminal, in characters. Errors:
// NotFound, Conflict where it has none.
func (m *Manager) ResizeExec(ctx context.Context, session string, id sandbox.ID, rows, cols uint16) error {
	_, box, err := m.execBox(ctx, session, id)
	if err != nil {
		return err
	}
	return box.Client.Resize(ctx, id, rows, cols)
}
