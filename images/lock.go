package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// lockPoll is how often a waiter tries again. flock has no waiting call that a
// context can end.
const lockPoll = 50 * time.Millisecond

// lock takes an exclusive lock that goroutines and processes share, and waits
// for it as long as ctx allows. The kernel drops it when its holder dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, diskError(err, "make the state folder")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, diskError(err, "open a lock")
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing drops the lock
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, sandbox.Errorf(sandbox.Internal, "lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, waitError(ctx, "wait for another assembly")
		case <-time.After(lockPoll):
		}
	}
}

// waitError says that ctx ended during a step. A cancellation stays what it
// is: it is the caller's own doing.
func waitError(ctx context.Context, doing string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return sandbox.Errorf(sandbox.TimedOut, "%s: %w", doing, ctx.Err())
	}
	return fmt.Errorf("%s: %w", doing, ctx.Err())
}
