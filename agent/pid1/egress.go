//go:build linux

package pid1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// mostOutlets bounds the execs that have a proxy at once: with as many connections as
// each may have, and those to tools and to ports, they stay below the files that the agent may open.
const mostOutlets = 22

// takePatience is how long a connection waits for the host to take it.
const takePatience = 30 * time.Second

// outward are the proxies of the execs: the agent listens and carries bytes, and the
// host speaks. The zero value is ready.
type outward struct {
	mu      sync.Mutex
	outlets map[string]*outlet
}

// outlet is one exec's.
type outlet struct {
	ln     net.Listener
	places chan struct{} // one for each connection
	host   io.Closer     // who accepts, by a socket of its own; nil where the agent does

	mu      sync.Mutex
	over    bool
	last    uint32
	waiting map[uint32]passage // that the host has not taken yet
	all     map[passage]struct{}
}

// passage is a connection with a program.
type passage interface {
	net.Conn
	CloseWrite() error
}

func newOutlet(ln net.Listener, places int) *outlet {
	return &outlet{ln: ln, places: make(chan struct{}, places), waiting: map[uint32]passage{}, all: map[passage]struct{}{}}
}

var (
	errOutletTaken = errors.New("that exec has a proxy, or its port is taken")
	errOutlets     = errors.New("too many execs have a proxy")
)

// open listens for an exec, at a port that it had before; 0 is any. host is nil where
// the agent accepts.
func (o *outward) open(ctx context.Context, id string, port int, host io.Closer) (*outlet, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.outlets[id] != nil:
		return nil, errOutletTaken
	case len(o.outlets) >= mostOutlets:
		return nil, errOutlets
	}
	var cfg net.ListenConfig
	cfg.SetMultipathTCP(false) // a host takes a socket of TCP alone
	ln, err := cfg.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, errOutletTaken // by a program, meanwhile
	}
	if err != nil {
		return nil, err
	}
	if o.outlets == nil {
		o.outlets = map[string]*outlet{}
	}
	out := newOutlet(ln, wire.MaxOutward)
	out.host = host
	o.outlets[id] = out
	return out, nil
}

func (o *outward) find(id string) *outlet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.outlets[id]
}

// end closes the proxy of an exec, where it has one, and all its connections.
func (o *outward) end(id string) {
	o.mu.Lock()
	out := o.outlets[id]
	delete(o.outlets, id)
	o.mu.Unlock()
	out.end()
}

// end closes an outlet and all its connections. nil is none.
func (o *outlet) end() {
	if o == nil {
		return
	}
	if o.host != nil {
		shut(o.ln.(*net.TCPListener)) // the host's, too
		_ = o.host.Close()
	}
	_ = o.ln.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	for c := range o.all {
		_ = c.Close()
	}
}

// add notes a connection, and returns its number.
func (o *outlet) add(c passage) (n uint32, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return 0, false
	}
	o.last++
	n = o.last
	o.waiting[n], o.all[c] = c, struct{}{}
	time.AfterFunc(takePatience, func() { o.drop(o.take(n)) })
	return n, true
}

// take hands a connection that waits to whoever asks first; nil is none.
func (o *outlet) take(n uint32) passage {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.waiting[n]
	delete(o.waiting, n)
	return c
}

// drop closes a connection and gives its place back. nil is none.
func (o *outlet) drop(c passage) {
	if c == nil {
		return
	}
	_ = c.Close()
	o.mu.Lock()
	delete(o.all, c)
	o.mu.Unlock()
	<-o.places
}

// shut has a socket listen no more, whoever has it besides.
func shut(ln *net.TCPListener) {
	raw, err := ln.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // fails where it has ended
	}
}

// passOutlet listens for an exec as [Agent.callEgress] does, and has the host accept by
// itself: nothing is copied between. Where that fails, the host learns why by the call.
func (a *Agent) passOutlet(conn net.Conn, id string) {
	c, ok := conn.(*net.UnixConn)
	if !ok || !validID(id) || c.SetDeadline(time.Time{}) != nil {
		return
	}
	out, err := a.outward.open(context.Background(), id, a.proxyPort(id, 0), c)
	if err != nil {
		return
	}
	defer a.outward.end(id)
	ln := out.ln.(*net.TCPListener)
	raw, err := ln.SyscallConn()
	if err != nil { // not its File, which would have both block
		return
	}
	failed := raw.Control(func(fd uintptr) { _, _, err = c.WriteMsgUnix([]byte{1}, unix.UnixRights(int(fd)), nil) })
	if failed == nil && err == nil {
		_, _ = c.Read(make([]byte, 1)) // the host says nothing more: whatever comes is the end
	}
	a.proxyPort(id, ln.Addr().(*net.TCPAddr).Port)
}

