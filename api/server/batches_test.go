package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/sandbox"
)

// echo is a service whose runs print their code.
func echo(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
	if run.Code == "full" {
		return sandbox.Result{}, sandbox.Errorf(sandbox.Exhausted, "full").WithHint("wait")
	}
	return sandbox.Result{ExecID: "e", Stdout: []byte(run.Code)}, nil
}

// TestBatch answers each line, in order where that is asked for, and has a line
// that is wrong harm no other.
func TestBatch(t *testing.T) {
	t.Parallel()
	ts := serve(t, server.Config{Service: &fake{run: echo}, MaxBody: 10_000})
	var lines, want strings.Builder
	for i := range 50 {
		switch i {
		case 10:
			lines.WriteString("rubbish\n")
			fmt.Fprintln(&want, "line 11", 11, "invalid")
		case 20:
			lines.WriteString(`{"id": "f", "code": "full"}` + "\n")
			fmt.Fprintln(&want, "f", 21, "exhausted")
		default:
			fmt.Fprintf(&lines, `{"id": %d, "language": "python", "code": "c%d"}`+"\n", i, i)
			fmt.Fprintln(&want, i, i+1, fmt.Sprint("c", i))
		}
	}
	res, body := ask(t, "POST", ts.URL+"/v1/batches?workers=4&ordered=true", lines.String(), "Content-Type", "application/x-ndjson")
	var got strings.Builder
	for line := range strings.Lines(body) {
		var r struct {
			ID     string
			Line   int
			Stdout string
			Error  struct{ Kind, Hint string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		fmt.Fprintln(&got, r.ID, r.Line, r.Stdout+r.Error.Kind)
	}
	if d := cmp.Diff(want.String(), got.String()); d != "" || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%s %v, -want +got\n%s", res.Status, res.Header, d)
	}
	for name, tt := range map[string]struct {
		query, body string
		status      int
	}{
		"nothing":          {"", "\n\n", 400},
		"too much":         {"", strings.Repeat("x", 10_001), 413},
		"too many workers": {"?workers=257", "x", 400},
		"what is that":     {"?worker=2", "x", 400},
	} {
		if res, body := ask(t, "POST", ts.URL+"/v1/batches"+tt.query, tt.body); res.StatusCode != tt.status || !strings.Contains(body, `"hint":"`) {
			t.Errorf("%s: %s %s", name, res.Status, body)
		}
	}
}

// TestBatchAsTheyEnd answers a line while another still runs, and ends what runs
// once nobody reads the answer.
func TestBatchAsTheyEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	ts := serve(t, server.Config{Service: &fake{run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		if run.Code == "slow" {
			<-ctx.Done()
			close(ended)
			return sandbox.Result{}, ctx.Err()
		}
		return echo(ctx, run, s)
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, ts.URL+"/v1/batches?workers=2", strings.NewReader(`{"id": "slow", "code": "slow"}`+"\n"+`{"id": "quick", "code": "quick"}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := ts.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"id":"quick"`) {
		t.Errorf("%v: %s", err, line)
	}
	cancel()
	<-ended
}

// TestBatchCutOff is not kept as an answer to who asks again with the same key.
func TestBatchCutOff(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	ran := make(chan struct{}, 2)
	ts := serve(t, server.Config{Service: &fake{run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		ran <- struct{}{}
		if calls.Add(1) == 1 {
			<-ctx.Done()
		}
		return echo(ctx, run, s)
	}}})
	post := func(ctx context.Context) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, ts.URL+"/v1/batches", strings.NewReader(`{"id": "a", "code": "a"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k")
		return ts.Client().Do(req)
	}
	ctx, cancel := context.WithCancel(t.Context())
	res, err := post(ctx)
	if err != nil {
		t.Fatal(err)
	}
	<-ran
	cancel()
	res.Body.Close()
	for {
		res, body := ask(t, "POST", ts.URL+"/v1/batches", `{"id": "a", "code": "a"}`, "Idempotency-Key", "k")
		if res.StatusCode == http.StatusConflict {
			continue // the first is not over yet
		}
		if !strings.Contains(body, `"stdout":"a"`) || res.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%v: %s", res.Header, body)
		}
		return
	}
}
