package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// ask calls a server. What it is called with and what it answers is JSON.
func ask(t *testing.T, address, method, path, token string, in, out any) int {
	t.Helper()
	tr := &http.Transport{}
	if socket, ok := strings.CutPrefix(address, "unix://"); ok {
		address = "http://localhost"
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
	}
	var body io.Reader
	if in != nil {
		body = encoded(t, in)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return answered(t, tr, r, out)
}

func encoded(t *testing.T, in any) io.Reader {
	t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b)
}

// answered sends a request, and reads its answer, which is JSON.
func answered(t *testing.T, tr *http.Transport, r *http.Request, out any) int {
	t.Helper()
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			t.Fatalf("%s %s: %d %s: %v", r.Method, r.URL, res.StatusCode, b, err)
		}
	} else if res.StatusCode >= http.StatusBadRequest {
		t.Logf("%s %s: %s", r.Method, r.URL, b)
	}
	return res.StatusCode
}

// judgeBy has a server judge solutions by tests and by cases.
func judgeBy(t *testing.T, address, token string) {
	t.Helper()
	type verdict struct {
		Passed bool   `json:"all_passed"`
		Trust  string `json:"trust"`
		Tests  []struct{ ID, Outcome string }
	}
	for name, tt := range map[string]struct {
		body  map[string]any
		code  int
		trust string
		tests int
		right bool
	}{
		"right tests": {map[string]any{"solution": "def add(a, b): return a + b", "tests": map[string]string{"test_add.py": "from solution import add\ndef test_add(): assert add(1, 2) == 3"}}, 200, "shared_interpreter", 1, true},
		"wrong cases": {map[string]any{"solution": "print(int(input()) + 1)", "cases": []map[string]string{{"input": "1", "expected": "2"}, {"input": "5", "expected": "7"}}}, 200, "outside", 2, false},
		"neither":     {map[string]any{"solution": "x"}, 400, "", 0, false},
		"more":        {map[string]any{"solution": "x", "test": "y"}, 400, "", 0, false},
	} {
		var v verdict
		if code := ask(t, address, "POST", "/v1/tests", token, tt.body, &v); code != tt.code || v.Passed != tt.right || v.Trust != tt.trust || len(v.Tests) != tt.tests {
			t.Errorf("%s: %d, %+v", name, code, v)
		}
	}
}

// TestServe has the user of the machine ask by the socket, and owners by their
// tokens on loopback, until the server ends; what runs in sessions goes on, and
// is there for the next server.
func TestServe(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "python")
	serve := func() (p *process, local, loop string) {
		t.Helper()
		p = start(t, kit, base, "serve", "--listen", "unix://"+base+"/srv.sock", "--listen", "127.0.0.1:0")
		for _, to := range []*string{&local, &loop} {
			line, err := p.out.ReadString('\n')
			if err != nil {
				t.Fatalf("%v; %s", err, p.errs)
			}
			*to = strings.TrimSpace(line)
		}
		return p, local, loop
	}
	srv, local, loop := serve()
	if st, err := os.Stat(base + "/srv.sock"); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	token := func(args ...string) string {
		all := said(t, kit, base, append([]string{"token", "create"}, args...)...)
		return all[strings.LastIndex(all, "\n")+1:]
	}
	ann, bob := token("--owner", "ann"), token("--owner", "bob")
	var made sandbox.Session
	if code := ask(t, loop, "POST", "/v1/sessions", ann, map[string]any{"name": "work", "language": "shell"}, &made); code != 201 && code != 200 || made.Owner != "ann" {
		t.Fatalf("%d, %+v", code, made)
	}
	for who, want := range map[string]int{"": 401, "csn_wrong": 401, ann: 200, bob: 404} {
		if code := ask(t, loop, "GET", "/v1/sessions/work", who, nil, nil); code != want {
			t.Errorf("%.5q: %d, not %d", who, code, want)
		}
	}
	if code := ask(t, local, "GET", "/v1/sessions/ann~work", "", nil, nil); code != 200 {
		t.Errorf("the local user: %d", code)
	}
	var res sandbox.Result
	run := map[string]any{"command": []string{"echo", "ok"}}
	if code := ask(t, loop, "POST", "/v1/sessions/work/execs", ann, run, &res); code != 200 || string(res.Stdout) != "ok\n" || res.Session != "work" {
		t.Errorf("%d, %+v", code, res)
	}
	judgeBy(t, loop, ann)
	// A second server of the same state folder says so.
	second := start(t, kit, base, "serve", "--listen", "unix://"+base+"/srv.sock")
	if code := second.code(t); code != 122 || !strings.Contains(second.errs.String(), "another server uses this state folder") {
		t.Errorf("code %d, %s", code, second.errs)
	}
	kept := said(t, kit, base, "exec", "--detach", "ann~work", "--", "sh", "-c", "echo before; sleep 600")
	if err := srv.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := srv.code(t); code != 0 {
		t.Errorf("the server ends with %d: %s", code, srv.errs)
	}
	if _, err := os.Stat(base + "/srv.sock"); err == nil {
		t.Error("the socket is still there")
	}
	if text := srv.errs.String(); strings.Contains(text, ann) || strings.Contains(text, bob) || !strings.Contains(text, "route=") {
		t.Errorf("the log of the server: %s", text)
	}
	srv, _, loop = serve()
	var list struct{ Items []sandbox.ExecRecord }
	if code := ask(t, loop, "GET", "/v1/execs?session=work", ann, nil, &list); code != 200 || len(list.Items) != 1 || string(list.Items[0].ID) != kept || !list.Items[0].Ended.IsZero() {
		t.Errorf("%d, %+v", code, list)
	}
	if code := ask(t, loop, "DELETE", "/v1/sessions/work?force=true", ann, nil, nil); code != 204 {
		t.Errorf("remove: %d", code)
	}
	if err := srv.Process.Signal(syscall.SIGTERM); err != nil || srv.code(t) != 0 {
		t.Errorf("%v, %s", err, srv.errs)
	}
}
