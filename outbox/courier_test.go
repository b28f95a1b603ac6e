package outbox_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/sandbox"
)

// carrier takes letters as its function says.
type carrier func(ctx context.Context, l sandbox.Letter) sandbox.LetterOutcome

func (c carrier) Carry(ctx context.Context, l sandbox.Letter) sandbox.LetterOutcome { return c(ctx, l) }

// Of letters to addresses of their own one that is not taken holds up none, and is
// tried again by itself, until it is taken or given up.
func TestCourier(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	var mu sync.Mutex
	tries, news := map[string]int{}, make(chan struct{}, 1000)
	hang := make(chan struct{})
	c := carrier(func(_ context.Context, l sandbox.Letter) sandbox.LetterOutcome {
		mu.Lock()
		tries[string(l.Body)]++
		n := tries[string(l.Body)]
		mu.Unlock()
		news <- struct{}{}
		switch {
		case string(l.Body) == "hangs":
			<-hang
		case string(l.Body) == "fails" && n < 3:
			return sandbox.LetterOutcome{Next: time.Now()}
		case string(l.Body) == "is about nothing":
			return sandbox.LetterOutcome{Beside: sandbox.Transaction{While: sandbox.NewID()}}
		}
		return sandbox.LetterOutcome{}
	})
	o, err := outbox.New(outbox.Config{Store: store, Couriers: map[string]outbox.Courier{"c": c}})
	if err != nil {
		t.Fatal(err)
	}
	var change sandbox.Transaction
	for _, body := range []string{"hangs", "fails", "is about nothing", "passes"} {
		change.PostLetters = append(change.PostLetters, sandbox.Letter{To: "c", Body: []byte(body), Posted: time.Now()})
	}
	if err := store.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	o.Posted()
	late := time.After(time.Minute)
	for done := false; !done; {
		select {
		case <-news:
		case <-late:
			t.Fatalf("tried %v", tries)
		}
		mu.Lock()
		done = tries["fails"] == 3 && tries["passes"] == 1 && tries["is about nothing"] == 1
		mu.Unlock()
	}
	close(hang)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := store.TakeLetters(t.Context(), "c", time.Now().Add(time.Hour), time.Now(), 10); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
	if tries["hangs"] != 1 || tries["fails"] != 3 {
		t.Errorf("tried %v", tries)
	}
}

// A poster follows no redirect, says how it was answered without what may be secret
// in the address, and reaches no network that it may not.
func TestPoster(t *testing.T) {
	t.Parallel()
	var got []http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
		b, err := io.ReadAll(r.Body)
		if err != nil || string(b) != `{"a":1}` || r.Header.Get("X-Caisson-Signature") != outbox.Sign([]byte("key"), r.Header.Get("X-Caisson-Timestamp"), b) {
			t.Errorf("%q, %v, %v", b, r.Header, err)
		}
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		case "/fails":
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(s.Close)
	open := outbox.NewPoster(outbox.PosterConfig{Private: true})
	strict := outbox.NewPoster(outbox.PosterConfig{Allows: "THIS=1"})
	t.Cleanup(func() { _ = errors.Join(open.Close(), strict.Close()) })
	post := func(p *outbox.Poster, address string) error {
		return p.Post(t.Context(), address, []byte("key"), map[string]string{"X-Own": "1"}, []byte(`{"a":1}`))
	}
	if err := post(open, s.URL); err != nil || got[0].Get("X-Own") != "1" || got[0].Get("Content-Type") != "application/json" {
		t.Errorf("%v, %v", err, got)
	}
	for _, path := range []string{"/redirect", "/fails"} {
		if err := post(open, s.URL+path+"?s3cret"); !errors.Is(err, sandbox.Unavailable) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d requests: a redirect was followed", len(got))
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	for _, address := range []string{s.URL, "https://localhost:" + port, "https://[::1]:" + port, "https://0.0.0.0:" + port, "https://169.254.169.254", "https://[::ffff:10.1.2.3]"} {
		if err := post(strict, address); !errors.Is(err, sandbox.Denied) || !strings.Contains(sandbox.HintOf(err), "THIS=1") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"", "example.org", "ftp://example.org", "https://u:s3cret@example.org"} {
		if err := open.Check(address); !errors.Is(err, sandbox.Invalid) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if len(got) != 3 {
		t.Error("an address that is not allowed was reached")
	}
}
