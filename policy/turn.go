package policy

import (
	"context"
	"runtime"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
)

// ownTurn binds the caller to a thread, and ends ctx by what that has had of a
// processor: see [facts.Within]. stop gives both back.
//
// By the clock alone, a machine that is busy with other things would refuse what
// it allows at another time.
func ownTurn(ctx context.Context, d time.Duration) (bounded context.Context, stop func()) {
	runtime.LockOSThread()
	ctx, cancel := facts.Within(ctx, d, threadClock())
	return ctx, func() {
		cancel()
		runtime.UnlockOSThread()
	}
}
