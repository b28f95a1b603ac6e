package dockertest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/internal/dockerclient"
)

// Fake starts an engine of a test's own on a Unix socket, and returns a client
// of it. It answers pings as an engine of this API version does, and everything
// else by handler.
func Fake(t testing.TB, version string, handler http.HandlerFunc) *dockerclient.Client {
	t.Helper()
	// t.TempDir can be too long for a socket.
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filepath.Base(r.URL.Path) == "_ping" {
			w.Header().Set("Api-Version", version)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		handler(w, r)
	}))
	_ = srv.Listener.Close()
	if srv.Listener, err = net.Listen("unix", filepath.Join(dir, "e.sock")); err != nil { //nolint:noctx // it ends with the test
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	c, err := dockerclient.New(dockerclient.Config{
		Host: "unix://" + srv.Listener.Addr().String(), ConfigDir: dir, Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