// callEgress listens for an exec until that ends or the host is gone. Another host may
// then listen for it again, at the port that its programs know.
func (a *Agent) callEgress(s *yamux.Stream, r *wire.Reader, req *wire.Egress) {
	if !validID(req.ID) {
		fail(s, "invalid", fmt.Errorf("exec id %q", req.ID))
		return
	}
	out, err := a.outward.open(context.Background(), req.ID, a.proxyPort(req.ID, 0), nil)
	if err != nil {
		kind := "exhausted"
		if errors.Is(err, errOutletTaken) {
			kind = "conflict"
		}
		fail(s, kind, err)
		return
	}
	port := out.ln.Addr().(*net.TCPAddr).Port
	defer a.outward.end(req.ID)
	go func() {
		_, _ = r.Next() // the host says nothing more: whatever comes is the end
		a.proxyPort(req.ID, port)
		a.outward.end(req.ID)
	}()
	if _, err := s.Write(wire.AppendNumber(nil, uint32(port))); err != nil {
		return
	}
	out.announce(s, func(net.Conn) bool { return true })
}

// proxyPort returns the port of the proxy that an exec had, and sets it where port is
// not 0. One that has not begun, or has ended, has none.
func (a *Agent) proxyPort(id string, port int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	ex := a.execs[id]
	if ex == nil {
		return 0
	}
	ex.proxy = cmp.Or(port, ex.proxy)
	return ex.proxy
}

// announce tells the host of each connection that comes and that is admitted, until
// the outlet ends or the host does.
func (o *outlet) announce(s io.Writer, admit func(net.Conn) bool) {
	for {
		o.places <- struct{}{} // who has none waits in the kernel's queue
		c, err := o.ln.Accept()
		if err != nil {
			return
		}
		if !admit(c) {
			_ = c.Close()
			<-o.places
			continue
		}
		conn := c.(passage)
		n, ok := o.add(conn)
		if !ok {
			_ = conn.Close()
			return
		}
		if _, err := s.Write(wire.AppendNumber(nil, n)); err != nil {
			return
		}
	}
}

// callTake carries one connection.
func (a *Agent) callTake(s *yamux.Stream, r *wire.Reader, req *wire.Take) {
	out := a.outward.find(req.ID)
	if req.Tools {
		out = a.calling.find(req.ID)
	}
	var conn passage
	if out != nil {
		conn = out.take(req.Conn)
	}
	if conn == nil {
		fail(s, "not_found", fmt.Errorf("no connection %d of exec %s", req.Conn, req.ID))
		return
	}
	defer out.drop(conn)
	carry(s, r, conn)
}

// carry copies between the host and a connection in the sandbox until both have said
// all, or either is gone.
func carry(s *yamux.Stream, r *wire.Reader, conn passage) {
	inward := make(chan struct{})
	go func() {
		defer close(inward)
		if !fromHost(conn, r) {
			_ = conn.Close() // the host is gone, or has enough
			_ = s.SetWriteDeadline(time.Unix(1, 0))
		}
	}()
	_, err := io.CopyBuffer(wire.DataWriter{W: s}, onlyReader{conn}, make([]byte, 32<<10))
	if err == nil {
		err = wire.WriteFrame(s, wire.TypeDataEnd, nil)
	}
	if err != nil {
		_ = s.Close()
		_ = conn.Close()
	}
	<-inward
}

// onlyReader hides what would let a copy choose its own buffer.
type onlyReader struct{ io.Reader }

// fromHost copies what the host says to the program, and reports whether it came to
// its end.
func fromHost(conn passage, r *wire.Reader) bool {
	for {
		f, err := r.Next()
		switch {
		case err != nil:
			return false
		case f.Type == wire.TypeDataEnd:
			return conn.CloseWrite() == nil && hostGone(r)
		case f.Type != wire.TypeData:
			return false
		}
		if _, err := conn.Write(f.Payload); err != nil {
			return false
		}
	}
}

// hostGone waits until the host ends the stream; it always reports false.
func hostGone(r *wire.Reader) bool {
	_, _ = r.Next() // nothing comes but the end
	return false
}
