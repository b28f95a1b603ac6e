package manager_test

import (
	"context"
	"fmt"
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
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// site is a server on the loopback device of this host, which a resolver of the test
// knows as good.test and bad.test.
type site struct {
	*httptest.Server
	port string
	hits atomic.Int32
}

func newSite(t *testing.T) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		_, _ = fmt.Fprintf(w, "%s %s\n", r.Host, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	_, s.port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return s
}

func (s *site) config() egress.Config {
	return egress.Config{Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
		if !strings.HasSuffix(name, ".test") {
			return nil, fmt.Errorf("no such host %s", name)
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}
}

func (s *site) network() sandbox.Network {
	return sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"good.test:" + s.port, "127.0.0.1:" + s.port}}
}

// egressManagers runs a test with each runtime that has a way out.
func egressManagers(t *testing.T, s *site, do func(t *testing.T, m *manager.Manager)) {
	for _, name := range []string{"docker", bubblewrap.Name} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit := enginetest.New(t)
			registry := kit.Runtimes(t)
			if name == bubblewrap.Name {
				enginetest.Bubblewrap(t)
				registry = runtimes.Only(bubblewrap.Name, kit.Jail(t))
			}
			m, err := manager.New(manager.Config{
				Runtimes: registry, Images: kit.Images, Gate: manager.Unjudged, Holder: kit.Holder, Patience: enginetest.Patience, Egress: s.config(),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
			do(t, m)
		})
	}
}

// TestEgress reaches a listed host by what a program finds in its environment, and
// nothing else by any way.
func TestEgress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	program := fmt.Sprintf(`
import os, socket, urllib.request, urllib.error
print(urllib.request.urlopen("http://good.test:%[1]s/a").read().decode().strip())
for url in ("http://bad.test:%[1]s/b", "http://good.test:1/c", "http://[::1]:%[1]s/"):
    try: print("reached", urllib.request.urlopen(url).read())
    except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip())
    except OSError as e: print(type(e).__name__)
def direct(family, address):
    try: socket.socket(family, socket.SOCK_STREAM).connect(address); print("connected", address)
    except OSError as e: print("no", e.strerror)
direct(socket.AF_INET, ("127.0.0.1", %[1]s))
direct(socket.AF_INET, ("192.0.2.1", 80))
direct(socket.AF_INET6, ("2001:db8::1", 80))
try: print("resolved", socket.getaddrinfo("good.test", 80))
except OSError: print("no names")
print(sorted(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else ["lo"])
`, s.port)
	egressManagers(t, s, func(t *testing.T, m *manager.Manager) {
		before := s.hits.Load()
		res, err := m.Run(t.Context(), sandbox.Run{Language: "python", Code: program, Network: s.network()}, sandbox.Streams{})
		if err != nil || res.Code != 0 {
			t.Fatalf("%v: %s%s", err, res.Stdout, res.Stderr)
		}
		want := fmt.Sprintf(`good.test:%[1]s /a
403 caisson: bad.test:%[1]s: the sandbox may not reach it: it is not on the list
403 caisson: good.test:1: the sandbox may not reach it: it is not on the list
403 caisson: [::1]:%[1]s: the sandbox may not reach it: it is not on the list
no Connection refused
no Network is unreachable
no Network is unreachable
no names
['lo']
`, s.port)
		if got := strings.ReplaceAll(string(res.Stdout), "Cannot assign requested address", "Network is unreachable"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		var told []string
		for _, c := range res.Connections {
			told = append(told, fmt.Sprintf("%s:%d %s %s %v %v", c.Host, c.Port, c.Address, c.Verdict, c.Sent > 0, c.Received > 0))
		}
		wanted := fmt.Sprintf("good.test:%[1]s 127.0.0.1:%[1]s allow true true;bad.test:%[1]s  deny false false;good.test:1  deny false false;::1:%[1]s  deny false false", s.port)
		if got := strings.Join(told, ";"); got != wanted {
			t.Errorf("told\n%s\nwant\n%s", got, wanted)
		}
		if got := s.hits.Load() - before; got < 1 {
			t.Errorf("%d requests came", got)
		}
	})
}

// TestNoEgress has no proxy where the network is none.
func TestNoEgress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	egressManagers(t, s, func(t *testing.T, m *manager.Manager) {
		res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Code: "env | grep -i proxy; cat /proc/net/tcp | wc -l"}, sandbox.Streams{})
		if err != nil || string(res.Stdout) != "1\n" || res.Connections != nil {
			t.Errorf("%v: %q, %+v", err, res.Stdout, res.Connections)
		}
	})
}
