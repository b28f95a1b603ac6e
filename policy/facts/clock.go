package facts

import (
	"context"
	"time"
)

// Patience is how much longer than its time a scan, its scanner's start or the
// rules may take where others keep the processors busy: as much as that all
// three still end well on a machine that gives a tenth of what it has.
const Patience = 12

// Within ends ctx once work has had a processor for d, as used tells, which is
// called from another goroutine, or [Patience] times as long by the clock.
// cancel releases what it takes.
func Within(ctx context.Context, d time.Duration, used func() time.Duration) (bounded context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithTimeout(ctx, Patience*d)
	go func() {
		for left := d; left > 0; left = d - used() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(left, time.Millisecond)):
			}
		}
		cancel()
	}()
	return ctx, cancel
}
