package egress

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Config says by what a way leads out. The zero value is this host's own network.
type Config struct {
	// Resolve returns the addresses of a name; nil asks this host's resolver.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address that was checked; nil dials TCP.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Patience is how long a program may take to say where it wants to go, and that
	// what it says can take to be connected to. 0 is ten seconds.
	Patience time.Duration
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// Conn is a connection of a program inside, as the agent hands it on.
type Conn interface {
	io.ReadWriteCloser
	// CloseWrite tells the program that no more comes.
	CloseWrite() error
	SetReadDeadline(t time.Time) error
}

// Way is one exec's way out. It is safe for concurrent use, and made by [New].
type Way struct {
	cfg         Config
	allow, deny []sandbox.HostPattern

	mu   sync.Mutex
	told []sandbox.Connection
	more int
}

// New returns a way to the hosts of a network. It opens nothing. Errors: Invalid.
func New(cfg Config, network sandbox.Network) (*Way, error) {
	if err := network.Check(); err != nil {
		return nil, err
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".") // as it stands, whatever this host would search in
		}
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", to.String())
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Patience = cmp.Or(cfg.Patience, 10*time.Second)
	w := &Way{cfg: cfg}
	for _, list := range []struct {
		from []string
		to   *[]sandbox.HostPattern
	}{{network.Allow, &w.allow}, {network.Deny, &w.deny}} {
		for _, s := range list.from {
			p, err := sandbox.ParseHostPattern(s)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, p)
		}
	}
	return w, nil
}

// Connections are those that have ended, and how many more there were than are
// told.
func (w *Way) Connections() (told []sandbox.Connection, more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sandbox.Connection(nil), w.told...), w.more
}

func (w *Way) tell(c sandbox.Connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.told) >= sandbox.MaxConnections {
		w.more++
		return
	}
	w.told = append(w.told, c)
}

// Serve speaks with a program that has connected to the proxy, and returns once
// both sides have ended, one of them broke, or ctx is done. It closes conn.
func (w *Way) Serve(ctx context.Context, conn Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	meter := &metered{Conn: conn, left: math.MaxInt64}
	in := &inside{Conn: conn, meter: meter, r: bufio.NewReaderSize(meter, 32<<10)}
	if w.hurry(in) != nil {
		return
	}
	first, err := in.r.Peek(1)
	if err != nil {
		return
	}
	if first[0] == socksVersion {
		w.serveSOCKS(ctx, in)
		return
	}
	w.serveHTTP(ctx, in)
}

// inside is the program's side, with what was read of it and not used.
type inside struct {
	Conn
	meter *metered
	r     *bufio.Reader
}

func (i *inside) Read(p []byte) (int, error) { return i.r.Read(p) }

// hurry gives the program as long as the way's patience to say what it wants.
func (w *Way) hurry(in *inside) error { return in.SetReadDeadline(time.Now().Add(w.cfg.Patience)) }

// target is where a program wants to go.
type target struct {
	name string     // as [sandbox.HostName] has it; "" is an address
	addr netip.Addr // without a name
	port int
	host string // as it was asked for, and as it is told
}

func newTarget(host string, port int) (target, error) {
	t := target{port: port, host: host}
	if len(host) > 255 {
		t.host = host[:255]
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return t, refuse("an address with a zone")
		}
		t.addr = addr.Unmap()
		return t, nil
	}
	name, ok := sandbox.HostName(host)
	if !ok {
		return t, refuse("it is no name of a host")
	}
	t.name = name
	return t, nil
}

// refused is why a connection is refused, as against one that did not work.
type refused struct{ why string }

func (r *refused) Error() string { return r.why }

func refuse(format string, args ...any) error { return &refused{fmt.Sprintf(format, args...)} }

// link is a connection to a host outside.
type link struct {
	net.Conn
	w      *Way
	record sandbox.Connection

	mu             sync.Mutex
	sent, received sandbox.Bytes
	closed         bool
}

// reach checks where a program wants to go, and connects to it. What comes of it is
// told, at once where there is no link, and else when that is closed.
func (w *Way) reach(ctx context.Context, host string, port int) (_ *link, t target, err error) {
	record := sandbox.Connection{Host: host, Port: port, Verdict: sandbox.Allow, Began: w.cfg.Now().UTC()}
	defer func() {
		if err == nil {
			return
		}
		if r, ok := errors.AsType[*refused](err); ok {
			record.Verdict, record.Why = sandbox.Deny, r.why
		} else {
			record.Why = err.Error()
		}
		record.Duration = sandbox.Duration(w.cfg.Now().Sub(record.Began))
		w.tell(record)
	}()
	t, err = newTarget(host, port)
	if record.Host = t.host; err != nil {
		return nil, t, err
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Patience)
	defer cancel()
	addrs, err := w.check(ctx, t)
	if err != nil {
		return nil, t, err
	}
	var conn net.Conn
	for _, addr := range addrs[:min(len(addrs), mostTried)] {
		to := netip.AddrPortFrom(addr, uint16(port)) // which a target's fits
		record.Address = to.String()
		if conn, err = w.cfg.Dial(ctx, to); err == nil {
			return &link{Conn: conn, w: w, record: record}, t, nil
		}
	}
	return nil, t, err
}

// mostTried is how many addresses of a name are tried, one after the other.
const mostTried = 4

// Read counts what comes.
func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	l.received += sandbox.Bytes(n)
	l.mu.Unlock()
	return n, err
}

// Write counts what goes.
func (l *link) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.mu.Lock()
	l.sent += sandbox.Bytes(n)
	l.mu.Unlock()
	return n, err
}

// end closes the link and tells of it, with why it was refused after all or broke.
// The first end counts.
func (l *link) end(why error) {
	_ = l.Close() // what was sent is sent
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	l.record.Sent, l.record.Received = l.sent, l.received
	l.record.Duration = sandbox.Duration(l.w.cfg.Now().Sub(l.record.Began))
	if r, ok := errors.AsType[*refused](why); ok {
		l.record.Verdict, l.record.Why = sandbox.Deny, r.why
	}
	l.w.tell(l.record)
}
