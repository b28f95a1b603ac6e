package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/filelock"
)

// TestRemoved lets holders remove the lock's file while others wait for it.
// There is one holder at a time, and at the end no file.
func TestRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks", "one")
	var mu sync.Mutex
	holders, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		holders += n
		most = max(most, holders)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				unlock, err := filelock.Lock(t.Context(), path)
				if err != nil {
					t.Errorf("lock: %v", err)
					return
				}
				count(1)
				time.Sleep(100 * time.Microsecond)
				count(-1)
				if err := filelock.Remove(path); err != nil {
					t.Errorf("remove: %v", err)
				}
				unlock()
			}
		})
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d held it at once", most)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file: %v", err)
	}
}

// TestPatience checks that a waiter gives up with its context.
func TestPatience(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "one")
	unlock, err := filelock.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := filelock.Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waited for a lock that is held: %v", err)
	}
}
