package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Dial connects to a TCP port of the sandbox's loopback device that programs of its
// user listen on. Errors: NotFound where none does, Exhausted.
func (c *Client) Dial(ctx context.Context, port int) (*Conn, error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpDial, Dial: &wire.Dial{Port: port}})
	if err != nil {
		return nil, err
	}
	_ = s.SetReadDeadline(time.Now().Add(answerPatience)) // never fails on a stream
	stop := context.AfterFunc(ctx, func() { _ = s.SetReadDeadline(time.Unix(1, 0)) })
	conn := &Conn{s: s, r: wire.NewReader(s)}
	f, err := conn.r.Next()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = broken("connect to a port", c.orFault(err))
	case f.Type == wire.TypeFailure:
		err = failure(f)
	case f.Type != wire.TypeReply:
		err = broken("connect to a port", fmt.Errorf("%w: type %d for a reply", wire.ErrFrame, f.Type))
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	_ = s.SetReadDeadline(time.Time{})
	return conn, nil
}

// Conn is a connection with a program in the sandbox. Read is for one goroutine. What
// a deadline cut short cannot be gone on with.
type Conn struct {
	s    *yamux.Stream
	r    *wire.Reader
	rest []byte
	end  error

	write sync.Mutex
}

// Read returns what the program says, and io.EOF once it says no more.
func (c *Conn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.end != nil {
			return 0, c.end
		}
		f, err := c.r.Next()
		switch {
		case err != nil:
			c.end = broken("read what a program sends", err)
		case f.Type == wire.TypeDataEnd:
			c.end = io.EOF
		case f.Type == wire.TypeData:
			c.rest = f.Payload
		case f.Type == wire.TypeFailure:
			c.end = failure(f)
		default:
			c.end = broken("read what a program sends", fmt.Errorf("%w: type %d", wire.ErrFrame, f.Type))
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write hands bytes to the program.
func (c *Conn) Write(p []byte) (int, error) {
	c.write.Lock()
	defer c.write.Unlock()
	return wire.DataWriter{W: c.s}.Write(p)
}

// CloseWrite tells the program that no more comes.
func (c *Conn) CloseWrite() error {
	c.write.Lock()
	defer c.write.Unlock()
	return wire.WriteFrame(c.s, wire.TypeDataEnd, nil)
}

// Close ends the connection, for the program too. Whoever reads or writes is freed.
func (c *Conn) Close() error {
	_ = c.s.SetDeadline(time.Unix(1, 0))
	return c.s.Close()
}

// address is the end of a connection that has no other name.
type address struct{}

func (address) Network() string { return "sandbox" }
func (address) String() string  { return "sandbox" }

// LocalAddr implements [net.Conn], and tells nothing.
func (c *Conn) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements [net.Conn], and tells nothing.
func (c *Conn) RemoteAddr() net.Addr { return address{} }

// SetDeadline bounds Read and Write.
func (c *Conn) SetDeadline(t time.Time) error { return c.s.SetDeadline(t) }

// SetReadDeadline bounds Read.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.s.SetReadDeadline(t) }

// SetWriteDeadline bounds Write.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.s.SetWriteDeadline(t) }

var _ net.Conn = (*Conn)(nil)
