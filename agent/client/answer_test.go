//go:build linux

package client_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestAnswered takes what comes with an exec's end for its answer where that is of the
// size that the agent tells, and that may be.
func TestAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  wire.End
		want string // "" is that it has to be asked for
	}{
		"whole":     {wire.End{Answer: 3, Answered: []byte("abc")}, "abc"},
		"short":     {wire.End{Answer: 3, Answered: []byte("ab")}, ""},
		"long":      {wire.End{Answer: 2, Answered: []byte("abc")}, ""},
		"too large": {wire.End{Answer: 5, Answered: []byte("abcde")}, ""},
		"none":      {wire.End{Answered: []byte("abc")}, ""},
		"not sent":  {wire.End{Answer: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := forge(t, func(s *yamux.Stream, _ *wire.Reader, _ wire.Request) {
				_, _ = s.Write(append(message(wire.TypeStarted, wire.Started{PID: 5}), message(wire.TypeEnd, c.end)...))
			})
			got, err := a.Run(t.Context(), client.Command{Argv: []string{"x"}, Answer: 4})
			if err != nil || got.Reason != sandbox.ReasonExited || string(got.Answered) != c.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestTakeAnswer takes a file that nobody can change, and nothing else that an agent in
// the wrong hands might send.
func TestTakeAnswer(t *testing.T) {
	t.Parallel()
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	sealed, open := inMemory(t, seals), inMemory(t, seals&^unix.F_SEAL_WRITE)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	plain, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	for name, c := range map[string]struct {
		send []int
		most int64
		want string // in the error; "" is none
	}{
		"sealed":        {[]int{sealed}, 6, ""},
		"too large":     {[]int{sealed}, 5, "6 bytes, of at most 5"},
		"can change":    {[]int{open}, 6, "can be changed"},
		"a pipe":        {[]int{int(r.Fd())}, 6, "no file in memory"},
		"a file":        {[]int{int(plain.Fd())}, 6, "no file in memory"},
		"two":           {[]int{sealed, sealed}, 6, "no file came"},
		"none, and one": {nil, 6, "no file came"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, agents := unixPair(t)
			go func() {
				f, err := wire.NewReader(agents).Next()
				if err != nil || f.Type != wire.TypeHello {
					_ = agents.Close()
					return
				}
				_, _, _ = agents.WriteMsgUnix([]byte{1}, unix.UnixRights(c.send...), nil)
			}()
			got, err := client.TakeAnswer(t.Context(), ours, []byte("secret"), sandbox.NewID(), c.most)
			if c.want != "" {
				if !errors.Is(err, sandbox.Unavailable) || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v; want %q, and unavailable", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			b := make([]byte, 7)
			if n, _ := got.ReadAt(b, 0); string(b[:n]) != "answer" {
				t.Fatalf("it has %q", b[:n])
			}
			if _, err := got.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EPERM) {
				t.Fatalf("a write: %v", err)
			}
		})
	}
	a, b := net.Pipe()
	defer b.Close()
	if _, err := client.TakeAnswer(t.Context(), a, nil, sandbox.NewID(), 1); !errors.Is(err, sandbox.Unavailable) {
		t.Fatalf("over no Unix socket: %v", err)
	}
}

// inMemory is a memfd with these seals.
func inMemory(t *testing.T, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("answer", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.Write(fd, []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return fd
}

func unixPair(t *testing.T) (ours, theirs *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "")
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close() // c has its own
		conns[i] = c.(*net.UnixConn)
		t.Cleanup(func() { _ = c.Close() })
	}
	return conns[0], conns[1]
}
