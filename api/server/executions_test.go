package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// executing is a service with one execution.
type executing struct {
	api.Service
	id        sandbox.ID
	submitted sandbox.ExecutionOptions
	wait      sandbox.Duration
	filter    sandbox.ExecutionFilter
	dead      sandbox.DeadLetterFilter
}

func (f *executing) SubmitExecution(_ context.Context, o sandbox.ExecutionOptions, _ sandbox.Local) (sandbox.Execution, error) {
	f.submitted = o
	if o.Run.Code == "too much" {
		return sandbox.Execution{}, sandbox.Errorf(sandbox.Exhausted, "the queue is full").WithHint("later")
	}
	return sandbox.Execution{ID: f.id, State: sandbox.ExecutionQueued, Run: &o.Run}, nil
}

func (f *executing) Execution(_ context.Context, id sandbox.ID, wait sandbox.Duration) (sandbox.Execution, error) {
	if id != f.id {
		return sandbox.Execution{}, sandbox.Errorf(sandbox.NotFound, "no execution")
	}
	f.wait = wait
	return sandbox.Execution{ID: id, State: sandbox.ExecutionSucceeded, Result: &sandbox.Result{Stdout: []byte("out")}}, nil
}

func (f *executing) Executions(_ context.Context, filter sandbox.ExecutionFilter) ([]sandbox.Execution, error) {
	f.filter = filter
	return []sandbox.Execution{{ID: f.id}, {ID: sandbox.NewID()}}, nil
}

func (f *executing) CancelExecution(_ context.Context, id sandbox.ID) (sandbox.Execution, error) {
	return sandbox.Execution{ID: id, State: sandbox.ExecutionCanceled}, nil
}

func (f *executing) ExecutionArtifact(_ context.Context, _ sandbox.ID, path string, w io.Writer) (int64, error) {
	if path != "a b/../x.html" {
		return 0, sandbox.Errorf(sandbox.NotFound, "no artifact %s", path)
	}
	n, err := io.WriteString(w, "<script>")
	return int64(n), err
}

func (f *executing) DeadLetters(_ context.Context, filter sandbox.DeadLetterFilter) ([]sandbox.DeadLetter, error) {
	f.dead = filter
	return []sandbox.DeadLetter{{Execution: f.id}}, nil
}

func (f *executing) ResendDeadLetter(_ context.Context, id sandbox.ID) (sandbox.DeadLetter, error) {
	return sandbox.DeadLetter{Execution: id, Callback: sandbox.Callback{State: sandbox.CallbackPending}}, nil
}

// TestExecutions: what is submitted is answered with 202 at once, and found, waited
// for, ended and fetched by its id.
func TestExecutions(t *testing.T) {
	t.Parallel()
	f := &executing{id: sandbox.NewID()}
	ts := serve(t, server.Config{Service: f})
	one := ts.URL + "/v1/executions/" + string(f.id)
	expect := func(res *http.Response, body string, status int, parts ...string) {
		t.Helper()
		if res.StatusCode != status {
			t.Errorf("%s %s: %d, not %d: %s", res.Request.Method, res.Request.URL, res.StatusCode, status, body)
		}
		for _, part := range parts {
			if !strings.Contains(body, part) {
				t.Errorf("%s %s: no %s in %s", res.Request.Method, res.Request.URL, part, body)
			}
		}
	}
	send := func(method, url, body string) (*http.Response, string) {
		t.Helper()
		res, got := ask(t, method, url, body)
		if res.Request == nil {
			res.Request, _ = http.NewRequestWithContext(t.Context(), method, url, nil)
		}
		return res, got
	}
	res, body := send("POST", ts.URL+"/v1/executions", `{"run":{"code":"print(1)","language":"python","files":[{"path":"a","data":"x"}]},"stdin":"in","callback":{"url":"https://h.test","secret":"s3cret","heartbeat_ms":5000},"keep_ms":60000}`)
	expect(res, body, 202, string(f.id), `"queued"`)
	want := sandbox.ExecutionOptions{
		Run: sandbox.Run{Code: "print(1)", Language: "python", Files: []sandbox.File{{Path: "a", Data: []byte("x")}}}, Stdin: "in", Keep: sandbox.Duration(time.Minute),
		Callback: &sandbox.CallbackOptions{URL: "https://h.test", Secret: "s3cret", Heartbeat: sandbox.Duration(5 * time.Second)},
	}
	if d := cmp.Diff(want, f.submitted); d != "" || strings.Contains(body, "s3cret") {
		t.Errorf("%s\n%s", d, body)
	}
	res, body = send("POST", ts.URL+"/v1/executions", `{"run":{"code":"too much"}}`)
	if expect(res, body, 429, "the queue is full"); res.Header.Get("Retry-After") == "" {
		t.Error("a full queue does not say when to try again")
	}
	res, body = send("POST", ts.URL+"/v1/executions", `{"run":{"cod":"x"}}`)
	expect(res, body, 400, "run.cod")
	res, body = send("GET", one+"?wait=30s", "")
	if expect(res, body, 200, `"out"`); time.Duration(f.wait) != 30*time.Second {
		t.Errorf("waited %s", f.wait)
	}
	res, body = send("GET", one+"?wait=soon", "")
	expect(res, body, 400, "soon")
	res, body = send("GET", ts.URL+"/v1/executions/"+string(sandbox.NewID()), "")
	expect(res, body, 404, "not_found")
	res, body = send("GET", ts.URL+"/v1/executions?state=queued&state=running&session=s&callback=dead&label=a=b&owner=o&limit=1", "")
	expect(res, body, 200)
	var page wire.Page[sandbox.Execution]
	if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Items) != 1 || page.Next != string(f.id) {
		t.Errorf("%s, %v", body, err)
	}
	filter := sandbox.ExecutionFilter{
		States: []sandbox.ExecutionState{"queued", "running"}, Session: "s", Callback: sandbox.CallbackDead, Labels: sandbox.Labels{"a": "b"}, Owner: new("o"), Limit: 2,
	}
	if d := cmp.Diff(filter, f.filter); d != "" {
		t.Error(d)
	}
	res, body = send("POST", one+"/cancel", "")
	expect(res, body, 200, `"canceled"`)
	res, body = send("GET", one+"/artifacts?path=a+b%2F..%2Fx.html", "")
	if expect(res, body, 200); body != "<script>" || res.Header.Get("Content-Disposition") != "attachment" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%q, %v", body, res.Header)
	}
	res, body = send("GET", one+"/artifacts?path=none", "")
	expect(res, body, 404, "no artifact none")
	res, body = send("GET", ts.URL+"/v1/dead-letters", "")
	if expect(res, body, 200, string(f.id)); f.dead.Owner != nil {
		t.Errorf("%+v", f.dead)
	}
	res, body = send("POST", ts.URL+"/v1/dead-letters/"+string(f.id)+"/resend", "")
	expect(res, body, 200, `"pending"`)
}
