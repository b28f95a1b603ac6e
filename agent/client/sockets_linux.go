package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// listening is the agent's own socket, by which programs are accepted here. An agent in
// the wrong hands has it too, and sets it as it likes: nobody waits for a call on it, and
// what it accepts is this side's alone.
type listening struct {
	c        *net.UnixConn // whose end is the outlet's
	ln       *net.TCPListener
	accepted chan *net.TCPConn
	ended    chan struct{} // closed once nothing more is accepted
	over     chan struct{} // closed once c has ended
}

// listen has the agent listen for an exec, and takes the socket; nil where the agent is
// too far away, or where the call would fail, which tells why.
func (c *Client) listen(ctx context.Context, id sandbox.ID) (_ listener, port int, err error) {
	if c.dial == nil {
		return nil, 0, nil
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, 0, orContext(ctx, err)
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, 0, conn.Close()
	}
	stop := context.AfterFunc(ctx, func() { _ = u.SetDeadline(time.Unix(1, 0)) })
	ln, err := takeListener(u, wire.Hello{Version: wire.Version, Secret: c.secret, Outlet: string(id)})
	if !stop() && err == nil {
		go ln.Close() // in which the agent may have it wait
		err = ctx.Err()
	}
	if err != nil {
		_ = u.Close()
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return nil, 0, orContext(ctx, err)
	}
	l := &listening{c: u, ln: ln, accepted: make(chan *net.TCPConn), ended: make(chan struct{}), over: make(chan struct{})}
	go l.acceptAll()
	go l.watch()
	go func() {
		select {
		case <-c.session.CloseChan(): // the client has ended
			_ = l.close()
		case <-l.over:
		}
	}()
	return l, ln.Addr().(*net.TCPAddr).Port, nil
}

// takeListener asks for a socket that listens.
func takeListener(u *net.UnixConn, h wire.Hello) (*net.TCPListener, error) {
	_ = u.SetDeadline(time.Now().Add(helloPatience)) // fails with what follows
	if err := wire.WriteMessage(u, wire.TypeHello, h); err != nil {
		return nil, broken("open the way out", err)
	}
	f, err := receiveFile(u)
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, broken("open the way out", err)
	}
	found, err := net.FileListener(f)
	go f.Close() // in which the agent may have it wait
	if err != nil {
		return nil, broken("open the way out", err)
	}
	ln, ok := found.(*net.TCPListener)
	if !ok || protocol(ln) != unix.IPPROTO_TCP { // others end in other ways
		go found.Close()
		return nil, broken("open the way out", fmt.Errorf("%w: it listens for no TCP", wire.ErrFrame))
	}
	return ln, u.SetDeadline(time.Time{})
}

// protocol is that of a socket; 0 is none that can be told.
func protocol(ln *net.TCPListener) (n int) {
	raw, err := ln.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL) }) // 0 is refused
	}
	return n
}

// acceptAll accepts until the socket listens no more.
func (l *listening) acceptAll() {
	defer close(l.ended)
	defer l.ln.Close()
	for {
		c, err := l.ln.AcceptTCP()
		if err != nil {
			return
		}
		_ = c.SetLinger(-1) // which the agent may have set: closing waits for nobody
		select {
		case l.accepted <- c:
		case <-l.over:
			_ = c.Close()
			return
		}
	}
}

// watch ends it all when the connection ends.
func (l *listening) watch() {
	_, _ = l.c.Read(make([]byte, 1)) // the agent says nothing more: whatever comes is the end
	_ = l.c.Close()
	close(l.over)
	for l.shut(); ; l.shut() { // an agent in the wrong hands can have it listen again
		select {
		case <-l.ended:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// shut frees whoever accepts, also in a call that blocks.
func (l *listening) shut() {
	raw, err := l.ln.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // fails where it has ended
	}
}

func (l *listening) accept(ctx context.Context) (Accepted, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ended:
	case <-l.over:
	}
	return nil, broken("take a connection", io.EOF)
}

// close ends it. The connections that came stay open.
func (l *listening) close() error {
	l.shut() // before the agent, or another host, listens at its port again
	return l.c.Close()
}
