package executions

import "context"

// Step forgets what has expired, with the clock set meanwhile.
func (b *Book) Step(ctx context.Context, set func()) {
	c := b.newClock()
	set()
	b.prune(ctx, c)
}
