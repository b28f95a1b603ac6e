package client

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// MaxOutward is how many connections of one exec an agent hands on at once, and
// MaxCalling how many to a tools' socket.
const (
	MaxOutward = wire.MaxOutward
	MaxCalling = wire.MaxCalling
)

// ToolsLib is the folder of an exec's staged files where programs with
// [Command].Tools find modules.
const ToolsLib = wire.ToolsLib

// Outlet is where an exec's programs connect to when they want to reach something
// outside: a port of the sandbox's loopback device, or, where Port is 0, the socket
// for calls of tools. Its owner closes it.
type Outlet struct {
	Port int

	c     *Client
	s     *yamux.Stream
	r     *wire.Reader
	id    sandbox.ID
	tools bool
	near  listener // in place of a stream
}

// listener is who accepts what programs connect by without a stream.
type listener interface {
	accept(ctx context.Context) (Accepted, error)
	close() error
}

// Accepted is a connection that a program has made. Read is for one goroutine; Close
// frees whoever reads or writes.
type Accepted interface {
	io.ReadWriteCloser
	// CloseWrite tells the program that no more comes.
	CloseWrite() error
	SetReadDeadline(t time.Time) error
}

// Tools opens the outlet of an exec that has [Command].Tools and is about to begin.
// The agent closes it when the exec has ended. What it refuses, Accept tells.
func (c *Client) Tools(ctx context.Context, id sandbox.ID) (*Outlet, error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpTools, Tools: &wire.Tools{ID: string(id)}})
	if err != nil {
		return nil, err
	}
	return &Outlet{c: c, s: s, r: wire.NewReader(s), id: id, tools: true}, nil
}

// Egress opens an outlet for an exec, which may not have begun. The agent closes it
// when the exec has ended. Errors: Exhausted where too many execs have one.
func (c *Client) Egress(ctx context.Context, id sandbox.ID) (*Outlet, error) {
	near, here, err := c.listen(ctx, id)
	if err != nil {
		return nil, err
	}
	if near != nil {
		return &Outlet{Port: here, near: near}, nil
	}
	s, err := c.open(ctx, wire.Request{Op: wire.OpEgress, Egress: &wire.Egress{ID: string(id)}})
	if err != nil {
		return nil, err
	}
	o := &Outlet{c: c, s: s, r: wire.NewReader(s), id: id}
	_ = s.SetReadDeadline(time.Now().Add(answerPatience)) // never fails on a stream
	stop := context.AfterFunc(ctx, func() { _ = s.SetReadDeadline(time.Unix(1, 0)) })
	port, err := o.number()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil && (port == 0 || port > 65535) {
		err = broken("open the way out", fmt.Errorf("%w: port %d", wire.ErrFrame, port))
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	_ = s.SetReadDeadline(time.Time{})
	o.Port = int(port)
	return o, nil
}

// number reads the next number that the agent tells.
func (o *Outlet) number() (uint32, error) {
	f, err := o.r.Next()
	if err != nil {
		return 0, broken("open the way out", o.c.orFault(err))
	}
	if f.Type == wire.TypeFailure {
		return 0, failure(f)
	}
	n, err := f.Number()
	if err != nil {
		return 0, broken("open the way out", err)
	}
	return n, nil
}

// Accept waits for a program to connect, and returns the connection. An error is the
// end of the outlet, as when the exec has ended.
func (o *Outlet) Accept(ctx context.Context) (Accepted, error) {
	if o.near != nil {
		return o.near.accept(ctx)
	}
	n, err := o.number()
	if err != nil {
		return nil, err
	}
	s, err := o.c.open(ctx, wire.Request{Op: wire.OpTake, Take: &wire.Take{ID: string(o.id), Conn: n, Tools: o.tools}})
	if err != nil {
		return nil, err
	}
	return &Conn{s: s, r: wire.NewReader(s)}, nil
}

// Close ends the outlet. Connections that were accepted are their takers' to close.
func (o *Outlet) Close() error {
	if o.near != nil {
		return o.near.close()
	}
	_ = o.s.SetReadDeadline(time.Unix(1, 0)) // frees who accepts
	return o.s.Close()
}
