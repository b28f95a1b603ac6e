//go:build linux

package pid1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// dialPatience bounds how long a program may leave a connection in its queue.
const dialPatience = 10 * time.Second

// callDial carries a connection of the host to what programs listen on.
func (a *Agent) callDial(s *yamux.Stream, r *wire.Reader, req *wire.Dial) {
	select {
	case a.dialed <- struct{}{}:
		defer func() { <-a.dialed }()
	default:
		fail(s, "exhausted", fmt.Errorf("%d connections to ports are open", cap(a.dialed)))
		return
	}
	if req.Port < 1 || req.Port > 65535 {
		fail(s, "invalid", fmt.Errorf("port %d", req.Port))
		return
	}
	conn, err := dialInside(req.Port)
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		fail(s, "not_found", fmt.Errorf("nothing listens on port %d", req.Port))
		return
	case err != nil:
		fail(s, "unavailable", err)
		return
	}
	defer conn.Close()
	// Once it stands, whoever listened then still does, or has reset it.
	if err := a.listensForUser(req.Port); err != nil {
		fail(s, "not_found", err)
		return
	}
	reply(s, wire.Reply{})
	carry(s, r, conn)
}

// dialInside connects to a port of the loopback device, by either of its addresses.
func dialInside(port int) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialPatience)
	defer cancel()
	dial := func(host string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	}
	c, err := dial("127.0.0.1")
	if errors.Is(err, unix.ECONNREFUSED) {
		var other error
		if c, other = dial("::1"); other == nil { // else it may not even have that address
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// listensForUser reports why a port must not be reached: something else listens on it
// than programs of the session's user, such as a proxy of the agent's own.
func (a *Agent) listensForUser(port int) error {
	uid := a.uid("")
	if a.cfg.Alone != nil { // there is nobody else
		uid = unix.Geteuid()
	}
	no := fmt.Errorf("nothing of the session's listens on port %d", port)
	if a.outward.has(port) {
		return no
	}
	found := false
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		owners, err := listeners(table, port)
		if err != nil {
			return err
		}
		for _, owner := range owners {
			if owner != uid {
				return no
			}
			found = true
		}
	}
	if !found {
		return no
	}
	return nil
}

// listening is the state of a socket that takes connections, as the kernel's tables
// have it.
const listening = "0A"

// listeners are the users of the sockets that take connections on a port, by one of
// the kernel's tables. One that there is not has none.
func listeners(table string, port int) (uids []int, err error) {
	f, err := os.Open(table)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := fmt.Sprintf(":%04X", port)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st queues tr retrnsmt uid …
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[3] != listening || !strings.HasSuffix(fields[1], at) {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table, err)
		}
		uids = append(uids, uid)
	}
	return uids, lines.Err()
}

// has reports whether a port is that of an exec's proxy.
func (o *outward) has(port int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, out := range o.outlets {
		if out.ln.Addr().(*net.TCPAddr).Port == port {
			return true
		}
	}
	return false
}
