package client_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestForgedOutlet takes no outlet from an agent that does not say a port.
func TestForgedOutlet(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][]byte{
		"nothing":    nil,
		"port 0":     wire.AppendNumber(nil, 0),
		"port 70000": wire.AppendNumber(nil, 70000),
		"half":       wire.AppendNumber(nil, 80)[:3],
		"long":       wire.Append(nil, wire.TypeData, make([]byte, 4096)),
		"giant":      {byte(wire.TypeData), 0xff, 0xff, 0xff, 0xff},
		"no number":  wire.Append(nil, wire.TypeStdout, []byte("80")),
		"a failure":  message(wire.TypeFailure, wire.Failure{Kind: "exhausted", Message: "no"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := forge(t, func(s *yamux.Stream, _ *wire.Reader, _ wire.Request) { _, _ = s.Write(b) })
			if o, err := c.Egress(t.Context(), sandbox.NewID()); err == nil {
				t.Errorf("port %d", o.Port)
			}
		})
	}
}

// TestForgedConnections has a taken agent ask for whatever it likes, in whatever form:
// nothing is dialled that the list does not have, and every connection ends.
func TestForgedConnections(t *testing.T) {
	t.Parallel()
	data := func(text string) []byte { return wire.Append(nil, wire.TypeData, []byte(text)) }
	end := wire.Append(nil, wire.TypeDataEnd, nil)
	asks := [][]byte{
		data("CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n"), data("CONNECT b.test:443 HTTP/1.1\r\n\r\n"), data("CONNECT a.test:22 HTTP/1.1\r\n\r\n"),
		data("GET http://169.254.169.254/latest HTTP/1.1\r\nHost: a.test\r\n\r\n"), data("GET http://user@b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"),
		data("GET file:///etc/passwd HTTP/1.1\r\nHost: a.test\r\n\r\n"), data("CONNECT /var/run/docker.sock HTTP/1.1\r\n\r\n"), data("CONNECT inner.test:443 HTTP/1.1\r\n\r\n"),
		data("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x16"), data("\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x16"), data("\x05\x01\x00\x05\x01\x00\x04"),
		append(end, end...), append(end, data("CONNECT b.test:443 HTTP/1.1\r\n\r\n")...), {byte(wire.TypeData), 0xff, 0xff, 0xff, 0xff}, {99, 0, 0, 0, 0},
		message(wire.TypeReply, wire.Reply{}), message(wire.TypeFailure, wire.Failure{Kind: "denied"}), nil, data(string(make([]byte, 1<<16))),
	}
	const rounds = 5
	c := forge(t, func(s *yamux.Stream, r *wire.Reader, req wire.Request) {
		if req.Take != nil {
			_, _ = s.Write(asks[int(req.Take.Conn)%len(asks)])
			_, _ = s.Write(end)
			for {
				if _, err := r.Next(); err != nil {
					return
				}
			}
		}
		_, _ = s.Write(wire.AppendNumber(nil, 8080))
		for n := range rounds * len(asks) { // far more than an honest one has at once
			_, _ = s.Write(wire.AppendNumber(nil, uint32(n)))
		}
	})
	o, err := c.Egress(t.Context(), sandbox.NewID())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var dialled []string
	way, err := egress.New(egress.Config{
		Patience: time.Second,
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			if name == "inner.test" {
				return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("192.0.3.1")}, nil
		},
		Dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dialled = append(dialled, to.String())
			return nil, errors.New("not in a test")
		},
	}, sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"a.test", "inner.test"}})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	took := 0
	places := make(chan struct{}, client.MaxOutward)
	for {
		places <- struct{}{}
		conn, err := o.Accept(t.Context())
		if err != nil {
			break
		}
		took++
		serving.Go(func() {
			defer func() { <-places }()
			way.Serve(t.Context(), conn)
		})
	}
	serving.Wait()
	if took == 0 || len(dialled) > 0 {
		t.Errorf("%d were taken, dialled %v", took, dialled)
	}
	told, _ := way.Connections()
	for _, one := range told {
		if one.Verdict != sandbox.Deny {
			t.Errorf("told %+v", one)
		}
	}
	if len(told) < rounds {
		t.Errorf("%d are told", len(told))
	}
}
