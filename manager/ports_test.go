package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/sandbox"
)

// shouter listens by IPv4, by IPv6 where the sandbox has that, and on every address,
// and says what it is told in capitals until that ends.
const shouter = `
import socket, threading
def serve(family, host, port):
    s = socket.socket(family, socket.SOCK_STREAM)
    try: s.bind((host, port))
    except OSError:
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.bind(("127.0.0.1", port))
    s.listen()
    while True:
        c, _ = s.accept()
        threading.Thread(target=shout, args=(c,)).start()
def shout(c):
    while True:
        said = c.recv(65536)
        if not said: break
        c.sendall(said.upper())
    c.close()
for family, host, port in ((socket.AF_INET, "127.0.0.1", 8001), (socket.AF_INET6, "::1", 8002), (socket.AF_INET, "0.0.0.0", 8003)):
    threading.Thread(target=serve, args=(family, host, port)).start()
`

// TestDialPort reaches what a session's programs listen on, whatever its network is,
// and nothing else in its sandbox.
func TestDialPort(t *testing.T) {
	t.Parallel()
	for _, name := range []string{docker.Name, bubblewrap.Name} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit := enginetest.New(t)
			all := kit.Runtimes(t)
			if name == bubblewrap.Name {
				enginetest.Bubblewrap(t)
				all = runtimes.Only(name, kit.Jail(t))
			}
			p := newPlaceWith(t, kit, all, "python")
			p.create(t, sandbox.SessionOptions{Name: "work", Language: "python", Network: sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"192.0.2.1:1"}}})
			reachPorts(t, p)
		})
	}
}

func reachPorts(t *testing.T, p *place) {
	t.Helper()
	ctx := t.Context()
	if _, err := p.DialPort(ctx, "work", 8001); !errors.Is(err, sandbox.Unavailable) || sandbox.HintOf(err) == "" {
		t.Errorf("a session without a sandbox: %v", err)
	}
	if _, err := p.StartIn(ctx, "work", sandbox.Run{Code: shouter}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("to and fro ", 1<<17)
	for _, port := range []int{8001, 8002, 8003, 8001} {
		var conn net.Conn
		until(t, "somebody listens", func() (ok bool) {
			var err error
			conn, err = p.DialPort(ctx, "work", port)
			if err != nil && !errors.Is(err, sandbox.Unavailable) {
				t.Fatal(err)
			}
			return err == nil
		})
		go func() {
			_, _ = io.WriteString(conn, big) // what comes back tells
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		if got, err := io.ReadAll(conn); err != nil || string(got) != strings.ToUpper(big) {
			t.Errorf("port %d: %d bytes, %v", port, len(got), err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	// The proxy of an exec is the agent's own, and so is every other thing there.
	_, err := p.StartIn(ctx, "work", sandbox.Run{Code: `import os, time; open("proxy", "w").write(os.environ["http_proxy"].split(":")[-1]); time.sleep(1000)`}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := p.Files(ctx, "work")
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	until(t, "it tells its proxy", func() bool {
		said.Reset()
		n, err := files.Read(ctx, "proxy", 0, 0, &said)
		return err == nil && n > 0
	})
	proxy := 0
	if _, err := fmt.Sscan(strings.TrimRight(said.String(), "/"), &proxy); err != nil {
		t.Fatal(err)
	}
	for port, kind := range map[int]error{proxy: sandbox.Unavailable, 8004: sandbox.Unavailable, 0: sandbox.Invalid, 65536: sandbox.Invalid} {
		if _, err := p.DialPort(ctx, "work", port); !errors.Is(err, kind) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	if _, err := p.DialPort(ctx, "none", 8001); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("no session: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.DialPort(gone, "work", 8001); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone: %v", err)
	}
	told := []string{}
	for event, err := range p.store.Events(ctx, sandbox.EventFilter{Kinds: []string{sandbox.EventPortOpened}}) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, event.Session+string(event.Data))
	}
	if want := `work{"port":8001} work{"port":8002} work{"port":8003}`; strings.Join(told, " ") != want {
		t.Errorf("the audit tells %q", told)
	}
	// A connection ends with what it leads to.
	conn, err := p.DialPort(ctx, "work", 8001)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.PauseSession(ctx, "work"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.DialPort(ctx, "work", 8001); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("of a session that is paused: %v", err)
	}
	if err := p.ResumeSession(ctx, "work"); err != nil {
		t.Fatal(err)
	}
	if err := p.RemoveSession(ctx, "work", true); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("it goes on: %d bytes", n)
	}
}

// TestDialPortOfHost: where a session has its ports together with the host, none is
// reached, since what listens may be anybody's.
func TestDialPortOfHost(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	kit := enginetest.New(t)
	p := newPlaceWith(t, kit, runtimes.Only(process.Name, kit.Unwalled(t)), "shell")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "shell"})
	if _, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.DialPort(t.Context(), "work", ln.Addr().(*net.TCPAddr).Port); !errors.Is(err, sandbox.Unsupported) {
		t.Error(err)
	}
}
