//go:build linux

package pid1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
)

// mostOutlets bounds the execs that have a proxy at once: with as many connections as
// each may have, they stay below the files that the agent may open.
const mostOutlets = 24

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

	mu      sync.Mutex
	over    bool
	last    uint32
	waiting map[uint32]passage // that the host has not taken yet
	all     map[passage]struct{}
}

// passage is a program's connection.
type passage interface {
	net.Conn
	CloseWrite() error
}

func newOutlet(ln net.Listener, places int) *outlet {
	return &outlet{ln: ln, places: make(chan struct{}, places), waiting: map[uint32]passage{}, all: map[passage]struct{}{}}
}

var (
	errOutletTaken = errors.New("that exec has a proxy")
	errOutlets     = errors.New("too many execs have a proxy")
)

func (o *outward) open(ctx context.Context, id string) (*outlet, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.outlets[id] != nil:
		return nil, errOutletTaken
	case len(o.outlets) >= mostOutlets:
		return nil, errOutlets
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if o.outlets == nil {
		o.outlets = map[string]*outlet{}
	}
	out := newOutlet(ln, wire.MaxOutward)
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

// callEgress listens for an exec until that ends or the host is gone.
func (a *Agent) callEgress(s *yamux.Stream, r *wire.Reader, req *wire.Egress) {
	if !validID(req.ID) {
		fail(s, "invalid", fmt.Errorf("exec id %q", req.ID))
		return
	}
	out, err := a.outward.open(context.Background(), req.ID)
	if err != nil {
		kind := "exhausted"
		if errors.Is(err, errOutletTaken) {
			kind = "conflict"
		}
		fail(s, kind, err)
		return
	}
	defer a.outward.end(req.ID)
	go func() {
		_, _ = r.Next() // the host says nothing more: whatever comes is the end
		a.outward.end(req.ID)
	}()
	if _, err := s.Write(wire.AppendNumber(nil, uint32(out.ln.Addr().(*net.TCPAddr).Port))); err != nil {
		return
	}
	out.announce(s, func(net.Conn) bool { return true })
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
