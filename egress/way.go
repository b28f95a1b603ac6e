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
	"slices"
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
	// Judge is asked about each host and port of a way, once: it may take long, since a
	// person may be asked. Its errors refuse. nil leaves it to the lists.
	Judge func(ctx context.Context, a Asked) (Answer, error)
	// Network is the network as it is when a connection is to be made; its errors refuse
	// that. nil is that it stays as it was at first.
	Network func(ctx context.Context) (sandbox.Network, error)
	// Hosts are lists of hosts by name, beside those that are built in.
	Hosts map[string][]string
	// Meters bound what is moved; each way of several that have one counts.
	Meters []*Meter
	// Tell is told of each connection that has ended; nil is nobody.
	Tell func(c sandbox.Connection)
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
	cfg    Config
	judged judged

	mu   sync.Mutex
	now  *lists
	told []sandbox.Connection
	sum  Totals
}

// Totals count all connections of a way, also those that are not told one by one.
type Totals struct {
	Allowed  int           `json:"allowed"`
	Refused  int           `json:"refused"`
	Sent     sandbox.Bytes `json:"sent_bytes"`
	Received sandbox.Bytes `json:"received_bytes"`
}

// New returns a way to the hosts of a network. It opens nothing. Errors: Invalid.
func New(cfg Config, network sandbox.Network) (*Way, error) {
	now, err := newLists(network)
	if err != nil {
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
	return &Way{cfg: cfg, now: now, judged: judged{hosts: map[Asked]*judgement{}}}, nil
}

// Connections are those that have ended, in the order in which they began, and how
// many more there were than are told.
func (w *Way) Connections() (told []sandbox.Connection, more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told = slices.Clone(w.told)
	slices.SortStableFunc(told, func(a, b sandbox.Connection) int { return a.Began.Compare(b.Began) })
	return told, w.sum.Allowed + w.sum.Refused - len(w.told)
}

// Totals are those of the connections that have ended.
func (w *Way) Totals() Totals {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sum
}

func (w *Way) tell(c sandbox.Connection) {
	if w.cfg.Tell != nil {
		w.cfg.Tell(c)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Verdict == sandbox.Deny {
		w.sum.Refused++
	} else {
		w.sum.Allowed++
	}
	w.sum.Sent += c.Sent
	w.sum.Received += c.Received
	if len(w.told) < sandbox.MaxConnections {
		w.told = append(w.told, c)
	}
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
	name   string     // as [sandbox.HostName] has it; "" is an address
	addr   netip.Addr // without a name
	port   int
	host   string // as it was asked for, and as it is told
	*lists        // by which it was permitted
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
	pass   func(n int) error // has the meters count what has passed
	leave  func()            // gives its place back
	record sandbox.Connection

	mu             sync.Mutex
	sent, received sandbox.Bytes
	closed         bool
	spent          error // why a meter ended it
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
	if t.lists, err = w.lists(ctx); err != nil {
		return nil, t, err
	}
	if record.Approval, err = w.permit(ctx, t); err != nil {
		return nil, t, err
	}
	leave, err := w.enter(ctx)
	if err != nil {
		return nil, t, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	dialling, cancel := context.WithTimeout(ctx, w.cfg.Patience)
	defer cancel()
	addrs, err := w.addresses(dialling, t)
	if err != nil {
		return nil, t, err
	}
	var conn net.Conn
	for _, addr := range addrs[:min(len(addrs), mostTried)] {
		to := netip.AddrPortFrom(addr, uint16(port)) // which a target's fits
		record.Address = to.String()
		if conn, err = w.cfg.Dial(dialling, to); err == nil {
			return &link{Conn: conn, w: w, pass: func(n int) error { return w.pass(ctx, n) }, leave: leave, record: record}, t, nil
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
	return n, l.metered(n, err)
}

// Write counts what goes.
func (l *link) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.mu.Lock()
	l.sent += sandbox.Bytes(n)
	l.mu.Unlock()
	return n, l.metered(n, err)
}

// metered ends the link, both ways, where the meters refuse what has passed.
func (l *link) metered(n int, err error) error {
	refused := l.pass(n)
	if isRefused(refused) {
		l.mu.Lock()
		l.spent = refused
		l.mu.Unlock()
		_ = l.Close()
	}
	return cmp.Or(refused, err)
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
	l.leave()
	if l.spent != nil {
		why = l.spent
	}
	l.record.Sent, l.record.Received = l.sent, l.received
	l.record.Duration = sandbox.Duration(l.w.cfg.Now().Sub(l.record.Began))
	if r, ok := errors.AsType[*refused](why); ok {
		l.record.Verdict, l.record.Why = sandbox.Deny, r.why
	}
	l.w.tell(l.record)
}
