package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestResting gives memory back once, a while after the last request has ended.
func TestResting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		given := 0
		h, stop := resting(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(2 * quiet / 3) }), func() { given++ })
		defer stop()
		check := func(pause time.Duration, want int) {
			t.Helper()
			time.Sleep(pause)
			synctest.Wait()
			if given != want {
				t.Errorf("it gave back %d times, not %d", given, want)
			}
		}
		check(quiet/2, 0)
		for range 3 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			check(quiet/2, 0)
		}
		check(quiet/2, 1)
		check(10*quiet, 1)
	})
}
