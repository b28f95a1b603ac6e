package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// noTools refuses tools of this process where it does not wait for what calls them.
func noTools(begin wire.Begin, local sandbox.Local) error {
	if len(local.Tools) == 0 || begin.Run != nil && !begin.Start {
		return nil
	}
	return sandbox.Errorf(sandbox.Unsupported, "tools that this process answers are for a run that it waits for").WithHint("declare them in the server's caisson.yaml")
}

// mostResult bounds a result, which a server reads as one message.
const mostResult = 48 << 20

// call answers a call of a tool beside all that goes on. One that is given up nobody
// waits for.
func (x *connection) call(m wire.Message) {
	ctx, cancel := context.WithCancel(x.ctx)
	x.mu.Lock()
	x.asking[m.Stream] = cancel
	x.mu.Unlock()
	done := make(chan wire.Message, 1)
	go func() { done <- x.answer(ctx, m) }() // it ends with the tool's function
	x.tasks.Go(func() {
		defer cancel()
		select {
		case reply := <-done:
			_ = x.say(reply) // as in end
		case <-ctx.Done():
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.asking, m.Stream)
	})
}

// answer runs a tool. One that panics fails alone.
func (x *connection) answer(ctx context.Context, m wire.Message) (reply wire.Message) {
	reply = wire.Message{Type: wire.MsgAnswer, Stream: m.Stream}
	defer func() {
		if p := recover(); p != nil {
			reply.Problem = problemOf(sandbox.Errorf(sandbox.Internal, "tool %s: it crashed: %s", m.Tool, fmt.Sprint(p)))
		}
	}()
	for _, t := range x.streams.Tools {
		if t.Name != m.Tool {
			continue
		}
		arguments := m.Arguments
		if arguments == nil {
			arguments = json.RawMessage("{}")
		}
		var err error
		reply.Result, err = t.Call(ctx, arguments)
		switch {
		case err != nil || len(reply.Result) == 0:
		case len(reply.Result) > mostResult:
			err = sandbox.Errorf(sandbox.Exhausted, "tool %s: its result has more than %d MiB", m.Tool, mostResult>>20)
		case !json.Valid(reply.Result):
			err = sandbox.Errorf(sandbox.Internal, "tool %s: its result is not JSON", m.Tool)
		}
		if reply.Problem = problemOf(err); err != nil {
			reply.Result = nil
		}
		return reply
	}
	reply.Problem = problemOf(sandbox.Errorf(sandbox.NotFound, "there is no tool %q", m.Tool))
	return reply
}
