package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// ported is a service whose session work has one port, which says everything twice.
type ported struct{ api.Service }

func (ported) DialPort(_ context.Context, session string, port int) (net.Conn, error) {
	if session != "work" || port != 80 {
		return nil, sandbox.Errorf(sandbox.Unavailable, "nothing listens on %d of %s", port, session).WithHint("listen")
	}
	inside, outside := net.Pipe()
	go func() { // it ends with the connection
		defer inside.Close()
		b := make([]byte, 1000)
		for {
			n, err := inside.Read(b)
			if err != nil || string(b[:n]) == "end" {
				return
			}
			if _, err := inside.Write([]byte(strings.Repeat(string(b[:n]), 2))); err != nil {
				return
			}
		}
	}()
	return outside, nil
}

// TestDialPort goes through a server to a port, and ends from either side.
func TestDialPort(t *testing.T) {
	t.Parallel()
	c := through(t, ported{})
	for _, last := range []string{"end", ""} {
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := c.DialPort(ctx, "work", 80)
		cancel() // of the call, and not of the connection
		if err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 4)
		for _, word := range []string{"ab", "\x00\xff"} {
			if _, err := io.WriteString(conn, word); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, said); err != nil || string(said) != word+word {
				t.Errorf("%q comes back as %q, %v", word, said, err)
			}
		}
		if last != "" {
			if _, err := io.WriteString(conn, last); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Read(said); !errors.Is(err, io.EOF) {
				t.Errorf("after its end: %d, %v", n, err)
			}
		}
		_ = conn.Close() // a second time, of one that has ended
	}
	if _, err := c.DialPort(t.Context(), "work", 81); !errors.Is(err, sandbox.Unavailable) || sandbox.HintOf(err) != "listen" {
		t.Errorf("another port: %v", err)
	}
	if _, err := c.DialPort(t.Context(), "work", 0); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("no port: %v", err)
	}
}
