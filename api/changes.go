package api

import (
	"context"
	"iter"

	"github.com/caisson-dev/caisson/sandbox"
)

// Changes are what execs did to sessions' workspaces.
type Changes interface {
	// Changes returns the records of a session, the oldest first, once what was
	// touched meanwhile is recorded too. Errors: NotFound.
	Changes(ctx context.Context, session string, opts ChangesOptions) ([]sandbox.ChangeRecord, error)
	// Diff reads the changes of one exec, or with no exec all that differs
	// since the session began.
	Diff(ctx context.Context, session string, opts ChangesOptions) ([]sandbox.FileDiff, error)
	// Undo takes back what an exec changed. Errors: NotFound, and Conflict for
	// what was touched later, for content that was not kept, and while
	// something runs.
	Undo(ctx context.Context, session string, opts UndoOptions) (Undone, error)
	// Feed returns changes of all sessions of this process as they are
	// recorded, until the loop is left or ctx is done.
	Feed(ctx context.Context) iter.Seq[sandbox.ChangeNews]
}

// ChangesOptions select changes.
type ChangesOptions struct {
	Exec  sandbox.ID `json:"exec,omitempty"`  // "" is all of them
	Limit int        `json:"limit,omitempty"` // records, the newest; 0 is all of them
	// Exact walks the workspace first, whatever the watches say.
	Exact bool `json:"exact,omitempty"`
	// Recorded asks for what is recorded already, without a look.
	Recorded bool `json:"recorded,omitempty"`
	// Names leaves the texts out of a Diff, which then reads no contents.
	Names bool `json:"names,omitempty"`
}

// UndoOptions say what is taken back.
type UndoOptions struct {
	Exec  sandbox.ID `json:"exec"`            // required
	Since bool       `json:"since,omitempty"` // everything since before it, whoever did it
	Force bool       `json:"force,omitempty"` // also what was touched later; leaves out what was not kept
}

// Undone is what came of an undo, which is an exec of its own in the records.
type Undone struct {
	Record  sandbox.ChangeRecord `json:"record"`
	Skipped []string             `json:"skipped,omitempty"` // old contents that were not kept
}
