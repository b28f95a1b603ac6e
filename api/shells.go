package api

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// Shells are shells in sessions, by name: what one text leaves in them (folder,
// variables, functions, jobs) the next one finds. They end with their sandbox.
type Shells interface {
	// OpenShell opens one. name "" makes one up. Errors: Conflict where the name is
	// taken, and those of an exec.
	OpenShell(ctx context.Context, session, name string, opts sandbox.ShellOptions) (sandbox.Shell, error)
	// RunShell runs a text in one, which is an exec in all else: judged, limited,
	// recorded. It runs one at a time: another is a Conflict. A text that ends the shell
	// is a Result that says so. Errors: NotFound, and those of an exec.
	RunShell(ctx context.Context, session, name string, run sandbox.ShellRun, streams sandbox.Streams) (sandbox.Result, error)
	// CloseShell ends one with everything that it started. Errors: NotFound.
	CloseShell(ctx context.Context, session, name string) error
	// ListShells returns those that are open, the oldest first. Errors: NotFound for
	// the session.
	ListShells(ctx context.Context, session string) ([]sandbox.Shell, error)
}
