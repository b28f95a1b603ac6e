package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestConformance(t *testing.T) {
	for _, kind := range []sandbox.WorkspaceKind{sandbox.WorkspaceTmpfs, sandbox.WorkspaceVolume} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			kit := enginetest.New(t)
			image := kit.Image(t, "shell")
			rt := kit.Runtime(t)
			runtimetest.Run(t, runtimetest.Subject{
				New: func(testing.TB) runtimes.Runtime { return rt },
				Spec: func(testing.TB) sandbox.Spec {
					return sandbox.Spec{
						Language: "shell", Session: "suite", Image: image, Holder: kit.Holder, Identity: sandbox.IdentityFor(sandbox.ID(kit.Holder)),
						Workspace: sandbox.Workspace{Kind: kind}, Labels: map[string]string{"test": "conformance"},
					}
				},
				Faults:    faults(kit, kind),
				Leftovers: func(testing.TB) []string { return kit.Leftovers(context.Background()) },
			})
		})
	}
}

// fault is one answer of the engine that goes wrong.
type fault struct {
	name, method, path string
	// spoil changes a good answer; nil refuses the request with status.
	spoil  func(map[string]any)
	status int
	want   sandbox.Kind
}

func faults(kit *enginetest.Kit, kind sandbox.WorkspaceKind) []runtimetest.Fault {
	host := func(key string, value any) func(map[string]any) {
		return func(answer map[string]any) { answer["HostConfig"].(map[string]any)[key] = value }
	}
	list := []fault{
		{name: "create is refused", method: "POST", path: "/containers/create", status: 500},
		{name: "no image", method: "POST", path: "/containers/create", status: 404, want: sandbox.NotFound},
		{name: "no inspect", method: "GET", path: "/json", status: 500},
		{name: "no start", method: "POST", path: "/start", status: 500},
		{name: "another uid", method: "GET", path: "/json", want: sandbox.Conflict, spoil: func(a map[string]any) { a["Config"].(map[string]any)["User"] = "1000" }},
		{name: "privileged", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("Privileged", true)},
		{name: "more capabilities", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("CapAdd", []string{"SETUID", "SETGID", "KILL", "SYS_ADMIN"})},
		{name: "a network", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("NetworkMode", "bridge")},
		{name: "host's processes", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("PidMode", "host")},
		{name: "a writable root", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("ReadonlyRootfs", false)},
		{name: "more memory", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("Memory", 0)},
		{name: "no process limit", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("PidsLimit", nil)},
		{name: "no seccomp", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("SecurityOpt", []string{"no-new-privileges", "seccomp=unconfined"})},
		{name: "an init", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("Init", true)},
		{name: "a bind", method: "GET", path: "/json", want: sandbox.Conflict, spoil: host("Binds", []string{"/:/host"})},
	}
	if kind == sandbox.WorkspaceVolume {
		list = append(list, fault{name: "no volume", method: "POST", path: "/volumes/create", status: 500})
	}
	all := []runtimetest.Fault{
		{Name: "an agent that ends at once", New: func(t testing.TB) runtimes.Runtime { return runtimeWith(t, kit, kit.Engine, "/bin/false") }},
	}
	for _, f := range list {
		all = append(all, runtimetest.Fault{Name: f.name, Want: f.want, New: func(t testing.TB) runtimes.Runtime {
			return runtimeWith(t, kit, through(t, kit, f), kit.Agent)
		}})
	}
	return all
}

func runtimeWith(t testing.TB, kit *enginetest.Kit, engine *dockerclient.Client, agent string) runtimes.Runtime {
	t.Helper()
	rt, err := docker.New(docker.Config{Engine: engine, Agent: agent, Base: kit.Base})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// through returns a client of the engine behind a proxy that has a fault: it
// spoils the first answer that the fault is about, and no other.
func through(t testing.TB, kit *enginetest.Kit, f fault) *dockerclient.Client {
	t.Helper()
	socket, local := strings.CutPrefix(kit.Engine.Host(), "unix://")
	if !local {
		t.Skip("the engine is not reached over a Unix socket")
	}
	dir, err := os.MkdirTemp("/tmp", "cais")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var done atomic.Bool
	meant := func(r *http.Request) bool {
		return r.Method == f.method && strings.HasSuffix(r.URL.Path, f.path) && (strings.Contains(r.URL.Path, "/containers/") || strings.Contains(r.URL.Path, "/volumes/")) && done.CompareAndSwap(false, true)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if f.spoil == nil || r.StatusCode != http.StatusOK || !meant(r.Request) {
				return nil
			}
			var answer map[string]any
			if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
				return err
			}
			f.spoil(answer)
			b, err := json.Marshal(answer)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			r.Header.Del("Content-Length")
			return err
		},
	}
	ln, err := net.Listen("unix", filepath.Join(dir, "engine.sock"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An answer to a request that was not read to its end closes the connection,
		// which the client may be using again by then: its next request would fail.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if f.spoil == nil && meant(r) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(f.status)
			_, _ = io.WriteString(w, `{"message":"the test's fault"}`)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
	c, err := dockerclient.New(dockerclient.Config{Host: "unix://" + filepath.Join(dir, "engine.sock")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
