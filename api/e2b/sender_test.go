package e2b

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// flushes is what was answered by the time of each flush.
type flushes struct {
	*httptest.ResponseRecorder
	seen []string
}

func (f *flushes) Flush() { f.seen = append(f.seen, f.Body.String()) }

// TestLastMessage: what is said goes out at once, but for the last message, which goes
// out with the end of the answer.
func TestLastMessage(t *testing.T) {
	t.Parallel()
	s := server(t, &double{views: []sandbox.SessionView{view("", "i1", 0, time.Hour, nil)}})
	type word struct{ Word string }
	streams(s, "process.Process/Test", func(_ context.Context, _ http.Header, _ *struct{}, to *sender[word]) error {
		if err := to.send(&word{"first"}); err != nil {
			return err
		}
		return to.end(&word{"last"})
	})
	w := &flushes{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/process.Process/Test", strings.NewReader("\x00\x00\x00\x00\x02{}"))
	r.Header.Set(sandboxHeader, "i1")
	r.Header.Set("Content-Type", "application/connect+json")
	s.ServeHTTP(w, r)
	if len(w.seen) == 0 || !strings.Contains(w.seen[len(w.seen)-1], "first") {
		t.Errorf("what is said waits: %q", w.seen)
	}
	for _, seen := range w.seen {
		if strings.Contains(seen, "last") {
			t.Errorf("the last message goes out by itself: %q", seen)
		}
	}
	if !strings.Contains(w.Body.String(), "last") {
		t.Errorf("the answer is %q", w.Body)
	}
}
