//go:build !linux

package policy

import "time"

// threadClock knows no threads here: it tells the time.
func threadClock() func() time.Duration {
	begun := time.Now()
	return func() time.Duration { return time.Since(begun) }
}
