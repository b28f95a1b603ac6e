package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestKilledWayOut kills a server while programs download through it: they are cut off,
// nothing leads out behind its back, and under the next server a session's next exec
// goes out as before.
func TestKilledWayOut(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "python")
	var open atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		for block := make([]byte, 1<<16); r.URL.Path == "/endless" && r.Context().Err() == nil; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(site.Close)
	address := strings.TrimPrefix(site.URL, "http://")
	const asking = `
import os, sys, time
from http.client import HTTPConnection
def ask(path):
    c = HTTPConnection(os.environ["http_proxy"].removeprefix("http://"))
    c.request("GET", sys.argv[1] + path)
    return c.getresponse()
`
	const download = asking + `
try:
    r = ask("/endless")
    r.read(1 << 20)
    print("begun", flush=True)
    while r.read(1 << 16): pass
    print("it ended", flush=True)
except Exception as e: print(type(e).__name__, flush=True)
try: print(ask("/").read(), flush=True)
except Exception as e: print(type(e).__name__, flush=True)
time.sleep(600)
`
	local := "unix://" + base + "/srv.sock"
	serve := func() *process {
		t.Helper()
		p := start(t, kit, base, "serve", "--listen", local)
		p.await(t, local)
		return p
	}
	asks := func(method, path string, in, out any) {
		t.Helper()
		if code := ask(t, local, method, path, "", in, out); code < 200 || code > 299 {
			t.Fatalf("%s %s: %d", method, path, code)
		}
	}
	server := serve()
	network := map[string]any{"mode": "allow", "allow": []string{address}}
	asks("POST", "/v1/sessions", map[string]any{"name": "work", "language": "python", "network": network}, nil)
	run := map[string]any{"command": []string{"python3", "-c", download, site.URL}}
	var stays sandbox.ExecRecord
	asks("POST", work+"/execs/background", run, &stays)
	var alone sandbox.Execution
	asks("POST", "/v1/executions", map[string]any{"run": map[string]any{"language": "python", "command": run["command"], "network": network}}, &alone)
	until(t, "both download", func() bool { return open.Load() == 2 })
	until(t, "it has begun", func() bool { return said(t, kit, base, "logs", "work", string(stays.ID)) == "begun" })
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // it was killed
	until(t, "what it dialled is closed", func() bool { return open.Load() == 0 })
	var all string
	until(t, "the program is cut off", func() bool {
		all = said(t, kit, base, "logs", "work", string(stays.ID))
		return strings.Count(all, "\n") == 2
	})
	// What it asks for before the agent has seen the end is let in nowhere, and reset.
	if !regexp.MustCompile("^begun\n(ConnectionResetError|IncompleteRead)\nConnectionRe(fused|set)Error$").MatchString(all) {
		t.Errorf("it saw %q", all)
	}
	serve()
	asks("GET", "/v1/executions/"+string(alone.ID)+"?wait=10m", nil, &alone)
	if alone.State != sandbox.ExecutionLost {
		t.Errorf("what ran alone: %s, %+v", alone.State, alone.Error)
	}
	var res sandbox.Result
	asks("POST", work+"/execs", map[string]any{"command": []string{"python3", "-c", asking + "print(ask('/').read())", site.URL}}, &res)
	if string(res.Stdout) != "b'hello'\n" || len(res.Connections) != 1 {
		t.Errorf("the next exec: %s%s, %+v", res.Stdout, res.Stderr, res.Connections)
	}
	asks("DELETE", "/v1/sessions/work?force=true", nil, nil)
	until(t, "nothing is left", func() bool {
		asks("POST", "/v1/sweep", map[string]any{}, nil)
		return len(sandboxes(base)) == 0
	})
}
