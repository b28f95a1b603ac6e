package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a service that answers what a test says.
type fake struct {
	api.Service
	run      func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
	session  func(ctx context.Context, name string) (sandbox.SessionView, error)
	sessions func(f sandbox.SessionFilter) []sandbox.SessionView
}

func (f *fake) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return f.run(ctx, run, streams)
}

func (f *fake) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	return f.session(ctx, name)
}

func (f *fake) Sessions(_ context.Context, filter sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	return f.sessions(filter), nil
}

// serve starts a server of svc.
func serve(t *testing.T, cfg server.Config) *httptest.Server {
	t.Helper()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	return ts
}

// ask sends a request and reads the answer.
func ask(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return res, string(b)
}

// TestProblems holds every error to the one form, and each kind to its status.
func TestProblems(t *testing.T) {
	t.Parallel()
	failing := func(err error) *fake {
		return &fake{session: func(context.Context, string) (sandbox.SessionView, error) { return sandbox.SessionView{}, err }}
	}
	check := func(t *testing.T, res *http.Response, body string, status int, kind, message string) {
		t.Helper()
		var p map[string]any
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		for _, key := range []string{"code", "kind", "message", "hint", "request_id"} {
			if _, ok := p[key]; !ok {
				t.Errorf("no %s in %s", key, body)
			}
		}
		if res.StatusCode != status || p["code"] != float64(status) || p["kind"] != kind || !strings.Contains(fmt.Sprint(p["message"]), message) || p["request_id"] != res.Header.Get("X-Request-Id") {
			t.Errorf("status %d, not %d of kind %s with %q: %s", res.StatusCode, status, kind, message, body)
		}
		if res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("it is %s", res.Header.Get("Content-Type"))
		}
	}
	for kind, status := range map[sandbox.Kind]int{
		sandbox.Internal: 500, sandbox.Invalid: 400, sandbox.NotFound: 404, sandbox.Conflict: 409, sandbox.Denied: 403,
		sandbox.Exhausted: 429, sandbox.Unsupported: 501, sandbox.Unavailable: 503, sandbox.TimedOut: 504,
	} {
		ts := serve(t, server.Config{Service: failing(sandbox.Errorf(kind, "so it is"))})
		res, body := ask(t, "GET", ts.URL+"/v1/sessions/x", "")
		check(t, res, body, status, kind.String(), "so it is")
		if later := res.Header.Get("Retry-After"); (later != "") != (status == 429 || status == 503) {
			t.Errorf("%s: try again after %q", kind, later)
		}
	}
	ts := serve(t, server.Config{Service: failing(nil), MaxBody: 1000})
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		kind, message      string
	}{
		"field":       {"POST", "/v1/runs", `{"code":"1","limits":{"memry":1}}`, 400, "invalid", "limits.memry"},
		"deep field":  {"POST", "/v1/runs", `{"files":[{"path":"x","dta":"1"}]}`, 400, "invalid", "files[0].dta"},
		"type":        {"POST", "/v1/runs", `{"code":7}`, 400, "invalid", "body.code"},
		"no JSON":     {"POST", "/v1/runs", `{"code`, 400, "invalid", "body"},
		"no body":     {"POST", "/v1/runs", "", 400, "invalid", "body"},
		"large":       {"POST", "/v1/runs", `{"code":"` + strings.Repeat("x", 1000) + `"}`, 413, "invalid", "too large"},
		"query":       {"GET", "/v1/sessions?lmit=1", "", 400, "invalid", "lmit"},
		"limit":       {"GET", "/v1/sessions?limit=5000", "", 400, "invalid", "limit"},
		"label":       {"GET", "/v1/sessions?label=x", "", 400, "invalid", "label"},
		"id":          {"POST", "/v1/sessions/x/execs/..%2f..%2fy/kill", "", 400, "invalid", "exec"},
		"path":        {"GET", "/v1/sesions", "", 404, "not_found", "/v1/sesions"},
		"method":      {"PUT", "/v1/sessions/x", "", 405, "invalid", "PUT"},
		"other media": {"POST", "/v1/runs", "code=1", 415, "invalid", "content type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := []string{}
			if name == "other media" {
				header = []string{"Content-Type", "application/x-www-form-urlencoded"}
			}
			res, body := ask(t, tt.method, ts.URL+tt.path, tt.body, header...)
			check(t, res, body, tt.status, tt.kind, tt.message)
		})
	}
}

// TestDenied: a refused run is 403, with the decision and the whole Result.
func TestDenied(t *testing.T) {
	t.Parallel()
	decision := sandbox.Decision{Verdict: sandbox.Deny, Level: sandbox.High, Findings: []sandbox.Finding{{ID: "R", Message: "m", Severity: sandbox.High}}}
	ts := serve(t, server.Config{Service: &fake{run: func(context.Context, sandbox.Run, sandbox.Streams) (sandbox.Result, error) {
		return sandbox.Result{ExecID: sandbox.NewID(), Exit: sandbox.Exit{Reason: sandbox.ReasonDenied, Code: 126}, Decision: decision}, &sandbox.DeniedError{Decision: decision}
	}}})
	res, body := ask(t, "POST", ts.URL+"/v1/runs", `{"code":"1","language":"python"}`)
	var p wire.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatal(err)
	}
	var result sandbox.Result
	if err := json.Unmarshal(p.Result, &result); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if res.StatusCode != 403 || p.Decision == nil || p.Decision.Findings[0].ID != "R" || result.Reason != sandbox.ReasonDenied {
		t.Errorf("%d: %s", res.StatusCode, body)
	}
	if _, ok := errors.AsType[*sandbox.DeniedError](p.Err()); !ok {
		t.Errorf("it reads as %v", p.Err())
	}
}

