package server_test

import (
	"bufio"
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/sandbox"
)

// told is a service with an audit that grows.
type told struct {
	api.Service
	mu     sync.Mutex
	events []sandbox.Event
	denied bool
	clock  time.Time // of events from now on; the zero time is whenever
}

func (f *told) tell(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, sandbox.Event{Seq: int64(len(f.events) + 1), Time: f.clock, Kind: kind, Session: "work"})
}

// Events takes what was told before for old, as the audit does by its times.
func (f *told) Events(_ context.Context, filter sandbox.EventFilter) iter.Seq2[sandbox.Event, error] {
	return func(yield func(sandbox.Event, error) bool) {
		f.mu.Lock()
		list := f.events
		denied := f.denied
		f.mu.Unlock()
		if denied {
			yield(sandbox.Event{}, sandbox.Errorf(sandbox.Denied, "not you"))
			return
		}
		if filter.Newest && len(list) > 0 {
			list = list[len(list)-1:]
		}
		for _, e := range list {
			if e.Seq > filter.After && (e.Time.IsZero() || !e.Time.Before(filter.Since)) && !yield(e, nil) {
				return
			}
		}
	}
}

// TestFollow has each event come once, in its order, also of what is told later, and
// goes on behind the one that was seen last.
func TestFollow(t *testing.T) {
	t.Parallel()
	f := &told{}
	for _, kind := range []string{"a.one", "a.two", "a.three"} {
		f.tell(kind)
	}
	s, err := server.New(server.Config{Service: f})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", "1")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "text/event-stream" {
		t.Fatal(res.StatusCode, got)
	}
	lines := bufio.NewReader(res.Body)
	next := func() (kind, id string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			line = strings.TrimSuffix(line, "\n")
			if k, ok := strings.CutPrefix(line, "event: "); ok {
				kind = k
			}
			if i, ok := strings.CutPrefix(line, "id: "); ok {
				id = i
			}
			if line == "" && kind != "" {
				return kind, id
			}
		}
	}
	for _, want := range []string{"a.two 2", "a.three 3"} {
		if kind, id := next(); kind+" "+id != want {
			t.Errorf("%s %s, not %s", kind, id, want)
		}
	}
	f.tell("a.four")
	if kind, id := next(); kind+" "+id != "a.four 4" {
		t.Errorf("told later: %s %s", kind, id)
	}
	s.EndStreams()
	if rest, err := io.ReadAll(lines); err != nil || strings.Contains(string(rest), "event:") {
		t.Errorf("at the server's end: %q, %v", rest, err)
	}
	if res, body := ask(t, "GET", ts.URL+"/v1/events", "", "Last-Event-ID", "x"); res.StatusCode != 400 || !strings.Contains(body, "Last-Event-ID") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	f.mu.Lock()
	f.denied = true
	f.mu.Unlock()
	if res, body := ask(t, "GET", ts.URL+"/v1/events", ""); res.StatusCode != 403 || !strings.Contains(body, "not you") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// TestDocsPage has anybody read the API, in a page that asks no other server.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	ts := serve(t, server.Config{Service: &fake{}, Authenticate: func(*http.Request) (sandbox.Caller, error) {
		return sandbox.Caller{}, sandbox.Errorf(sandbox.Denied, "no token")
	}})
	res, body := ask(t, "GET", ts.URL+"/docs", "")
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") || strings.Contains(body, "//") {
		t.Errorf("%d, %v: %.200s", res.StatusCode, res.Header, body)
	}
	if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'self'") {
		t.Error(csp)
	}
	if res, body := ask(t, "GET", ts.URL+"/openapi.json", ""); res.StatusCode != 200 || !strings.Contains(body, `"/v1/runs"`) {
		t.Errorf("%d %.200s", res.StatusCode, body)
	}
	if res, _ := ask(t, "GET", ts.URL+"/v1/sessions", ""); res.StatusCode != 401 {
		t.Error(res.StatusCode)
	}
}

// TestFollowClockSet has the clock set back before each of two events: both come, and
// none of those before.
func TestFollowClockSet(t *testing.T) {
	t.Parallel()
	f := &told{clock: time.Now()}
	f.tell("a.long.ago")
	f.clock = f.clock.Add(-10 * time.Hour)
	s, err := server.New(server.Config{Service: f})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for _, kind := range []string{"a.before", "a.after"} {
		f.tell(kind)
		for line := ""; line != "event: "+kind+"\n"; {
			if line, err = in.ReadString('\n'); err != nil || strings.Contains(line, "a.long.ago") {
				t.Fatal(line, err)
			}
		}
		f.mu.Lock()
		f.clock = f.clock.Add(-10 * time.Hour)
		f.mu.Unlock()
	}
}
