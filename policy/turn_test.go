package policy

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Rules end with their time of a processor, many times as much by the clock, or
// with who waits for them.
func TestOwnTurn(t *testing.T) {
	const d = 50 * time.Millisecond
	ctx, stop := ownTurn(t.Context(), d)
	begun, used := time.Now(), threadClock()
	for ctx.Err() == nil && time.Since(begun) < time.Minute {
		continue
	}
	starved := time.Since(begun) >= facts.Patience*d*9/10
	if had := used(); ctx.Err() == nil || runtime.GOOS == "linux" && had < d*8/10 && !starved {
		t.Errorf("ended (%v) with %s of a processor", ctx.Err(), had)
	}
	stop()

	ended, cancel := context.WithCancel(t.Context())
	ctx, stop = ownTurn(ended, time.Hour)
	cancel()
	if ctx.Err() == nil {
		t.Error("it outlives its caller's context")
	}
	stop()
}
