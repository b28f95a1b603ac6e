// Package filelock takes locks that goroutines and processes share, and that
// the kernel drops when their holder dies. A lock protects nothing by itself:
// those who agree on its path do.
package filelock

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

// A waiter tries again after these pauses, from the first to the last, doubled
// each time: flock has no waiting call that a context can end.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Lock takes the exclusive lock at path, whose folder it makes, and waits for
// it as long as ctx allows. unlock is to be called once. Errors: the context's,
// Denied and Exhausted for a folder that cannot be written, Internal.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, classed(err, "make the folder of a lock")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, classed(err, "open a lock")
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			if stands(f, path) {
				return func() { _ = f.Close() }, nil // closing drops the lock
			}
			// Its last holder removed it while we waited.
			_ = f.Close()
			return Lock(ctx, path)
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, sandbox.Errorf(sandbox.Internal, "lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for %s: %w", filepath.Base(path), ctx.Err())
		case <-time.After(pause):
		}
	}
}

// stands reports whether a file is still the one at path.
func stands(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// Remove removes the file of a lock that the caller holds. Who waits for it
// takes a new one.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return classed(err, "remove a lock")
	}
	return nil
}

func classed(err error, doing string) error {
	kind := sandbox.Internal
	switch {
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		kind = sandbox.Denied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = sandbox.Exhausted
	}
	return sandbox.Errorf(kind, "%s: %w", doing, err).WithHint("set CAISSON_STATE_DIR to a folder of yours with room")
}

// Try takes the lock at path if nobody holds it, and waits for nobody. unlock is to
// be called once, where ok. Errors: those of [Lock].
func Try(path string) (unlock func(), ok bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Lock tries once before it looks
	unlock, err = Lock(ctx, path)
	if errors.Is(err, context.Canceled) {
		return nil, false, nil
	}
	return unlock, err == nil, err
}
