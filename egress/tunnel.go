package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

func isRefused(err error) bool {
	_, ok := errors.AsType[*refused](err)
	return ok
}

// Who reads what the host sends, in a tunnel.
const (
	undecided = iota
	copied    // all of it is the program's, as it comes
	parsed    // answers of HTTP, to requests that were checked
)

// tunnel is a connection in which the program speaks with the host itself.
type tunnel struct {
	w    *Way
	in   *inside
	l    *link
	t    target
	mode atomic.Int32
	out  *bufio.Reader // of the link
	came chan struct{} // closed once there is something in out, or never will be
	down chan struct{} // closed once nothing more is copied to the program
}

// tunnel carries what the program says to a host that it asked for, once that is
// what it may say there. It ends the link.
func (w *Way) tunnel(ctx context.Context, in *inside, l *link, t target) {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	tn := &tunnel{w: w, in: in, l: l, t: t, out: bufio.NewReaderSize(l, 32<<10), came: make(chan struct{}), down: make(chan struct{})}
	go tn.copyDown()
	err := tn.copyUp()
	if err != nil || tn.mode.Load() == parsed {
		_ = l.Close() // frees the copying down
		_ = in.Close()
	}
	<-tn.down
	l.end(err)
}

// copyDown copies what the host says, from its first byte on where the program has
// not spoken HTTP before that: in some protocols the host is the first to speak.
func (tn *tunnel) copyDown() {
	defer close(tn.down)
	_, err := tn.out.Peek(1)
	close(tn.came)
	if err == nil && (tn.mode.CompareAndSwap(undecided, copied) || tn.mode.Load() == copied) {
		_, _ = io.Copy(tn.in, tn.out) // its end, whatever it is, ends this direction
	}
	if tn.mode.Load() != parsed {
		_ = tn.in.CloseWrite()
	}
}

// copyUp checks the first words of the program, and copies them and what follows.
func (tn *tunnel) copyUp() error {
	if err := tn.w.hurry(tn.in); err != nil {
		return err
	}
	first, plain, err := tn.sniff()
	switch {
	case errors.Is(err, io.EOF) && len(first) == 0: // it has nothing to say
		return tn.closeUp()
	case err != nil:
		return err
	case plain && !tn.mode.CompareAndSwap(undecided, parsed):
		return refuse("plain HTTP with a host that was the first to speak")
	case plain:
		return tn.w.requests(tn)
	}
	tn.mode.CompareAndSwap(undecided, copied)
	if err := tn.in.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if _, err := tn.l.Write(first); err != nil {
		return err
	}
	if _, err := io.Copy(tn.l, tn.in.r); err != nil {
		return err
	}
	return tn.closeUp()
}

// closeUp tells the host that no more comes.
func (tn *tunnel) closeUp() error {
	if half, ok := tn.l.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return tn.l.Close()
}

// tlsHandshake begins each TLS connection.
const tlsHandshake = 0x16

// sniff reads the program's first words until it is clear what they are, and checks
// those of TLS. Of these it returns what was read.
func (tn *tunnel) sniff() (first []byte, plain bool, err error) {
	b, err := tn.in.r.Peek(1)
	if err != nil {
		return nil, false, err
	}
	if b[0] == tlsHandshake {
		name, hello, err := serverName(tn.in)
		switch {
		case err != nil:
			return nil, false, err
		case name == "" && tn.t.name != "":
			return nil, false, refuse("its TLS names no server")
		case name != "" && !tn.t.same(name):
			return nil, false, refuse("its TLS names the server %s", name)
		}
		return hello, false, nil
	}
	if speaksHTTP(tn.in.r) {
		return nil, true, nil
	}
	if !tn.t.anyProtocol() {
		return nil, false, refuse("it is neither TLS nor HTTP, and the port is not listed")
	}
	return nil, false, nil
}

// anyProtocol reports whether a pattern names the target's port: who wrote that
// down knows what speaks there.
func (t target) anyProtocol() bool {
	for _, p := range t.allow {
		if !p.Usual() && p.Allows(t.name, t.addr, t.port) {
			return true
		}
	}
	return false
}

// mostLine bounds the first line of a request.
const mostLine = 8 << 10

// speaksHTTP reports whether the first line that is not empty ends as a request of
// HTTP does. What is text and has no end is taken for one, and fails as such.
func speaksHTTP(r *bufio.Reader) bool {
	for n := 1; ; n = r.Buffered() + 1 {
		_, err := r.Peek(n)
		b, _ := r.Peek(r.Buffered()) // which is there
		line := bytes.TrimLeft(b, "\r\n")
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			return isRequest(line[:end])
		}
		if slices.ContainsFunc(line, func(c byte) bool { return (c < ' ' || c > '~') && c != '\r' && c != '\t' }) {
			return false
		}
		if err != nil || n >= mostLine {
			return true
		}
	}
}

func isRequest(line []byte) bool {
	fields := strings.Fields(strings.ToUpper(string(line)))
	return len(fields) > 0 && strings.HasPrefix(fields[len(fields)-1], "HTTP/")
}

// errSeen ends a handshake that was only to be looked at.
var errSeen = errors.New("seen")

// serverName reads a client's hello, and returns the name in it and all bytes that
// were read.
func serverName(r io.Reader) (name string, hello []byte, err error) {
	var read bytes.Buffer
	seen := false
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		name, seen = info.ServerName, true
		return nil, errSeen
	}}
	err = tls.Server(onlyRead{Reader: io.TeeReader(r, &read)}, config).HandshakeContext(context.Background()) //nolint:contextcheck // the reader's deadline bounds it
	if !seen {
		return "", nil, refuse("its TLS cannot be read: %v", err)
	}
	return name, read.Bytes(), nil
}

// onlyRead is a connection of which nothing but reading works.
type onlyRead struct {
	net.Conn
	io.Reader
}

func (o onlyRead) Read(p []byte) (int, error)     { return o.Reader.Read(p) }
func (onlyRead) Write([]byte) (int, error)        { return 0, io.ErrClosedPipe }
func (onlyRead) Close() error                     { return nil }
func (onlyRead) SetDeadline(time.Time) error      { return nil }
func (onlyRead) SetReadDeadline(time.Time) error  { return nil }
func (onlyRead) SetWriteDeadline(time.Time) error { return nil }
