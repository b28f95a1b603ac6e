package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestIdempotency has a call that is made again with its key do nothing again, and
// have the answer of the first; of no other caller, key, body or path.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	held, goOn := make(chan struct{}, 1), make(chan struct{})
	f := &fake{run: func(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
		n := ran.Add(1)
		switch run.Code {
		case "wait":
			held <- struct{}{}
			<-goOn
		case "busy":
			return sandbox.Result{}, sandbox.Errorf(sandbox.Exhausted, "full")
		case "gone":
			return sandbox.Result{}, context.Canceled // as of a caller who has lost the connection
		case "wrong":
			return sandbox.Result{}, sandbox.Errorf(sandbox.Invalid, "wrong")
		}
		return sandbox.Result{Stdout: fmt.Appendf(nil, "run %d", n)}, nil
	}}
	ts := serve(t, server.Config{Service: f, Authenticate: func(r *http.Request) (sandbox.Caller, error) {
		return sandbox.Caller{Owner: r.Header.Get("X-Owner")}, nil
	}})
	post := func(key, owner, code string) (int, string) {
		t.Helper()
		header := []string{"Content-Type", "application/json", "X-Owner", owner}
		if key != "" {
			header = append(header, "Idempotency-Key", key)
		}
		res, body := ask(t, "POST", ts.URL+"/v1/runs", `{"language":"python","code":"`+code+`"}`, header...)
		return res.StatusCode, body
	}
	code, first := post("k", "ann", "x")
	if again, body := post("k", "ann", "x"); code != 200 || again != 200 || body != first || ran.Load() != 1 {
		t.Errorf("%d %s\n%d %s; ran %d times", code, first, again, body, ran.Load())
	}
	if code, body := post("k", "ann", "y"); code != 409 || !strings.Contains(body, "Idempotency-Key") || ran.Load() != 1 {
		t.Errorf("another body: %d %s", code, body)
	}
	for what, tt := range map[string][2]string{"another owner": {"k", "bob"}, "another key": {"l", "ann"}, "no key": {"", "ann"}} {
		before := ran.Load()
		if code, body := post(tt[0], tt[1], "x"); code != 200 || body == first || ran.Load() != before+1 {
			t.Errorf("%s: %d %s", what, code, body)
		}
	}
	// What may go well another time is tried again, what is wrong is not.
	for name, tt := range map[string]struct {
		code int
		runs int64
	}{"busy": {429, 2}, "gone": {499, 2}, "wrong": {400, 1}} {
		before := ran.Load()
		for range 2 {
			if code, body := post(name, "ann", name); code != tt.code {
				t.Errorf("%s: %d %s", name, code, body)
			}
		}
		if n := ran.Load() - before; n != tt.runs {
			t.Errorf("%s ran %d times", name, n)
		}
	}
	ended := make(chan int)
	go func() {
		code, _ := post("w", "ann", "wait")
		ended <- code
	}()
	<-held
	if code, body := post("w", "ann", "wait"); code != 409 || !strings.Contains(body, "being answered") {
		t.Errorf("beside the first: %d %s", code, body)
	}
	close(goOn)
	if code := <-ended; code != 200 {
		t.Error(code)
	}
	if code, _ := post(strings.Repeat("k", 256), "ann", "x"); code != 400 {
		t.Errorf("a long key: %d", code)
	}
}
