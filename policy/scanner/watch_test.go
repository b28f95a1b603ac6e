package scanner

import (
	"testing"
	"time"
)

// A scan is over once it has had its time of a processor: not while it waits for
// one, but at once where it waits for something else.
func TestSpent(t *testing.T) {
	const within = time.Second
	at := func(d time.Duration, busy bool) usage { return usage{d, busy} }
	for name, tt := range map[string]struct {
		last, now usage
		want      bool
	}{
		"had its time":             {at(0, true), at(1000*time.Millisecond, true), true},
		"waits for a processor":    {at(900*time.Millisecond, true), at(900*time.Millisecond, true), false},
		"slow":                     {at(500*time.Millisecond, true), at(700*time.Millisecond, true), false},
		"sleeps":                   {at(900*time.Millisecond, false), at(900*time.Millisecond, false), true},
		"sleeps, and did not just": {at(800*time.Millisecond, true), at(900*time.Millisecond, false), false},
		"first look":               {at(-1, false), at(0, false), false},
		"ended":                    {at(-time.Second, false), at(-time.Second, false), true},
	} {
		if got := spent(tt.last, tt.now, within); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
