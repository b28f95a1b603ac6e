package api

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Housekeeping is for what is left behind and for what grows.
type Housekeeping interface {
	// Sweep removes what dead processes left behind.
	Sweep(ctx context.Context, opts SweepOptions) ([]Orphan, error)
	// StateSizes tells how much there is of what grows.
	StateSizes(ctx context.Context) ([]sandbox.StateSize, error)
}

// SweepOptions say what a sweep may do. The zero value removes everything but
// what was kept on purpose.
type SweepOptions struct {
	DryRun bool `json:"dry_run,omitempty"`
	Kept   bool `json:"kept,omitempty"` // also what was kept on purpose
}

// Orphan is something that caisson made and whose holder is gone.
type Orphan struct {
	Kind    string     `json:"kind"` // sandbox, volume, folder, changes
	ID      sandbox.ID `json:"id"`
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Removed bool       `json:"removed"`
	Error   string     `json:"error,omitempty"`
}
