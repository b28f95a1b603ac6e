// Package api is what caisson does for its users, as one interface: the
// command line and every server speak it, in process or over a wire. It holds
// no logic and knows no implementation.
package api

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Service is caisson. Its methods are safe for concurrent use. Errors are of
// the kinds of package sandbox.
type Service interface {
	Sessions
	Audit
	Approvals
	Changes
	Doctor
	Images
	// Run runs one exec in a sandbox of its own. A program that ran and failed
	// is a Result; so is, beside a [sandbox.DeniedError], one that was refused.
	Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
	// Sweep removes what dead processes left behind.
	Sweep(ctx context.Context, opts SweepOptions) ([]Orphan, error)
}

// SweepOptions say what a sweep may do. The zero value removes everything but
// what was kept on purpose.
type SweepOptions struct {
	DryRun bool `json:"dry_run"`
	Kept   bool `json:"kept"` // also what was kept on purpose
}

// Orphan is something that caisson made and whose owner is gone.
type Orphan struct {
	Kind    string     `json:"kind"` // sandbox, volume, folder
	ID      sandbox.ID `json:"id"`
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Removed bool       `json:"removed"`
	Error   string     `json:"error,omitempty"`
}
