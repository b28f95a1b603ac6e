//go:build linux

package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// passing is a client of an agent that passes these descriptors when it is asked for an
// outlet, or ends the connection where there are none.
func passing(t *testing.T, fds ...int) *client.Client {
	t.Helper()
	ours, agents := unixPair(t)
	go func() {
		if f, err := wire.NewReader(agents).Next(); err != nil || f.Type != wire.TypeHello || fds == nil {
			_ = agents.Close()
			return
		}
		_, _, _ = agents.WriteMsgUnix([]byte{1}, unix.UnixRights(fds...), nil)
	}()
	dial := func(context.Context) (net.Conn, error) { return ours, nil }
	return forgeWith(t, client.Config{Dial: dial}, func(s *yamux.Stream, r *wire.Reader, _ wire.Request) {
		_, _ = s.Write(wire.AppendNumber(nil, 8080))
		_, _ = r.Next()
	})
}

// newSocket is a socket of the agent's.
func newSocket(t *testing.T, domain, kind, protocol int) int {
	t.Helper()
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// listens is one that listens on the loopback device, at addr.
func listens(t *testing.T) (fd int, addr string) {
	t.Helper()
	fd = newSocket(t, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 8)); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, net.JoinHostPort("127.0.0.1", strconv.Itoa(at.(*unix.SockaddrInet4).Port))
}

func connect(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// TestForgedSockets takes nothing from an agent but a socket of TCP, and where it has
// none asks by a call.
func TestForgedSockets(t *testing.T) {
	t.Parallel()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(pipe[0]), unix.Close(pipe[1]) })
	good, _ := listens(t)
	cases := map[string][]int{
		"no file": {}, "a pipe": {pipe[0]}, "memory": {inMemory(t, 0)}, "a Unix socket": {newSocket(t, unix.AF_UNIX, unix.SOCK_STREAM, 0)},
		"datagrams": {newSocket(t, unix.AF_INET, unix.SOCK_DGRAM, 0)}, "two": {good, good},
	}
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP); err == nil { // not every kernel has it
		t.Cleanup(func() { _ = unix.Close(fd) })
		cases["another protocol"] = []int{fd}
	}
	for name, fds := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o, err := passing(t, fds...).Egress(t.Context(), sandbox.NewID()); !errors.Is(err, sandbox.Unavailable) {
				t.Errorf("%v, %v", o, err)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		o, err := passing(t).Egress(t.Context(), sandbox.NewID())
		if err != nil || o.Port != 8080 {
			t.Fatalf("%v, %v", o, err)
		}
		_ = o.Close()
	})
	t.Run("none that listens", func(t *testing.T) {
		t.Parallel()
		o, err := passing(t, newSocket(t, unix.AF_INET, unix.SOCK_STREAM, 0)).Egress(t.Context(), sandbox.NewID())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := o.Accept(t.Context()); !errors.Is(err, sandbox.Unavailable) {
			t.Errorf("%v, %v", c, err)
		}
		_ = o.Close()
	})
}

// TestForgedSocketBlocks has an agent keep the socket, have calls on it block, and steal
// what comes by it: nobody waits for that, and at the end nobody is left in such a call.
func TestForgedSocketBlocks(t *testing.T) {
	t.Parallel()
	fd, addr := listens(t)
	o, err := passing(t, fd).Egress(t.Context(), sandbox.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	connect(t, addr) // after which whoever accepts the next one is in the kernel
	if _, err := o.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := o.Accept(t.Context()); ended <- err }()
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	for range 100 { // the agent has it listen again
		_ = unix.Listen(fd, 8)
	}
	if err := <-ended; !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("whoever accepts: %v", err)
	}
	for n := range 6000 {
		if open := opened(t, fd); open == 1 {
			break
		} else if n == 5999 {
			t.Errorf("the socket is open %d times", open)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// opened counts the descriptors of this process that are of the same file.
func opened(t *testing.T, fd int) (n int) {
	t.Helper()
	const all = "/proc/self/fd"
	want, err := os.Readlink(filepath.Join(all, strconv.Itoa(fd)))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if got, _ := os.Readlink(filepath.Join(all, e.Name())); got == want { // one that is gone is another
			n++
		}
	}
	return n
}

// TestForgedSocketLingers has an agent set what is accepted to linger when it is closed:
// it does not, and what was sent comes all the same.
func TestForgedSocketLingers(t *testing.T) {
	t.Parallel()
	fd, addr := listens(t)
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}); err != nil {
		t.Fatal(err)
	}
	o, err := passing(t, fd).Egress(t.Context(), sandbox.NewID())
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	program := connect(t, addr)
	c, err := o.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tcp := c.(*net.TCPConn)
	n := 0
	for n == 0 { // as much as the kernel takes: nobody reads yet
		if err := tcp.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err = tcp.Write(make([]byte, 64<<20)); err == nil {
			t.Fatal("nobody reads, and all is written")
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got, err := io.Copy(io.Discard, program); err != nil || got != int64(n) {
		t.Errorf("%d of %d, %v", got, n, err)
	}
}
