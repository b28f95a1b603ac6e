package client

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Start runs a command in the background: it returns once the process runs, and
// leaves it to the connection's lease, which has to keep it. Its output is kept
// up to a bound, the newest; [Client.Attach] and [Client.Output] read it. It
// uses neither Stdin nor Stdout nor Stderr nor Reap of cmd.
//
// A process that could not begin is an Outcome with a Message; otherwise that
// is nil.
func (c *Client) Start(ctx context.Context, cmd Command) (*Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	req := execRequest(cmd)
	req.Drop, req.Stdin, req.Reap = true, false, false
	s, err := c.open(ctx, wire.Request{Op: wire.OpExec, Exec: req})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	f, err := wire.NewReader(s).Next()
	switch {
	case err != nil:
		return nil, orContext(ctx, broken("start the exec", err))
	case f.Type == wire.TypeStarted:
		return nil, nil
	case f.Type == wire.TypeFailure:
		return nil, failure(f)
	case f.Type == wire.TypeEnd:
		var end wire.End
		if err := f.Message(&end); err != nil {
			return nil, broken("start the exec", err)
		}
		fo := &follower{cmd: cmd}
		out := fo.outcome()
		out.Code, out.Message, out.Reason = end.Code&0xff, end.Error[:min(len(end.Error), 4096)], sandbox.ReasonExited
		return &out, nil
	}
	return nil, broken("start the exec", wire.ErrFrame)
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
