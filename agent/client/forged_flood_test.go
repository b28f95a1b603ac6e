package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestForgedFrames has a taken agent speak the multiplexer's own language: frames
// that each cost the host something and that no agent sends. The first one ends
// the connection.
func TestForgedFrames(t *testing.T) {
	t.Parallel()
	const many = 20_000
	for name, frame := range map[string][]byte{
		"pings":            {0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1},
		"replies to pings": {0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1},
		"streams":          {0, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, agent := net.Pipe()
			sent := make(chan int)
			go func() {
				n := 0
				defer func() { sent <- n }()
				defer agent.Close()
				if _, err := wire.NewReader(agent).Next(); err != nil {
					return
				}
				_, err := agent.Write(message(wire.TypeWelcome, wire.Welcome{Version: wire.Version}))
				for ; err == nil && n < many; n++ {
					_, err = agent.Write(frame)
				}
			}()
			c, err := client.New(t.Context(), host, client.Config{Secret: make([]byte, 32)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if n := <-sent; n > 2 { // the one that is refused, and one more that fails
				t.Errorf("%d of %d were taken", n, many)
			}
			if out, err := c.Run(t.Context(), client.Command{Argv: []string{"x"}}); !errors.Is(err, sandbox.Unavailable) && !out.Broken {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}

// second drops what comes before an error.
func second[T any](_ T, err error) error { return err }

// data is a stream of bytes as an agent would send it.
func data(b []byte) []byte {
	var out bytes.Buffer
	_, _ = wire.DataWriter{W: &out}.Write(b) // a buffer takes everything
	return out.Bytes()
}

// TestForgedAmounts has a taken agent send more than an honest one has: what is
// small on the wire and large in memory is counted before it is made.
func TestForgedAmounts(t *testing.T) {
	// Not parallel: each costs memory while it is looked at.
	observe := func(c *client.Client) error {
		return c.Observe(t.Context(), sandbox.ObserveOptions{}, func(o *sandbox.Observation) error {
			return fmt.Errorf("%d entries were handed on", len(o.Entries))
		})
	}
	tree := func(c *client.Client) error {
		for _, err := range c.Tree(t.Context(), "", ".", 0) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	names := make([]string, 2_100_000)
	for i := range names {
		names[i] = "a"
	}
	for name, tc := range map[string]struct {
		call   func(*client.Client) error
		answer func() []byte
	}{
		"names in folders": {observe, func() []byte {
			e := wire.Entry{Path: "d", Kind: wire.KindDir, Whole: true, Names: names}
			b := wire.AppendEntry(nil, &e)
			return append(data(append(b, b...)), message(wire.TypeObserved, wire.Observed{Count: 2, Actors: []string{""}})...)
		}},
		"combinations of execs": {observe, func() []byte {
			var b []byte
			for i := range 5000 {
				b = wire.AppendEntry(b, &wire.Entry{Path: fmt.Sprint(i), Kind: wire.KindFile, Actors: uint64(i)})
			}
			return append(data(b), message(wire.TypeObserved, wire.Observed{Count: 5000, Actors: []string{""}})...)
		}},
		"bytes of a file": {func(c *client.Client) error { return second(c.ReadFile(t.Context(), "", "f", 0, 1<<20, io.Discard)) }, func() []byte {
			return append(data(make([]byte, 1<<20+1)), message(wire.TypeReply, wire.Reply{Bytes: 1<<20 + 1})...)
		}},
		"entries of a tree": {tree, func() []byte {
			line := []byte("{\"path\":\"a\"}\n")
			return append(bytes.Repeat(wire.Append(nil, wire.TypeData, bytes.Repeat(line, 1000)), wire.MaxListed/1000+1), message(wire.TypeReply, wire.Reply{})...)
		}},
		"bytes of a tree": {tree, func() []byte {
			line := []byte(`{"path":"a","target":"` + strings.Repeat("x", wire.MaxChunk-25) + "\"}\n")
			return append(bytes.Repeat(wire.Append(nil, wire.TypeData, line), wire.MaxListedBytes/len(line)+1), message(wire.TypeReply, wire.Reply{})...)
		}},
		"execs": {func(c *client.Client) error { _, err := c.List(t.Context()); return err }, func() []byte {
			one := `{"id":"` + string(sandbox.NewID()) + `"},`
			return wire.Append(nil, wire.TypeReply, []byte(`{"execs":[`+strings.TrimSuffix(strings.Repeat(one, 10_000), ",")+`]}`))
		}},
	} {
		answer := tc.answer()
		c := forge(t, func(s *yamux.Stream, r *wire.Reader, _ wire.Request) {
			if _, err := s.Write(answer); err == nil {
				_, _ = io.Copy(io.Discard, s) // until the host has had enough
			}
		})
		if err := tc.call(c); !errors.Is(err, sandbox.Unavailable) || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
