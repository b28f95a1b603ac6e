package manager

import (
	"bytes"
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// AttachTerminal joins the terminal of an exec that was started with
// [sandbox.Run].Terminal, until the exec ends or ctx is done: what it has shown last
// is shown again on Stdout, without what would have a terminal answer, and then what
// comes. Stdin is typed into it; its end types nothing more. Any number may watch,
// with a nil Stdin, and one types. Errors: NotFound, Conflict where the exec has no
// terminal or somebody else types, and those of Stdout.
func (m *Manager) AttachTerminal(ctx context.Context, session string, id sandbox.ID, streams sandbox.Streams) (sandbox.Attached, error) {
	e, b, err := m.execBox(ctx, session, id)
	if err != nil {
		return sandbox.Attached{}, err
	}
	if !e.Terminal {
		return sandbox.Attached{}, sandbox.Errorf(sandbox.Conflict, "exec %s has no terminal", id.Short()).WithHint("follow it with: caisson logs --follow %s %s", session, id.Short())
	}
	if streams.Stdin != nil && e.Ended.IsZero() {
		stop, err := b.Client.Type(ctx, id, streams.Stdin)
		if err != nil {
			return sandbox.Attached{}, err
		}
		defer stop()
	}
	var kept bytes.Buffer
	seen, err := m.AttachExec(ctx, session, id, sandbox.AttachOptions{}, &kept, nil)
	if err != nil {
		return seen, err
	}
	shown, rest := replayOf(kept.Bytes(), seen.Lost.Stdout > 0)
	if streams.Stdout != nil {
		if _, err := streams.Stdout.Write(shown); err != nil {
			return seen, err
		}
	}
	if seen.Ended {
		return seen, nil
	}
	now, err := m.AttachExec(ctx, session, id, sandbox.AttachOptions{Stdout: seen.Stdout - int64(rest), Follow: true}, streams.Stdout, nil)
	now.Lost.Stdout += seen.Lost.Stdout
	return now, err
}
