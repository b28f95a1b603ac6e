package policy

import (
	"testing"
	"time"
)

// TestAfter: what a scan took is missing in what its evaluation may take, but
// for half of it.
func TestAfter(t *testing.T) {
	for scan, want := range map[time.Duration]time.Duration{
		0: time.Second, 300 * time.Millisecond: 700 * time.Millisecond, 500 * time.Millisecond: 500 * time.Millisecond, 3 * time.Second: 500 * time.Millisecond,
	} {
		if got := (Config{Timeout: time.Second}).after(scan).Timeout; got != want {
			t.Errorf("after a scan of %v: %v, want %v", scan, got, want)
		}
	}
}
