package dockerclient_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestMain(m *testing.M) {
	if host := os.Getenv("DOCKERCLIENT_TEST_CONNECT"); host != "" {
		os.Exit(connectAndTell(host))
	}
	if host := os.Getenv("DOCKERCLIENT_TEST_PIPE"); host != "" {
		os.Exit(pipe(host))
	}
	os.Exit(m.Run())
}

// pipe is the far end of TestSSH: it joins the standard streams to a socket.
func pipe(host string) int {
	conn, err := net.Dial("unix", strings.TrimPrefix(host, "unix://"))
	if err != nil {
		return 1
	}
	go func() { _, _ = io.Copy(conn, os.Stdin) }()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

// wantError checks an error's kind, and that its text and its hint hold what
// they must.
func wantError(t *testing.T, err error, kind sandbox.Kind, text, hint string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error %v has kind %v, want %v", err, sandbox.KindOf(err), kind)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("error %q does not say %q", err, text)
	}
	if got := sandbox.HintOf(err); !strings.Contains(got, hint) {
		t.Errorf("hint %q does not say %q", got, hint)
	}
	if strings.ContainsRune(err.Error()+sandbox.HintOf(err), '\n') {
		t.Errorf("error is not one line: %q", err)
	}
}

func TestUnusableEngines(t *testing.T) {
	t.Parallel()
	absent := "unix://" + socket(t)
	stale := "unix://" + staleSocket(t)
	old, _ := fakeEngine(t, "1.40", nil)
	notDocker, _ := fakeEngine(t, "", nil)
	tests := []struct {
		name, host string
		kind       sandbox.Kind
		text, hint string
	}{
		{"absent", absent, sandbox.Unavailable, absent, "apt-get install docker.io"},
		{"nobody listens", stale, sandbox.Unavailable, stale, "systemctl start docker"},
		{"too old", old, sandbox.Unsupported, "API 1.40, and caisson needs 1.41", "20.10"},
		{"another server", notDocker, sandbox.Unavailable, "not as a Docker Engine", "something else listens"},
		{"garbage", garbageEngine(t, "\x00\x01 not http\r\n\r\n"), sandbox.Unavailable, "no Docker Engine", "something else listens"},
		{"hangs up", garbageEngine(t, ""), sandbox.Unavailable, "no Docker Engine", ""},
		{"garbage version", garbageEngine(t, "HTTP/1.1 200 OK\r\nApi-Version: banana\r\nContent-Length: 0\r\n\r\n"), sandbox.Unsupported, "banana", ""},
		{"tcp refused", "tcp://127.0.0.1:1", sandbox.Unavailable, "tcp://127.0.0.1:1", "DOCKER_HOST"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, dockerclient.Config{Host: tc.host})
			_, err := c.API(t.Context())
			wantError(t, err, tc.kind, tc.text, tc.hint)
		})
	}
}

func staleSocket(t *testing.T) string {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket(t)})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func TestSilentEngineTimesOut(t *testing.T) {
	t.Parallel()
	l := listen(t) // accepts by the backlog, answers never
	c := newClient(t, dockerclient.Config{Host: "unix://" + l.Addr().String(), PingTimeout: 50 * time.Millisecond})
	_, err := c.API(t.Context())
	wantError(t, err, sandbox.TimedOut, "did not answer within 50ms", "engine's log")
}

func TestCallerCancels(t *testing.T) {
	t.Parallel()
	l := listen(t)
	c := newClient(t, dockerclient.Config{Host: "unix://" + l.Addr().String()})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.API(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap context.Canceled", err)
	}
}

// connectAndTell is the child of TestPermission: it prints the error that the
// user gets.
func connectAndTell(host string) int {
	c, err := dockerclient.New(dockerclient.Config{Host: host, ConfigDir: "/nonexistent"})
	if err == nil {
		_, err = c.API(context.Background())
	}
	_, _ = io.WriteString(os.Stdout, sandbox.KindOf(err).String()+"|"+err.Error()+"|"+sandbox.HintOf(err))
	return 0
}

func TestPermission(t *testing.T) {
	t.Parallel()
	host, _ := fakeEngine(t, "1.41", nil)
	path := strings.TrimPrefix(host, "unix://")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	if os.Geteuid() == 0 { // root is refused by no mode: ask as somebody else
		cmd = exec.Command(copyOfTest(t, filepath.Dir(path)))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	cmd.Dir = "/"
	cmd.Env = []string{"DOCKERCLIENT_TEST_CONNECT=" + host}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"denied|", "no permission to use the Docker Engine at " + host, "usermod -aG docker"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("output %q does not say %q", out, want)
		}
	}
}

// copyOfTest puts the test binary where another user may run it.
func copyOfTest(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "connect")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPingsOnceForManyCallers(t *testing.T) {
	t.Parallel()
	host, pings := fakeEngine(t, "1.41", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1.41/") {
			t.Errorf("path %s is not of the negotiated version", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"Id":"x"}`)
	})
	c := newClient(t, dockerclient.Config{Host: host})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			api, err := c.API(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := api.ContainerInspect(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := pings.Load(); n != 1 {
		t.Errorf("%d pings, want 1", n)
	}
	if v, err := c.APIVersion(t.Context()); err != nil || v != "1.41" {
		t.Errorf("version %q, %v", v, err)
	}
}

func TestFailureIsNotRemembered(t *testing.T) {
	t.Parallel()
	path := socket(t)
	c := newClient(t, dockerclient.Config{Host: "unix://" + path})
	if _, err := c.API(t.Context()); !errors.Is(err, sandbox.Unavailable) {
		t.Fatalf("error %v, want unavailable", err)
	}
	real, _ := fakeEngine(t, "1.51", nil)
	if err := os.Rename(strings.TrimPrefix(real, "unix://"), path); err != nil {
		t.Fatal(err)
	}
	if _, err := c.API(t.Context()); err != nil {
		t.Errorf("the engine is there now: %v", err)
	}
}

func TestCloseTwice(t *testing.T) {
	t.Parallel()
	c := newClient(t, dockerclient.Config{})
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

// TestFresh has an engine that closes its door and goes on to serve who is in,
// as one that shuts down does.
func TestFresh(t *testing.T) {
	l := listen(t)
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.41")
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	c := newClient(t, dockerclient.Config{Host: "unix://" + l.Addr().String()})
	kept, err := c.API(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := c.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Ping(t.Context()); err != nil {
		t.Errorf("on the connection that is open: %v", err)
	}
	if _, err := fresh.Ping(t.Context()); sandbox.KindOf(dockerclient.Wrap(err, "ping")) != sandbox.Unavailable {
		t.Errorf("on a connection of its own: %v", err)
	}
}
