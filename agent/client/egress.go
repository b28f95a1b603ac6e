package client

import (
	"context"
	"fmt"
	"io"
	"sync"
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
func (o *Outlet) Accept(ctx context.Context) (*OutletConn, error) {
	n, err := o.number()
	if err != nil {
		return nil, err
	}
	s, err := o.c.open(ctx, wire.Request{Op: wire.OpTake, Take: &wire.Take{ID: string(o.id), Conn: n, Tools: o.tools}})
	if err != nil {
		return nil, err
	}
	return &OutletConn{s: s, r: wire.NewReader(s)}, nil
}

// Close ends the outlet and, at the agent, all its connections.
func (o *Outlet) Close() error {
	_ = o.s.SetReadDeadline(time.Unix(1, 0)) // frees who accepts
	return o.s.Close()
}

// OutletConn is a connection of a program in the sandbox. Read is for one goroutine,
// and so is Write.
type OutletConn struct {
	s    *yamux.Stream
	r    *wire.Reader
	rest []byte
	end  error

	write sync.Mutex
}

// Read returns what the program says, and io.EOF once it says no more.
func (c *OutletConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.end != nil {
			return 0, c.end
		}
		f, err := c.r.Next()
		switch {
		case err != nil:
			c.end = broken("read what a program sends out", err)
		case f.Type == wire.TypeDataEnd:
			c.end = io.EOF
		case f.Type == wire.TypeData:
			c.rest = f.Payload
		case f.Type == wire.TypeFailure:
			c.end = failure(f)
		default:
			c.end = broken("read what a program sends out", fmt.Errorf("%w: type %d", wire.ErrFrame, f.Type))
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write hands bytes to the program.
func (c *OutletConn) Write(p []byte) (int, error) {
	c.write.Lock()
	defer c.write.Unlock()
	return wire.DataWriter{W: c.s}.Write(p)
}

// CloseWrite tells the program that no more comes.
func (c *OutletConn) CloseWrite() error {
	c.write.Lock()
	defer c.write.Unlock()
	return wire.WriteFrame(c.s, wire.TypeDataEnd, nil)
}

// SetReadDeadline bounds Read. What was cut short by it cannot be read on.
func (c *OutletConn) SetReadDeadline(t time.Time) error { return c.s.SetReadDeadline(t) }

// Close ends the connection, for the program too. Whoever reads or writes is freed.
func (c *OutletConn) Close() error {
	_ = c.s.SetDeadline(time.Unix(1, 0))
	return c.s.Close()
}
