package e2b

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// asking is a service that asks about each command, and waits to be answered.
type asking struct {
	double
	answer chan error
	run    chan sandbox.Run
}

func (a *asking) StartExec(ctx context.Context, _ string, run sandbox.Run, _ sandbox.Local) (sandbox.ExecRecord, error) {
	a.run <- run
	select {
	case err := <-a.answer:
		return sandbox.ExecRecord{}, err
	case <-ctx.Done():
		return sandbox.ExecRecord{}, ctx.Err()
	}
}

func (a *asking) Approvals(_ context.Context, f sandbox.ApprovalFilter) ([]sandbox.Approval, error) {
	run := <-a.run
	a.run <- run
	if !run.Labels.Has(f.Labels) {
		return nil, nil
	}
	return []sandbox.Approval{{State: sandbox.ApprovalPending}}, nil
}

// frame reads one message of a stream of Connect's.
func frame(t *testing.T, r io.Reader) (last bool, text string) {
	t.Helper()
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatal(err)
	}
	return head[0]&2 != 0, string(body)
}

// TestKeepsAlive: a command that a person is asked about is told as started, is kept
// alive as long as nobody answers, and then ends with the refusal.
func TestKeepsAlive(t *testing.T) {
	t.Parallel()
	d := &asking{answer: make(chan error, 1), run: make(chan sandbox.Run, 2)}
	d.views = []sandbox.SessionView{view("", "i1", 0, time.Hour, nil)}
	s, err := New(Config{Service: d, Key: make([]byte, 32), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	body := []byte(`{"process": {"cmd": "/bin/bash", "args": ["-l", "-c", "something"]}}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/process.Process/Start", bytes.NewReader(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/connect+json"}, "Connect-Protocol-Version": {"1"}, sandboxHeader: {"i1"}, accessHeader: {s.pass("i1", localToken)}, keepAliveHeader: {"1"}}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(resp.Body)
	var first processEvent
	if _, text := frame(t, in); json.Unmarshal([]byte(text), &first) != nil || first.Event.Start == nil || first.Event.Start.PID < firstNumber {
		t.Fatalf("it begins with %s", text)
	}
	for range 2 {
		if _, text := frame(t, in); !strings.Contains(text, `"keepalive"`) {
			t.Errorf("then comes %s", text)
		}
	}
	d.answer <- sandbox.Errorf(sandbox.Denied, "no, since %s", "it is Friday").WithHint("ask on Monday")
	for {
		last, text := frame(t, in)
		if !last && strings.Contains(text, `"keepalive"`) {
			continue
		}
		if want := `{"error":{"code":"permission_denied","message":"no, since it is Friday; ask on Monday"}}`; !last || text != want {
			t.Errorf("it ends with %s", text)
		}
		return
	}
}
