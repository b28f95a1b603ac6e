package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// server takes what is posted, unless it is down.
type server struct {
	*httptest.Server
	secret []byte

	mu    sync.Mutex
	down  bool
	tried int
	got   []string
	news  chan struct{}
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{secret: []byte("0123456789abcdef"), news: make(chan struct{}, 1000)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		signed := r.Header.Get("X-Caisson-Signature") == outbox.Sign(s.secret, r.Header.Get("X-Caisson-Timestamp"), b)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tried++
		if err == nil && signed && !s.down {
			s.got = append(s.got, strings.Split(strings.TrimSpace(string(b)), "\n")...)
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		s.news <- struct{}{}
	}))
	t.Cleanup(s.Close)
	return s
}

// until waits for a condition that a request may have made true.
func (s *server) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		s.mu.Lock()
		ok := is()
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-s.news:
		case <-late:
			t.Fatalf("not %s: %d tries, got %q", what, s.tried, s.got)
		}
	}
}

func (s *server) open(t *testing.T, store *sqlite.Store) *outbox.Outbox {
	t.Helper()
	hook, err := outbox.Webhook(outbox.WebhookConfig{URL: s.URL, Secret: s.secret, Plain: true, Setting: "CAISSON_ALERTS_WEBHOOK"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := outbox.New(outbox.Config{Store: store, Receivers: map[string]outbox.Receiver{"hook": hook}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

func post(t *testing.T, s *sqlite.Store, to string, from, n int) {
	t.Helper()
	var c sandbox.Transaction
	for i := range n {
		c.PostLetters = append(c.PostLetters, sandbox.Letter{To: to, Body: fmt.Appendf(nil, "%d", from+i), Posted: time.Now()})
	}
	if err := s.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsLost posts while the receiver is down, ends the process, and goes
// on in another.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t)
	s.down = true
	first := openStore(t, dir)
	o := s.open(t, first)
	post(t, first, "hook", 0, 5)
	o.Posted()
	s.until(t, "tried", func() bool { return s.tried > 0 })
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()

	second := openStore(t, dir)
	post(t, second, "hook", 5, 300)
	post(t, second, "another", 999, 1)
	o = s.open(t, second)
	s.until(t, "tried again", func() bool { return s.tried > 1 })
	s.mu.Lock()
	s.down = false
	s.mu.Unlock()
	s.until(t, "all there", func() bool { return len(s.got) >= 305 })
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for i, line := range s.got {
		if line != fmt.Sprint(i) {
			t.Fatalf("line %d is %q of %d", i, line, len(s.got))
		}
	}
	// What is taken is gone, and what is another's waits.
	left, err := second.TakeLetters(t.Context(), "hook", time.Now().Add(time.Hour), time.Now(), 10)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %+v", err, left)
	}
	if left, err = second.TakeLetters(t.Context(), "another", time.Now(), time.Now(), 10); err != nil || len(left) != 1 {
		t.Errorf("another's: %v, %+v", err, left)
	}
}

// TestCloseDelivers hands over what was posted just before.
func TestCloseDelivers(t *testing.T) {
	t.Parallel()
	s, store := serve(t), openStore(t, t.TempDir())
	o := s.open(t, store)
	post(t, store, "hook", 0, 1)
	if err := errors.Join(o.Close(), o.Close()); err != nil {
		t.Fatal(err)
	}
	if s.mu.Lock(); len(s.got) != 1 {
		t.Errorf("got %q", s.got)
	}
	s.mu.Unlock()
}

// TestOldLettersAreGivenUp drops what nobody took for too long.
func TestOldLettersAreGivenUp(t *testing.T) {
	t.Parallel()
	s, store := serve(t), openStore(t, t.TempDir())
	c := sandbox.Transaction{PostLetters: []sandbox.Letter{
		{To: "hook", Body: []byte("old"), Posted: time.Now().Add(-48 * time.Hour)}, {To: "hook", Body: []byte("young"), Posted: time.Now()},
	}}
	if err := store.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_ = s.open(t, store).Close()
	if s.mu.Lock(); len(s.got) != 1 || s.got[0] != "young" {
		t.Errorf("got %q", s.got)
	}
	s.mu.Unlock()
}

func TestCommand(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "got")
	letters := []sandbox.Letter{{Body: []byte("one")}, {Body: []byte("two\n")}}
	if err := outbox.Command("cat > '"+name+"'").Deliver(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "one\ntwo\n" {
		t.Errorf("%q, %v", b, err)
	}
	if err := outbox.Command("exit 3").Deliver(t.Context(), letters); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("a program that failed: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := outbox.Command("sleep 1000").Deliver(ctx, letters); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("one that takes too long: %v", err)
	}
}

// An address is a secret: what is told of a failure goes into logs.
func TestWebhookKeepsItsAddress(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, address := range []string{"https://u:s3cret@h.test/x", "ftp://h.test/s3cret", "h.test/s3cret", gone.URL + "/s3cret?token=s3cret"} {
		r, err := outbox.Webhook(outbox.WebhookConfig{URL: address, Plain: true, Setting: "CAISSON_ALERTS_WEBHOOK"})
		if err == nil {
			err = r.Deliver(t.Context(), []sandbox.Letter{{Body: []byte("{}")}})
		}
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := outbox.Webhook(outbox.WebhookConfig{URL: "http://h.test/", Setting: "CAISSON_ALERTS_WEBHOOK"}); !errors.Is(err, sandbox.Invalid) || !strings.Contains(sandbox.HintOf(err), "CAISSON_ALERTS_WEBHOOK_PLAIN=1") {
		t.Errorf("http: %v, %s", err, sandbox.HintOf(err))
	}
}

// pen is a correspondent.
type pen struct {
	mu     sync.Mutex
	posted map[string]int
	failed []error
}

func (*pen) Request(_ context.Context, l sandbox.Letter) (map[string]string, []byte, error) {
	if string(l.Body) == `"unwanted"` {
		return nil, nil, nil
	}
	return map[string]string{"X-Id": string(l.Body)}, l.Body, nil
}

func (p *pen) Reply(_ context.Context, l sandbox.Letter, r sandbox.Reply) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.posted == nil {
		p.posted = map[string]int{}
	}
	p.posted[string(l.Body)]++
	if r.Failed != nil {
		p.failed = append(p.failed, r.Failed)
		return nil
	}
	if r.Status != http.StatusOK || string(r.Body) != "heard "+string(l.Body) {
		return fmt.Errorf("%d %q", r.Status, r.Body)
	}
	return nil
}

// With a correspondent each letter has its own answer, and what was taken is not
// posted again for what was not.
func TestCorrespondent(t *testing.T) {
	t.Parallel()
	down := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Id") != string(b) || r.Header.Get("Content-Type") != "application/json" || string(b) == `"2"` && down {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "heard "+string(b))
	}))
	t.Cleanup(s.Close)
	p := &pen{}
	r, err := outbox.Webhook(outbox.WebhookConfig{URL: s.URL, Plain: true, Correspondent: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	letters := []sandbox.Letter{{ID: 1, Body: []byte(`"1"`)}, {ID: 2, Body: []byte(`"2"`)}, {ID: 3, Body: []byte(`"unwanted"`)}, {ID: 4, Body: []byte(`"4"`)}}
	if err := r.Deliver(t.Context(), letters); err == nil {
		t.Error("what the server did not take is delivered")
	}
	down = false
	if err := r.Deliver(t.Context(), letters); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(p.posted); got != `map["1":1 "2":2 "4":1]` {
		t.Errorf("posted: %s", got)
	}
}

// Where only public addresses are allowed no other is connected to, whatever its
// name resolves to, and the correspondent hears that at once.
func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	t.Cleanup(s.Close)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
		"100.64.0.1", "[fd00::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "198.18.0.1",
	} {
		p := &pen{}
		r, err := outbox.Webhook(outbox.WebhookConfig{URL: "https://" + host + port, Public: true, Correspondent: p, Allows: "THIS=1 allows it"})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Deliver(t.Context(), []sandbox.Letter{{ID: 1, Body: []byte("{}")}})
		if err != nil || len(p.failed) != 1 || !strings.Contains(p.failed[0].Error(), "not a public one") || sandbox.HintOf(p.failed[0]) != "THIS=1 allows it" {
			t.Errorf("%s: %v, %v", host, err, p.failed)
		}
	}
	for _, c := range []outbox.WebhookConfig{{URL: "https://example.org", Signed: true}, {URL: "https://example.org", Signed: true, Secret: []byte("short")}, {URL: "file:///etc/passwd", Plain: true}} {
		if _, err := outbox.Webhook(c); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%q: %v", c.URL, err)
		}
	}
}
