package monitor_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestNoAlertIsLost has alerts of two processes fire and be resolved while their
// receiver is down and one of the processes ends: all of them come once it is up.
func TestNoAlertIsLost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	down, tried, came := true, 0, map[string]int{}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if tried++; down || err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		for line := range strings.Lines(string(body)) {
			var a sandbox.Alert
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			came[string(a.ID)+map[bool]string{true: " fired", false: " resolved"}[a.Resolved.IsZero()]]++
		}
	}))
	defer hook.Close()
	until := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			ok := is()
			mu.Unlock()
			if ok {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("not %s: %d tries, %v", what, tried, came)
			}
		}
	}
	dir := t.TempDir()
	b := &boxes{next: memory(95)}
	for range 10 {
		b.live = append(b.live, sandbox.LiveSandbox{ID: sandbox.NewID(), Session: "work"})
	}
	process := func() (news <-chan sandbox.AlertNews, stop func()) {
		store := openStore(t, dir)
		to, err := outbox.Webhook(outbox.WebhookConfig{URL: hook.URL, Plain: true, Setting: "CAISSON_ALERTS_WEBHOOK"})
		if err != nil {
			t.Fatal(err)
		}
		o, err := outbox.New(outbox.Config{Store: store, Receivers: map[string]outbox.Receiver{"hook": to}, Patience: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		news, end := start(t, monitor.Config{
			Sandboxes: b, Store: store, Rules: rules(sandbox.AlertRule{Name: "full", When: "memory > 90"}), Receivers: []string{"hook"}, Posted: o.Posted,
		})
		return news, func() { end(); _ = o.Close() }
	}
	_, endFirst := process()
	_, endSecond := process()
	defer endSecond()
	until("tried", func() bool { return tried > 0 })
	read := openStore(t, dir)
	alerts := func(firing bool, n int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			list, err := read.Alerts(t.Context(), sandbox.AlertFilter{Firing: firing})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == n {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d alerts, of them firing %v; not %d", len(list), firing, n)
			}
		}
	}
	alerts(true, 10)
	endFirst()
	b.set(func() { b.next = memory(10) })
	alerts(true, 0)
	alerts(false, 10) // one for each sandbox, though two processes sampled it
	mu.Lock()
	down = false
	mu.Unlock()
	until("all there", func() bool { return len(came) == 20 })
}

// TestAlertsOfOthersEnd has a process fire alerts and end. Another that only then
// begins to look, and never sees what they were about, resolves them: about a
// sandbox of a session, and about a session that has none.
func TestAlertsOfOthersEnd(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	b := &boxes{next: memory(95), live: []sandbox.LiveSandbox{{ID: sandbox.NewID(), Session: "work"}}}
	about := rules(sandbox.AlertRule{Name: "full", When: "memory > 90"}, sandbox.AlertRule{Name: "refused", When: "denials > 0"})
	news, end := start(t, monitor.Config{Sandboxes: b, Store: s, Rules: about})
	denied := sandbox.Event{Time: time.Now(), Kind: sandbox.EventExecDenied, Session: "other"}
	if err := s.Apply(t.Context(), sandbox.Transaction{Events: []sandbox.Event{denied}}); err != nil {
		t.Fatal(err)
	}
	fired := map[sandbox.ID]bool{}
	for len(fired) < 2 {
		if n := <-news; n.Resolved.IsZero() {
			fired[n.ID] = true
		}
	}
	end()
	b.set(func() { b.next = memory(10) })
	later := func() time.Time { return time.Now().Add(time.Hour) } // the refusal is no burst any more
	news, end = start(t, monitor.Config{Sandboxes: b, Store: s, Rules: about, Now: later})
	defer end()
	for len(fired) > 0 {
		n := <-news
		if !fired[n.ID] || n.Resolved.IsZero() {
			t.Fatalf("%+v", n.Alert)
		}
		delete(fired, n.ID)
	}
}
