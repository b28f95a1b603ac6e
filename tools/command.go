package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// commandGrace is how long the output of a command is waited for that has ended, and
// that something it left behind holds open.
const commandGrace = 500 * time.Millisecond

// Command makes a tool of a program of this host: it gets the arguments as JSON on its
// standard input, and its result is what it prints: JSON, or a text where it is none.
// One that fails says why on standard error. It is run in folder; "" is this process's.
func Command(t sandbox.Tool, argv []string, folder string) (sandbox.Callable, error) {
	if len(argv) == 0 || argv[0] == "" {
		return sandbox.Callable{}, sandbox.Errorf(sandbox.Invalid, "tool %s: no command", t.Name).WithHint("write command: [program, argument, …]")
	}
	return sandbox.Callable{Tool: t, Call: func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = folder
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it ends with all that it has started
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = commandGrace
		cmd.Stdin = bytes.NewReader(arguments)
		out, said := &bounded{most: int(sandbox.MaxToolData)}, &bounded{most: mostError}
		cmd.Stdout, cmd.Stderr = out, said
		err := cmd.Run()
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind; mostly nothing
		}
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			return nil, failed(t.Name, err, strings.TrimSpace(said.kept.String()))
		}
		if out.over {
			return nil, sandbox.Errorf(sandbox.Exhausted, "tool %s: it printed more than %s", t.Name, sandbox.MaxToolData.Human())
		}
		return textOrJSON(out.kept.Bytes())
	}}, nil
}

// failed says why a command has no result.
func failed(name string, err error, said string) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if said == "" {
			said = "it printed nothing on standard error"
		}
		return sandbox.Errorf(sandbox.Internal, "tool %s: %s: %s", name, exit, said)
	}
	return sandbox.Errorf(sandbox.Unavailable, "tool %s: %w", name, err)
}

// textOrJSON is a result: JSON as it is, and anything else as a string.
func textOrJSON(b []byte) (json.RawMessage, error) {
	if json.Valid(b) {
		return b, nil
	}
	return json.Marshal(string(b))
}

// bounded keeps the beginning of what is written to it, and takes all.
type bounded struct {
	kept bytes.Buffer // not embedded: it would read by itself, without a bound
	most int
	over bool
}

var _ io.Writer = (*bounded)(nil)

// Write implements [io.Writer].
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.most-b.kept.Len())
	b.over = b.over || n < len(p)
	_, _ = b.kept.Write(p[:n]) // a buffer never fails
	return len(p), nil
}
