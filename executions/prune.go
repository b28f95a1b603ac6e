package executions

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// prunePause is how often what has expired is forgotten.
const prunePause = time.Minute

// prune forgets executions that have expired, and what is kept of those that are
// gone. It keeps the clock's reading, for who starts after the machine was.
func (b *Book) prune(ctx context.Context) {
	now := b.clock()
	err := b.cfg.Store.Apply(ctx, sandbox.Transaction{Clock: now, ForgetExecutions: now.Wall})
	if err == nil {
		err = b.dropShelves(ctx)
	}
	if err != nil && ctx.Err() == nil {
		b.cfg.Log.Warn("executions that have expired cannot be forgotten", "error", err)
	}
}

// dropShelves removes the folders of executions that are gone.
func (b *Book) dropShelves(ctx context.Context) error {
	entries, err := os.ReadDir(b.cfg.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, d := range entries {
		if !sandbox.ID(d.Name()).Valid() {
			continue
		}
		_, gone := b.cfg.Store.Execution(ctx, sandbox.ID(d.Name()))
		if errors.Is(gone, sandbox.NotFound) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(b.cfg.Dir, d.Name())))
		}
	}
	return err
}