// TestOutputEvents sends output as it comes: text whole, bytes in base64, each
// event with how far both streams are.
func TestOutputEvents(t *testing.T) {
	t.Parallel()
	ts := serve(t, server.Config{Service: &fake{run: func(_ context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		in, err := io.ReadAll(streams.Stdin)
		if err != nil || string(in) != "in" || run.Code != "x" {
			return sandbox.Result{}, fmt.Errorf("%q %q %w", in, run.Code, err)
		}
		for _, b := range []string{"a\xe2\x82", "\xac", "\xff"} {
			if _, err := streams.Stdout.Write([]byte(b)); err != nil {
				return sandbox.Result{}, err
			}
		}
		_, err = streams.Stderr.Write([]byte("e\xe2"))
		return sandbox.Result{ExecID: "1", Exit: sandbox.Exit{Reason: sandbox.ReasonExited}}, err
	}}})
	res, body := ask(t, "POST", ts.URL+"/v1/runs", `{"code":"x","stdin":"in"}`, "Accept", "text/event-stream")
	if res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("it is %s", res.Header.Get("Content-Type"))
	}
	want := []string{
		"event: stdout\nid: 1-0\ndata: {\"offset\":0,\"data\":\"a\"}", "event: stdout\nid: 4-0\ndata: {\"offset\":1,\"data\":\"€\"}",
		"event: stdout\nid: 5-0\ndata: {\"offset\":4,\"data_base64\":\"/w==\"}",
		"event: stderr\nid: 5-1\ndata: {\"offset\":0,\"data\":\"e\"}", "event: stderr\nid: 5-2\ndata: {\"offset\":1,\"data_base64\":\"4g==\"}", "event: end\ndata: {\"exec_id\":\"1\"",
	}
	for i, event := range strings.Split(strings.TrimSpace(body), "\n\n") {
		if i >= len(want) || !strings.HasPrefix(event, want[i]) {
			t.Fatalf("event %d is %s", i, event)
		}
	}
}

// TestPages lists by cursor and labels.
func TestPages(t *testing.T) {
	t.Parallel()
	var asked []sandbox.SessionFilter
	ts := serve(t, server.Config{Service: &fake{sessions: func(f sandbox.SessionFilter) []sandbox.SessionView {
		asked = append(asked, f)
		var list []sandbox.SessionView
		for _, name := range []string{"a", "b", "c"} {
			if name > f.After && len(list) < f.Limit {
				list = append(list, sandbox.SessionView{Session: sandbox.Session{Name: name}})
			}
		}
		return list
	}}})
	var names []string
	for cursor, more := "", true; more; more = cursor != "" {
		_, body := ask(t, "GET", ts.URL+"/v1/sessions?limit=2&label=a%3Db&label=c=d=e&owner=&cursor="+cursor, "")
		var p wire.Page[sandbox.SessionView]
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		for _, v := range p.Items {
			names = append(names, v.Name)
		}
		cursor = p.Next
	}
	if strings.Join(names, "") != "abc" || len(asked) != 2 || asked[0].Labels["c"] != "d=e" || asked[0].Owner == nil || *asked[0].Owner != "" {
		t.Errorf("%q by %+v", names, asked)
	}
}

// TestCaller asks who asks, tells the log without secrets, and takes up ids.
func TestCaller(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	ts := serve(t, server.Config{
		Service: &fake{session: func(ctx context.Context, _ string) (sandbox.SessionView, error) {
			return sandbox.SessionView{Session: sandbox.Session{Owner: sandbox.CallerFrom(ctx).Owner}}, nil
		}},
		Authenticate: func(r *http.Request) (sandbox.Caller, error) {
			if r.Header.Get("Authorization") != "Bearer s3cret" {
				return sandbox.Caller{}, sandbox.Errorf(sandbox.Denied, "no token")
			}
			return sandbox.Caller{Owner: "ada", Name: "laptop"}, nil
		},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	res, body := ask(t, "GET", ts.URL+"/v1/sessions/name", "")
	if res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") == "" || !strings.Contains(body, "no token") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if res, _ := ask(t, "GET", ts.URL+"/healthz", ""); res.StatusCode != 200 {
		t.Errorf("healthz: %d", res.StatusCode)
	}
	res, body = ask(t, "GET", ts.URL+"/v1/sessions/name", "", "Authorization", "Bearer s3cret", "X-Request-Id", "mine-1")
	if res.StatusCode != 200 || !strings.Contains(body, `"owner":"ada"`) || res.Header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	ts.Close() // a call's line is written behind its answer
	for _, want := range []string{"request_id=mine-1", "owner=ada", "caller=laptop", `route="GET /v1/sessions/{session}"`, "status=200", "status=401", "duration_ms="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "s3cret") {
		t.Error("the log tells the token")
	}
}
