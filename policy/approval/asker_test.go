package approval_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		script string
		yes    bool
		failed bool
	}{
		"yes":           {`grep -q '"digest":"d1"' && echo '{"approve":true,"by":"robot","note":"n"}'`, true, false},
		"no":            {`cat >/dev/null; echo '{"approve":false}'`, false, false},
		"nothing":       {`cat >/dev/null`, false, true},
		"not an answer": {`cat >/dev/null; echo '{"approved":true}'`, false, true},
		"no verdict":    {`cat >/dev/null; echo '{}'`, false, true},
		"two answers":   {`cat >/dev/null; echo '{"approve":true} {"approve":false}'`, false, true},
		"a failure":     {`cat >/dev/null; echo '{"approve":true}'; exit 1`, false, true},
		"too much":      {`cat >/dev/null; head -c 100000 /dev/zero`, false, true},
		"too slow":      {`exec sleep 60`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			ask, err := approval.Command(approval.CommandConfig{Line: file, Timeout: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			a := question("d1")
			ans, err := ask(t.Context(), a)
			if (err != nil) != tt.failed || ans.Approve != tt.yes {
				t.Errorf("%+v, %v", ans, err)
			}
			if tt.yes && (ans.By != "robot" || ans.Note != "n" || ans.Via != "command") {
				t.Errorf("%+v", ans)
			}
		})
	}
	for _, line := range []string{"", "/no/such/program"} {
		if _, err := approval.Command(approval.CommandConfig{Line: line}); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// An approver that fails refuses at once.
func TestAskerThatFails(t *testing.T) {
	t.Parallel()
	d := newPlace(t).desk(t, func(c *approval.Config) {
		c.Approver = func(context.Context, sandbox.Approval) (sandbox.ApprovalAnswer, error) {
			return sandbox.ApprovalAnswer{}, errors.New("out of order")
		}
	})
	if by, why := settle(t, d, question("d"), sandbox.ApproveDefault, nil); by != nil || !strings.Contains(why, "out of order") {
		t.Errorf("%+v %q", by, why)
	}
}

const secret = "a secret of sixteen bytes"

func TestWebhook(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("X-Caisson-Signature") != "sha256="+approval.Sign([]byte(secret), r.Header.Get("X-Caisson-Timestamp"), body) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/yes":
			if tries.Add(1) < 3 {
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
		case "/slow":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	hook := func(path, key string) (sandbox.ApprovalAnswer, error) {
		t.Helper()
		// Where an answer is to come, a busy machine may take its time with it.
		try, all := time.Minute, time.Minute
		if path == "/slow" || path == "/later" {
			try, all = 100*time.Millisecond, 2*time.Second
		}
		ask, err := approval.Webhook(approval.WebhookConfig{
			URL: s.URL + path, Secret: []byte(key), AllowPrivate: true, Backoff: time.Millisecond, Timeout: try,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), all)
		defer cancel()
		return ask(ctx, question("d"))
	}
	if ans, err := hook("/yes", secret); err != nil || !ans.Approve || ans.By != "ops" || ans.Via != "webhook" || tries.Load() != 3 {
		t.Errorf("after two failures: %+v, %v, %d tries", ans, err, tries.Load())
	}
	if ans, err := hook("/no", secret); err != nil || ans.Approve {
		t.Errorf("no: %+v, %v", ans, err)
	}
	for _, path := range []string{"/elsewhere", "/none", "/slow", "/later"} {
		if ans, err := hook(path, secret); err == nil || ans.Approve {
			t.Errorf("%s: %+v, %v", path, ans, err)
		}
	}
	if ans, err := hook("/yes", "another secret, and long"); err == nil || ans.Approve {
		t.Errorf("a wrong signature: %+v, %v", ans, err)
	}
}

// A webhook reaches no private address unless that is allowed, whatever its
// name resolves to.
func TestWebhookStaysOutside(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { t.Error("it was reached") }))
	t.Cleanup(s.Close)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
		"100.64.0.1", "[fd00::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "198.18.0.1",
	} {
		ask, err := approval.Webhook(approval.WebhookConfig{URL: "https://" + host + port, Secret: []byte(secret), Backoff: time.Hour, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err = ask(ctx, question("d"))
		cancel()
		if err == nil || !strings.Contains(err.Error(), "not a public one") {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, c := range []approval.WebhookConfig{
		{URL: "http://example.org/x", Secret: []byte(secret)}, {URL: "https://user:pass@example.org", Secret: []byte(secret)},
		{URL: "file:///etc/passwd", Secret: []byte(secret), AllowPrivate: true}, {URL: "https://example.org"}, {URL: "", Secret: []byte(secret)},
	} {
		if _, err := approval.Webhook(c); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%q: %v", c.URL, err)
		}
	}
}

// An address is a secret: what is told of a failure goes into the audit.
func TestWebhookKeepsItsAddress(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, address := range []string{"https://u:s3cret@h.test/x", "ftp://h.test/s3cret", "h.test/s3cret", "https://h.test/s3cret\x7f", gone.URL + "/s3cret?token=s3cret"} {
		ask, err := approval.Webhook(approval.WebhookConfig{URL: address, Secret: []byte(secret), AllowPrivate: true, Backoff: time.Hour})
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err = ask(ctx, question("d"))
			cancel()
		}
		if err == nil || strings.Contains(err.Error()+sandbox.HintOf(err), "s3cret") {
			t.Errorf("%s: %v; %s", address, err, sandbox.HintOf(err))
		}
	}
}
