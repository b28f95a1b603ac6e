package executions

import "context"

// Prune forgets what has expired.
func (b *Book) Prune(ctx context.Context) { b.prune(ctx) }
