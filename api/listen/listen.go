// Package listen opens the sockets that a server answers on, and keeps from them
// who must not come by them: a Unix socket of its user alone, loopback, and by TLS
// whatever else. It knows nothing of what is served.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/caisson-dev/caisson/sandbox"
)

// Config says where to listen. The zero value listens nowhere.
type Config struct {
	// Addresses are "unix:///path/of.sock", or "host:port"; a host that is empty is
	// every address of this machine.
	Addresses []string
	// Activated takes the sockets that systemd hands over, beside Addresses.
	Activated bool
	// Open lets everybody who reaches a loopback address be the local user, without
	// a token.
	Open bool
	// TLS is for all addresses but Unix sockets. Its zero value is none.
	TLS TLS
	// Plain allows addresses beyond loopback without TLS, where something before the
	// server has it.
	Plain bool
	// Hosts are names under which the server may be asked, beside addresses, localhost
	// and those of its certificate; "*.example.org" is all below. Origins are those of
	// pages that may ask it from a browser, such as "https://example.org".
	Hosts, Origins []string
	// AnyOrigin tells requests that pages of all origins may make, since what answers
	// them is none of this server's own; nil tells none.
	AnyOrigin func(r *http.Request) bool
	// Drain is how long what is being answered may take once the server ends; 30 s
	// where 0.
	Drain time.Duration
}

// Sockets are open. Who opened them closes them, by [Sockets.Serve] or
// [Sockets.Close].
type Sockets struct {
	cfg   Config
	tls   *tls.Config // nil is none
	print string      // of the certificate
	all   []socket
	names []string // of the certificate

	closing sync.Once
	closed  error
}

// socket is one that is open.
type socket struct {
	net.Listener
	trusted bool // who reaches it is the local user
	secure  bool
	path    string // of a Unix socket that is ours to remove
}

// Open binds all addresses, or none. Errors: Invalid for an address that cannot be
// meant, Denied for one that would let strangers in, Conflict where somebody
// listens already, Unavailable.
func Open(ctx context.Context, cfg Config) (_ *Sockets, err error) {
	s := &Sockets{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.tls, s.print, s.names, err = cfg.TLS.load(); err != nil {
		return nil, err
	}
	for _, address := range cfg.Addresses {
		one, err := s.open(ctx, address)
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, one)
	}
	if cfg.Activated {
		if err := s.activated(); err != nil {
			return nil, err
		}
	}
	if len(s.all) == 0 {
		return nil, sandbox.Errorf(sandbox.Invalid, "the server listens nowhere").WithHint("give --listen ADDRESS")
	}
	return s, nil
}

func (s *Sockets) open(ctx context.Context, address string) (socket, error) {
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		return openUnix(ctx, path)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return socket{}, sandbox.Errorf(sandbox.Invalid, "--listen %s: %w", address, err).WithHint("write host:port, such as 127.0.0.1:7373, or unix:///path/of.sock")
	}
	if err := s.check(address, isLoopback(host)); err != nil {
		return socket{}, err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return socket{}, bindError(address, err)
	}
	return s.tcp(ln), nil
}

// tcp is a listener with what it is trusted with.
func (s *Sockets) tcp(ln net.Listener) socket {
	one := socket{Listener: ln, trusted: s.cfg.Open, secure: s.tls != nil}
	if one.secure {
		one.Listener = tls.NewListener(ln, s.tls)
	}
	return one
}

// check refuses an address that would let strangers in.
func (s *Sockets) check(address string, loopback bool) error {
	switch {
	case loopback:
		return nil
	case s.cfg.Open:
		return sandbox.Errorf(sandbox.Denied, "%s is beyond loopback, and --no-auth would let everybody in", address).WithHint("leave --no-auth out, and make tokens with: caisson token create")
	case s.tls == nil && !s.cfg.Plain:
		return sandbox.Errorf(sandbox.Denied, "%s is beyond loopback, where tokens would travel in the clear", address).
			WithHint("give --tls-cert and --tls-key, or --tls-self-signed; or --plain-http where a proxy before caisson has TLS")
	}
	return nil
}

