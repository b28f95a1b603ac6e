package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/api"
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
		"nowhere":    {created{Internet: &yes, Network: &network{DenyOut: []string{"0.0.0.0/0"}}}, sandbox.SessionOptions{Language: baseLanguage, TTL: sandbox.Duration(300 * time.Second), Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base"}}},
		"everywhere": {created{Network: &network{AllowOut: []string{"0.0.0.0/0"}, DenyOut: []string{"0.0.0.0/0"}}}, sandbox.SessionOptions{Language: baseLanguage, TTL: sandbox.Duration(300 * time.Second), Network: sandbox.Network{Mode: sandbox.NetworkBridge}, Labels: sandbox.Labels{labelWire: "true", labelTemplate: "base"}}},
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
		"iam":    {IAM: map[string]any{}},
		"a name": {Env: map[string]string{"A=B": "c"}}, "no name": {Env: map[string]string{"": "c"}},
		"rules": {Network: &network{Rules: 1}}, "a proxy": {Network: &network{EgressProxy: map[string]any{}}}, "another host": {Network: &network{MaskHost: "x.org"}},
		"open but for some":     {Network: &network{DenyOut: []string{"x.org"}}},
		"waking without memory": {AutoPause: true, KeepMemory: new(bool), AutoResume: struct{ Enabled bool }{true}},
	} {
		if _, err := session(in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// full is a service that has no room, and keeps what it was asked for.
type full struct {
	*double
	asked sandbox.SessionOptions
}

func (f *full) CreateSession(_ context.Context, o sandbox.SessionOptions, _ sandbox.Local) (sandbox.Session, error) {
	f.asked = o
	return sandbox.Session{}, sandbox.Exhausted
}

// TestUnasked: clients of the first version ask for the internet by themselves, and do
// not get it for that.
func TestUnasked(t *testing.T) {
	t.Parallel()
	f := &full{double: &double{}}
	s, err := New(Config{Service: f, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, body string
		want       sandbox.NetworkMode
	}{
		{"/sandboxes", `{"allow_internet_access": true}`, ""},
		{"/sandboxes", `{"allowInternetAccess": true}`, ""},
		{"/sandboxes", `{"allow_internet_access": true, "network": {"allowOut": ["0.0.0.0/0"]}}`, sandbox.NetworkBridge},
		{"/sandboxes", `{"allow_internet_access": true, "network": {"allowOut": ["pypi.org"]}}`, sandbox.NetworkAllow},
		{"/v2/sandboxes", `{"allow_internet_access": true}`, sandbox.NetworkBridge},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body)))
		if w.Code != http.StatusTooManyRequests || f.asked.Network.Mode != c.want {
			t.Errorf("%s %s: %d, %q", c.path, c.body, w.Code, f.asked.Network.Mode)
		}
	}
}

// TestNoTime: a time below zero is refused before anything is done, and one of many
// years is long.
func TestNoTime(t *testing.T) {
	t.Parallel()
	paused, runs := view("", "i1", 0, time.Hour, nil), view("", "i2", 0, time.Hour, nil)
	paused.Sandboxes[0].State = sandbox.StatePaused
	r := &renewed{double: &double{views: []sandbox.SessionView{paused, runs}}}
	s, err := New(Config{Service: r, Key: make([]byte, 32), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]int{
		`/sandboxes/i1/connect {"timeout": -1}`: http.StatusBadRequest, `/sandboxes/i2/connect {"timeout": -1}`: http.StatusBadRequest,
		`/sandboxes/i2/timeout {"timeout": -1}`: http.StatusBadRequest, `/sandboxes/i2/refreshes {"duration": -1}`: http.StatusBadRequest,
		`/sandboxes/i2/refreshes {"duration": 9223372036854775807}`: http.StatusNoContent,
	} {
		path, body, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%s: %d, %s", target, w.Code, w.Body)
		}
	}
	if d := cmp.Diff([]sandbox.Duration{sandbox.Duration(mostSeconds * time.Second)}, r.to); d != "" {
		t.Error(d)
	}
}

// renewed is a service that puts ends off alone.
type renewed struct {
	*double
	to []sandbox.Duration
}

func (r *renewed) RenewSession(_ context.Context, _ string, o api.RenewOptions) error {
	r.to = append(r.to, *o.TTL)
	return nil
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
