package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Start runs a command in the background: it returns once the process runs, and
// leaves it to the connection's lease, which has to keep it. Its output is kept
// up to a bound, the newest; [Client.Attach] and [Client.Output] read it. With
// Later its standard input stays open for [Client.Input]. It uses neither Stdin
// nor Stdout nor Stderr nor Reap of cmd. With Terminal it has a terminal, which [Client.Type] types into.
//
// A process that could not begin is an Outcome with a Message; otherwise that
// is nil, and pid the agent's word on the process's number in the sandbox.
func (c *Client) Start(ctx context.Context, cmd Command) (pid int, never *Outcome, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	req := c.execRequest(cmd)
	req.Drop, req.Stdin, req.Reap = true, cmd.Later || cmd.Terminal != nil, false
	s, err := c.open(ctx, wire.Request{Op: wire.OpExec, Exec: req})
	if err != nil {
		return 0, nil, err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	f, err := wire.NewReader(s).Next()
	switch {
	case err != nil:
		return 0, nil, orContext(ctx, broken("start the exec", c.orFault(err)))
	case f.Type == wire.TypeStarted:
		var started wire.Started
		if err := f.Message(&started); err != nil {
			return 0, nil, broken("start the exec", err)
		}
		return max(0, started.PID), nil, nil
	case f.Type == wire.TypeFailure:
		return 0, nil, failure(f)
	case f.Type == wire.TypeEnd:
		var end wire.End
		if err := f.Message(&end); err != nil {
			return 0, nil, broken("start the exec", err)
		}
		fo := &follower{cmd: cmd}
		out := fo.outcome()
		out.Code, out.Message, out.Reason = end.Code&0xff, end.Error[:min(len(end.Error), 4096)], sandbox.ReasonExited
		return 0, &out, nil
	}
	return 0, nil, broken("start the exec", wire.ErrFrame)
}

// errNotEnded is what an Output call finds where the exec goes on.
var errNotEnded = errors.New("the exec goes on")

// Output reads what an exec has put out so far, from the given offsets on, as
// [Client.Attach] does, but does not wait for more. ended is false where the
// exec goes on; the Outcome then only counts the bytes.
func (c *Client) Output(ctx context.Context, cmd Command, stdout, stderr int64) (out Outcome, ended bool, err error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpAttach, Attach: &wire.Attach{ID: string(cmd.ID), Stdout: stdout, Stderr: stderr, NoWait: true}})
	if err != nil {
		return Outcome{}, false, err
	}
	cmd.Timeout, cmd.Stdin, cmd.Drop = 0, nil, true
	f := &follower{c: c, s: s, cmd: cmd, got: [2]int64{stdout, stderr}, noWait: true}
	out, err = f.follow(ctx)
	if errors.Is(err, errNotEnded) {
		return f.outcome(), false, nil
	}
	return out, err == nil, err
}

// Signal sends a signal to an exec's process, or to everything that it started.
// Errors: NotFound, Conflict where it has ended, Invalid.
func (c *Client) Signal(ctx context.Context, id sandbox.ID, number int, all bool) error {
	_, err := c.ask(ctx, wire.Request{Op: wire.OpSignal, Signal: &wire.Signal{ID: string(id), Number: number, All: all}})
	return err
}

// inputPatience is how long an agent has to say what was taken after nobody waits
// for that any more. It waits for a process for a second.
const inputPatience = 3 * time.Second

// Input writes to the standard input of an exec that was started with Later, and
// with end closes it behind that. It waits while the process does not read; n is
// how much that was given, also where ctx was done meanwhile: the agent answers
// all the same, and has [inputPatience] for it. Errors: NotFound, and Conflict
// where its input is closed or was never open.
func (c *Client) Input(ctx context.Context, id sandbox.ID, b []byte, end bool) (n int, err error) {
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(inputPatience, stop) })()
	for ctx.Err() == nil {
		part := b[n:min(len(b), n+wire.MaxChunk)]
		req := &wire.Input{ID: string(id), Data: part, Close: end && n+len(part) == len(b)}
		r, err := c.ask(asking, wire.Request{Op: wire.OpInput, Input: req})
		if err != nil {
			if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Kind == sandbox.Conflict {
				err = e.WithHint("an input is open while the exec runs and was started with: caisson exec --detach --input")
			}
			return n, err
		}
		if r.Bytes < 0 || r.Bytes > int64(len(part)) {
			return n, broken("write to the exec", fmt.Errorf("%w: %d of %d bytes taken", wire.ErrFrame, r.Bytes, len(part)))
		}
		if n += int(r.Bytes); n == len(b) {
			return n, nil
		}
	}
	return n, context.Cause(ctx)
}

// Resize sets the size of an exec's terminal. Errors: NotFound, and Conflict
// where it has none.
func (c *Client) Resize(ctx context.Context, id sandbox.ID, rows, cols uint16) error {
	_, err := c.ask(ctx, wire.Request{Op: wire.OpResize, Resize: &wire.Resize{ID: string(id), Size: wire.Size{Rows: rows, Cols: cols}}})
	return err
}

// Renew sets when the sandbox ends itself, counted from now: without a use for
// idle, and after ttl at the latest. nil leaves one as it is, 0 is never.
func (c *Client) Renew(ctx context.Context, idle, ttl *time.Duration) error {
	_, err := c.ask(ctx, wire.Request{Op: wire.OpRenew, Renew: &wire.Renew{IdleMS: wireMS(idle), TTLMS: wireMS(ttl)}})
	return err
}

func wireMS(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := ceilMS(*d)
	return &ms
}
