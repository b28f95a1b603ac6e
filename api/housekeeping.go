package api

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// Housekeeping is for what is left behind and for what grows.
type Housekeeping interface {
	// Sweep removes what dead processes left behind.
	Sweep(ctx context.Context, opts SweepOptions) ([]sandbox.Orphan, error)
	// StateSizes tells how much there is of what grows.
	StateSizes(ctx context.Context) ([]sandbox.StateSize, error)
	// PoolShelves says which sandboxes are kept ready. Errors: NotFound where there
	// is no pool.
	PoolShelves(ctx context.Context) ([]sandbox.PoolShelf, error)
}

// SweepOptions say what a sweep may do. The zero value removes everything but
// what was kept on purpose.
type SweepOptions struct {
	DryRun bool `json:"dry_run,omitempty"`
	Kept   bool `json:"kept,omitempty"` // also what was kept on purpose
}