// isLoopback reports whether a host to listen at is this machine's alone. A name is
// not looked up: who answers for it may change.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func bindError(address string, err error) error {
	kind, hint := sandbox.Unavailable, "see which addresses this machine has with: ip address"
	switch {
	case isInUse(err):
		kind, hint = sandbox.Conflict, "end who listens there, or give another --listen"
	case errors.Is(err, os.ErrPermission):
		kind, hint = sandbox.Denied, "choose a port above 1023"
	}
	return sandbox.Errorf(kind, "listen: %w", err).WithHint("%s", hint)
}

// activated takes over what systemd has opened. Which of them are beyond loopback
// is the unit's to say; the checks are the same.
func (s *Sockets) activated() error {
	lns, err := activation.Listeners()
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "take over the sockets of the unit: %w", err)
	}
	for _, ln := range lns {
		if ln == nil {
			return sandbox.Errorf(sandbox.Invalid, "the unit hands over a socket that no stream comes by").WithHint("use ListenStream in the unit of the socket")
		}
		switch at := ln.Addr().(type) {
		case *net.UnixAddr:
			s.all = append(s.all, socket{Listener: ln, trusted: true})
		case *net.TCPAddr:
			if err := s.check(at.String(), at.IP.IsLoopback()); err != nil {
				return errors.Join(err, ln.Close())
			}
			s.all = append(s.all, s.tcp(ln))
		default:
			return sandbox.Errorf(sandbox.Invalid, "the unit hands over a socket of the kind %s", at.Network())
		}
	}
	return nil
}

// Addresses are those that a client connects to, as it names them.
func (s *Sockets) Addresses() []string {
	var list []string
	for _, one := range s.all {
		scheme := "http://"
		switch {
		case one.Addr().Network() == "unix":
			scheme = "unix://"
		case one.secure:
			scheme = "https://"
		}
		list = append(list, scheme+one.Addr().String())
	}
	return list
}

// Fingerprint is the SHA-256 of the certificate, "" without TLS.
func (s *Sockets) Fingerprint() string { return s.print }

// Close stops listening at once. It is idempotent.
func (s *Sockets) Close() error {
	s.closing.Do(func() {
		var errs []error
		for _, one := range s.all {
			if err := one.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
			if one.path != "" {
				if err := os.Remove(one.path); err != nil && !errors.Is(err, os.ErrNotExist) {
					errs = append(errs, err)
				}
			}
		}
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

type trustedKey struct{}

// Trusted reports whether a request came by a socket whose callers are the local
// user.
func Trusted(r *http.Request) bool {
	trusted, _ := r.Context().Value(trustedKey{}).(bool)
	return trusted
}

// DefaultDrain is how long what is being answered may take once the server ends.
const DefaultDrain = 30 * time.Second

// Serve answers until ctx is done, or a socket fails. Then nothing more is
// accepted, stopping is called (nil is not), and what is being answered has its
// time. It closes the sockets.
func (s *Sockets) Serve(ctx context.Context, h http.Handler, stopping func()) error {
	var servers []*http.Server
	failed := make(chan error, len(s.all))
	answering, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var serving sync.WaitGroup
	for _, one := range s.all {
		srv := &http.Server{
			Handler: s.guard(h, one), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
			BaseContext: func(net.Listener) context.Context { return context.WithValue(answering, trustedKey{}, one.trusted) },
		}
		servers = append(servers, srv)
		serving.Go(func() {
			if err := srv.Serve(one); !errors.Is(err, http.ErrServerClosed) {
				failed <- sandbox.Errorf(sandbox.Unavailable, "serve %s: %w", one.Addr(), err)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	if stopping != nil {
		stopping()
	}
	err = errors.Join(err, s.drain(ctx, servers, cut))
	serving.Wait()
	return errors.Join(err, s.Close())
}

// drain lets servers end. What takes too long is cut.
func (s *Sockets) drain(ctx context.Context, servers []*http.Server, cut func()) error {
	patience := s.cfg.Drain
	if patience <= 0 {
		patience = DefaultDrain
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	errs := make([]error, len(servers))
	var ending sync.WaitGroup
	for i, srv := range servers {
		ending.Go(func() {
			if err := srv.Shutdown(ctx); err != nil {
				cut()
				errs[i] = srv.Close() // it took too long, which is no failure
			}
		})
	}
	ending.Wait()
	return errors.Join(errs...)
}
