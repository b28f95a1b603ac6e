package manager_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestEgressNeighbours leads to no port of this host and to no other sandbox, by no
// address that they have and by no listed name, unless that address is listed.
func TestEgressNeighbours(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	host := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":0") // at all addresses
	if err != nil {
		t.Fatal(err)
	}
	_ = host.Listener.Close() // of the loopback device alone
	host.Listener = ln
	host.Start()
	t.Cleanup(host.Close)
	port := ln.Addr().(*net.TCPAddr).Port
	names := map[string]netip.Addr{"me.test": netip.MustParseAddr("127.0.0.1")}
	kit := enginetest.New(t)
	kit.Image(t, "python")
	m, err := manager.New(manager.Config{
		Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: manager.Unjudged, Holder: kit.Holder, Patience: enginetest.Patience,
		Egress: egress.Config{Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			if a, ok := names[name]; ok {
				return []netip.Addr{a}, nil
			}
			return nil, errors.New("no such host")
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	other, err := m.Open(t.Context(), manager.OpenOptions{Language: "python", Network: sandbox.Network{Mode: "bridge"}})
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := other.Exec(ctx, sandbox.Run{Code: `
import socket
from http.server import HTTPServer, SimpleHTTPRequestHandler
s = HTTPServer(("", 8000), SimpleHTTPRequestHandler)
print(socket.gethostbyname(socket.gethostname()), flush=True)
s.serve_forever()`}, sandbox.Streams{Stdout: out})
		_ = out.CloseWithError(errors.Join(errors.New("the other sandbox has ended"), err))
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line)
	names["other.test"] = netip.MustParseAddr(address)
	go func() { _, _ = io.Copy(io.Discard, in) }()

	others := []string{address + ":8000", "other.test:8000", fmt.Sprintf("me.test:%d", port), fmt.Sprintf("localhost:%d", port)}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			others = append(others, net.JoinHostPort(n.IP.String(), fmt.Sprint(port)))
		}
	}
	run := func(tried []string, allow ...string) string {
		t.Helper()
		code := fmt.Sprintf(`
import os
from http.client import HTTPConnection
for to in %q.split():
    for way in ("CONNECT", "GET"):
        c = HTTPConnection(os.environ["http_proxy"].removeprefix("http://"))
        c.putrequest(way, to if way == "CONNECT" else "http://" + to + "/", skip_host=True)
        c.endheaders()
        print(c.sock.makefile().readline().split()[1], to)
`, strings.Join(tried, " "))
		network := sandbox.Network{Mode: sandbox.NetworkAllow, Allow: append(allow, fmt.Sprintf("me.test:%d", port), "other.test:8000")}
		res, err := m.Run(t.Context(), sandbox.Run{Language: "python", Code: code, Network: network}, sandbox.Streams{})
		if err != nil || res.Code != 0 {
			t.Fatalf("%v: %s%s", err, res.Stdout, res.Stderr)
		}
		return string(res.Stdout)
	}
	want := ""
	for _, to := range others {
		want += strings.Repeat("403 "+to+"\n", 2)
	}
	if got := run(others); got != want || hits.Load() > 0 {
		t.Errorf("%d requests came to this host:\n%s", hits.Load(), got)
	}
	// Both are there, and are reached where their addresses are listed.
	if got := run([]string{others[0], others[2]}, others[0], fmt.Sprintf("127.0.0.1:%d", port)); got != strings.Repeat("200 "+others[0]+"\n", 2)+strings.Repeat("200 "+others[2]+"\n", 2) || hits.Load() != 1 {
		t.Errorf("%d requests came to this host:\n%s", hits.Load(), got)
	}
}
