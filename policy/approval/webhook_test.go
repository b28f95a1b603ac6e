package approval_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/sandbox"
)

const (
	secret = "a secret of sixteen bytes"
	server = "approvals" // its name in the outbox
)

// asking is a process that asks a server by its outbox.
func (p *place) asking(t *testing.T, hook outbox.WebhookConfig, change func(*approval.Config)) *approval.Desk {
	t.Helper()
	var box *outbox.Outbox
	d := p.desk(t, func(c *approval.Config) {
		c.Letters, c.Posted = server, func() { box.Posted() }
		if change != nil {
			change(c)
		}
	})
	hook.Secret, hook.Plain, hook.Correspondent = []byte(secret), true, d
	r, err := outbox.Webhook(hook)
	if err == nil {
		box, err = outbox.New(outbox.Config{Store: p.store, Receivers: map[string]outbox.Receiver{server: r}})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	return d
}

// A server's answer counts; one that fails for now is asked again, and one that
// cannot answer refuses.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	tries := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		tries[r.URL.Path]++
		try := tries[r.URL.Path]
		mu.Unlock()
		if err != nil || r.Header.Get("X-Caisson-Signature") != outbox.Sign([]byte(secret), r.Header.Get("X-Caisson-Timestamp"), body) ||
			len(r.Header.Get("X-Caisson-Approval")) != 32 || !strings.Contains(string(body), `"digest":"`+r.URL.Path+`"`) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/yes":
			if try < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, `{"approve":true,"by":"ops"}`)
		case "/no":
			_, _ = io.WriteString(w, `{"approve":false}`)
		case "/later":
			w.WriteHeader(http.StatusAccepted)
		case "/elsewhere":
			http.Redirect(w, r, "/yes", http.StatusTemporaryRedirect)
		case "/words":
			_, _ = io.WriteString(w, `yes`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	for path, want := range map[string]struct{ by, why string }{
		"/yes": {by: "ops"}, "/no": {why: "denied by 127.0.0.1"},
		"/elsewhere": {why: "the approver failed: the webhook answered 307 Temporary Redirect"},
		"/words":     {why: `the approver failed: the answer of the webhook is not {"approve": true or false}`},
		"/none":      {why: "the approver failed: the webhook answered 404 Not Found"},
		"/later":     {why: "nobody approved it in time"},
	} {
		t.Run(path[1:], func(t *testing.T) {
			t.Parallel()
			d := newPlace(t).asking(t, outbox.WebhookConfig{URL: s.URL + path}, func(c *approval.Config) {
				if c.Patience = time.Minute; path == "/later" {
					c.Patience = 2 * time.Second
				}
			})
			by, why := settle(t, d, question(path), sandbox.ApproveDefault, nil)
			if why != want.why || (by != nil) != (want.by != "") || by != nil && (by.By != want.by || by.Via != "webhook") {
				t.Errorf("%+v, %q", by, why)
			}
			mu.Lock()
			defer mu.Unlock()
			if n := tries[path]; path == "/yes" && n != 3 || path != "/yes" && n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A server that must not be reached refuses at once, and says what would allow it;
// a person who is asked too may still answer.
func TestWebhookBesideAPerson(t *testing.T) {
	t.Parallel()
	hook := outbox.WebhookConfig{URL: "http://127.0.0.1:1/", Public: true, Allows: "THIS=1 allows it"}
	d := newPlace(t).asking(t, hook, nil)
	if by, why := settle(t, d, question("d"), sandbox.ApproveDefault, nil); by != nil || !strings.Contains(why, "not a public one") || !strings.HasSuffix(why, "; THIS=1 allows it") {
		t.Errorf("alone: %+v, %q", by, why)
	}
	p := newPlace(t)
	d = p.asking(t, hook, nil)
	by, why := settle(t, d, question("d"), sandbox.ApproveDefault, func(ctx context.Context, _ sandbox.Approval) (sandbox.ApprovalAnswer, error) {
		for { // until the server was asked in vain
			left, err := p.store.TakeLetters(ctx, server, time.Now().Add(time.Hour), time.Now(), 1)
			if err != nil || len(left) == 0 {
				return sandbox.ApprovalAnswer{Approve: true, By: "me", Via: "terminal"}, err
			}
		}
	})
	if by == nil || by.By != "me" {
		t.Errorf("beside a person: %+v, %q", by, why)
	}
}

// transport is a server without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWebhookDown asks while the server is down for more than a minute, by a
// clock of its own; and has a question answered whose asker was killed.
func TestWebhookDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		up := time.Now().Add(65 * time.Second)
		tries := 0
		hook := outbox.WebhookConfig{URL: "http://h.test/", Transport: transport(func(*http.Request) (*http.Response, error) {
			if tries++; time.Now().Before(up) {
				return nil, errors.New("it is down")
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"approve":true,"by":"ops"}`))}, nil
		})}
		begun := time.Now()
		d := p.asking(t, hook, func(c *approval.Config) { c.Patience, c.Poll = 5*time.Minute, time.Second })
		by, why := settle(t, d, question("down"), sandbox.ApproveDefault, nil)
		if by == nil || by.By != "ops" || tries < 3 || time.Since(begun) > 80*time.Second {
			t.Errorf("%+v, %q after %v, %d tries", by, why, time.Since(begun), tries)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		// One process asks, takes the letter, and is no more: nobody hears the answer.
		store := p.open(t)
		gone := p.desk(t, func(c *approval.Config) {
			c.Store, c.Letters, c.Patience, c.Poll = store, server, 5*time.Minute, time.Second
		})
		asked := make(chan error, 1)
		go func() {
			_, _, err := gone.Settle(context.WithoutCancel(t.Context()), question("killed"), sandbox.ApproveDefault, nil)
			asked <- err
		}()
		synctest.Wait()
		now := time.Now()
		if l, err := store.TakeLetters(t.Context(), server, now, now.Add(time.Minute), 1); err != nil || len(l) != 1 {
			t.Fatalf("%v, %+v", err, l)
		}
		if err := store.Close(); err != nil || <-asked == nil {
			t.Fatalf("it was answered; %v", err)
		}
		tries := 0
		d := p.asking(t, outbox.WebhookConfig{URL: "http://h.test/", Transport: transport(func(*http.Request) (*http.Response, error) {
			tries++
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"approve":true,"by":"ops"}`))}, nil
		})}, nil)
		time.Sleep(2 * time.Minute) // of the bubble's: the letter is the dead one's for a minute
		synctest.Wait()
		if tries != 1 {
			t.Errorf("%d requests", tries)
		}
		if by, why := settle(t, d, question("killed"), sandbox.ApproveDefault, nil); by == nil || by.By != "ops" || tries != 1 {
			t.Errorf("asked again: %+v, %q, %d requests", by, why, tries)
		}
	})
}
