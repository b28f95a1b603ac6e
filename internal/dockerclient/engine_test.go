package dockerclient_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/internal/dockerclient"
)

// socket returns the path of a Unix socket in a short folder of its own:
// t.TempDir can be too long for one.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "e.sock")
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", socket(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// fakeEngine answers pings as an engine with this API would, and everything
// else by handler. It counts the pings.
func fakeEngine(t *testing.T, api string, handler http.HandlerFunc) (host string, pings *atomic.Int64) {
	t.Helper()
	pings = new(atomic.Int64)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filepath.Base(r.URL.Path) == "_ping" {
			pings.Add(1)
			w.Header().Set("Api-Version", api)
			return
		}
		handler(w, r)
	}))
	_ = srv.Listener.Close()
	srv.Listener = listen(t)
	srv.Start()
	t.Cleanup(srv.Close)
	return "unix://" + srv.Listener.Addr().String(), pings
}

// garbageEngine answers every connection with the same bytes.
func garbageEngine(t *testing.T, answer string) string {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}()
	return "unix://" + l.Addr().String()
}

func environment(kv map[string]string) func(string) string {
	return func(k string) string { return kv[k] }
}

func newClient(t *testing.T, cfg dockerclient.Config) *dockerclient.Client {
	t.Helper()
	if cfg.Getenv == nil {
		cfg.Getenv = environment(nil)
	}
	if cfg.ConfigDir == "" {
		cfg.ConfigDir = t.TempDir()
	}
	c, err := dockerclient.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
