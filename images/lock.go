package images

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/sandbox"
)

// lock takes an exclusive lock that goroutines and processes share, and waits
// for it as long as ctx allows.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	unlock, err = filelock.Lock(ctx, path)
	if err != nil && ctx.Err() != nil {
		return nil, waitError(ctx, "wait for another assembly")
	}
	return unlock, err
}

// waitError says that ctx ended during a step. A cancellation stays what it
// is: it is the caller's own doing.
func waitError(ctx context.Context, doing string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return sandbox.Errorf(sandbox.TimedOut, "%s: %w", doing, ctx.Err())
	}
	return fmt.Errorf("%s: %w", doing, ctx.Err())
}
