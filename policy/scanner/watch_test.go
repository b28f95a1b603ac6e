package scanner

import (
	"testing"
	"time"
)

// What counts against a scan is the time that it had a processor or slept, not
// that in which it waited for one.
func TestSpent(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		last, now usage
		want      time.Duration
	}{
		"works":                   {usage{20 * ms, 15 * ms, true}, usage{40 * ms, 35 * ms, true}, 20 * ms},
		"works on two processors": {usage{20 * ms, 15 * ms, true}, usage{40 * ms, 55 * ms, true}, 20 * ms},
		"waits for a processor":   {usage{20 * ms, 15 * ms, true}, usage{40 * ms, 15 * ms, true}, 0},
		"has a part of one":       {usage{20 * ms, 15 * ms, true}, usage{120 * ms, 18 * ms, true}, 3 * ms},
		"sleeps":                  {usage{20 * ms, 15 * ms, false}, usage{40 * ms, 15 * ms, false}, 20 * ms},
		"slept until now":         {usage{20 * ms, 15 * ms, true}, usage{40 * ms, 16 * ms, false}, 20 * ms},
		"sleeps, looked at late":  {usage{20 * ms, 15 * ms, false}, usage{620 * ms, 15 * ms, false}, 40 * ms},
		"ended":                   {usage{20 * ms, 15 * ms, true}, usage{40 * ms, 0, false}, 20 * ms},
		"ended, said to be busy":  {usage{20 * ms, 15 * ms, true}, usage{40 * ms, 0, true}, 0},
	} {
		if got := spent(tt.last, tt.now); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
