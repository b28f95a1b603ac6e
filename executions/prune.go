package executions

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

const (
	// prunePause is how often what has expired is forgotten.
	prunePause = time.Minute
	// smallStep is by how much the clock may be set without being noticed.
	smallStep = time.Minute
)

// clock compares the clock that is kept with one that nobody can set.
type clock struct {
	wall time.Time // as it was last
	mono time.Time
}

func (b *Book) newClock() *clock { return &clock{wall: b.now().Round(0), mono: time.Now()} }

// step is by how much the clock was set since the last look.
func (c *clock) step(wall time.Time) time.Duration {
	mono := time.Now()
	step := wall.Round(0).Sub(c.wall) - mono.Sub(c.mono)
	c.wall, c.mono = wall.Round(0), mono
	if step.Abs() < smallStep {
		return 0
	}
	return step
}

// follow has what was to last or to wait for a time do so where the clock was set.
func (b *Book) follow(ctx context.Context, c *clock) {
	step := c.step(b.now())
	if step == 0 {
		return
	}
	if err := b.cfg.Store.Apply(ctx, sandbox.Transaction{Shift: step}); err != nil {
		c.wall = c.wall.Add(-step) // it is seen once more
		if ctx.Err() == nil {
			b.cfg.Log.Warn("the clock was set, and what waits cannot follow it", "by", step, "error", err)
		}
	}
}

// prune forgets executions that have expired, and what is kept of those that are
// gone.
func (b *Book) prune(ctx context.Context, c *clock) {
	b.follow(ctx, c)
	err := b.cfg.Store.Apply(ctx, sandbox.Transaction{ForgetExecutions: c.wall})
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
