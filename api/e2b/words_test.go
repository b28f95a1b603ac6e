package e2b

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

func decode(t *testing.T, w *httptest.ResponseRecorder, into any) {
	t.Helper()
	if w.Code >= 300 {
		return
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
}

// TestEnds has commands end in the words of clients.
func TestEnds(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		exit sandbox.Exit
		want ended
	}{
		"well":      {sandbox.Exit{Reason: sandbox.ReasonExited}, ended{Exited: true, Status: "exit status 0"}},
		"with code": {sandbox.Exit{Code: 3, Reason: sandbox.ReasonExited}, ended{ExitCode: 3, Exited: true, Status: "exit status 3", Error: text("exit status 3")}},
		"by signal": {sandbox.Exit{Code: 137, Signal: "SIGKILL", Reason: sandbox.ReasonSignal}, ended{ExitCode: -1, Status: "signal: killed", Error: text("signal: killed")}},
		"by memory": {sandbox.Exit{Code: 137, Reason: sandbox.ReasonOOM}, ended{ExitCode: 137, Exited: true, Status: "oom", Error: text("oom")}},
	} {
		if d := cmp.Diff(&c.want, endOf(c.exit)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestAsked: what a client asks of a sandbox is what it gets, or an error.
func TestAsked(t *testing.T) {
	t.Parallel()
	s := server(t, &double{})
	seconds := func(n int64) *int64 { return &n }
	yes := true
	for name, c := range map[string]struct {
		in   created
		want sandbox.SessionOptions
	}{
		"nothing":  {created{}, sandbox.SessionOptions{Language: baseLanguage, TTL: sandbox.Duration(300 * time.Second), Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base"}}},
		"no time":  {created{Timeout: seconds(0)}, sandbox.SessionOptions{Language: baseLanguage, TTL: sandbox.Duration(time.Millisecond), Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base"}}},
		"internet": {created{Internet: &yes}, sandbox.SessionOptions{Language: baseLanguage, TTL: sandbox.Duration(300 * time.Second), Network: sandbox.Network{Mode: sandbox.NetworkBridge}, Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base"}}},
		"hosts": {created{Internet: &yes, Network: &network{AllowOut: []string{"pypi.org"}, DenyOut: []string{"0.0.0.0/0"}}}, sandbox.SessionOptions{
			Language: baseLanguage, TTL: sandbox.Duration(300 * time.Second), Network: sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"pypi.org"}, Deny: []string{}}, Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base"}}},
		"nowhere": {created{Internet: &yes, Network: &network{DenyOut: []string{"0.0.0.0/0"}}}, sandbox.SessionOptions{Language: baseLanguage, TTL: sandbox.Duration(300 * time.Second), Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base"}}},
		"pause": {created{AutoPause: true, Timeout: seconds(1), Env: map[string]string{"B": "2", "A": "1"}, Metadata: map[string]string{"m": "v"}}, sandbox.SessionOptions{
			Language: baseLanguage, TTL: sandbox.Duration(time.Second + pauseGrace), Env: []string{"A=1", "B=2"}, Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base", labelOnTimeout: "pause", "m": "v"}}},
		"forgetting": {created{AutoPause: true, KeepMemory: new(bool)}, sandbox.SessionOptions{
			Language: baseLanguage, TTL: sandbox.Duration(300*time.Second + pauseGrace), Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base", labelOnTimeout: "pause", labelForgets: "true"}}},
	} {
		got, err := session(c.in)
		err = errors.Join(err, s.template(t.Context(), &got))
		if err != nil || got.Name == "" {
			t.Errorf("%s: %v, %q", name, err, got.Name)
		}
		got.Name = ""
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for name, in := range map[string]created{
		"volumes": {VolumeMounts: []any{1}}, "mcp": {MCP: map[string]any{}}, "ours": {Metadata: map[string]string{labelWire: "x"}}, "a past": {Timeout: seconds(-1)},
		"iam":   {IAM: map[string]any{}},
		"rules": {Network: &network{Rules: 1}}, "a proxy": {Network: &network{EgressProxy: map[string]any{}}}, "another host": {Network: &network{MaskHost: "x.org"}},
		"open but for some":     {Network: &network{DenyOut: []string{"x.org"}}},
		"waking without memory": {AutoPause: true, KeepMemory: new(bool), AutoResume: struct{ Enabled bool }{true}},
	} {
		if _, err := session(in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestNotServed: what is not served is told in the form that clients read.
func TestNotServed(t *testing.T) {
	t.Parallel()
	s := server(t, &double{views: []sandbox.SessionView{view("", "i1", 0, time.Hour, nil)}})
	for target, want := range map[string]int{
		"GET /v2/sandboxes/i1/nothing": http.StatusNotImplemented, "GET /sandboxes/none": http.StatusNotFound, "GET /sandboxes/i1": http.StatusOK,
		"POST /v3/templates": http.StatusNotImplemented, "GET /templates": http.StatusNotImplemented, "GET /volumes": http.StatusNotImplemented,
		"PUT /sandboxes/i1/network": http.StatusNotImplemented,
	} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		var said struct {
			Code    int
			Message string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != want || want != http.StatusOK && (said.Code != want || said.Message == "") {
			t.Errorf("%s: %d, %s, %v", target, w.Code, w.Body, err)
		}
	}
	for box, want := range map[string]int{"i1": http.StatusNoContent, "none": http.StatusBadGateway, "": http.StatusBadRequest} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health", nil)
		r.Header.Set(sandboxHeader, box)
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("health of %q: %d", box, w.Code)
		}
	}
	for user, want := range map[string]int{"user": http.StatusNoContent, "root": http.StatusForbidden, "x": http.StatusBadRequest} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health", nil)
		r.Header.Set(sandboxHeader, "i1")
		r.SetBasicAuth(user, "")
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("as %s: %d", user, w.Code)
		}
	}
}
