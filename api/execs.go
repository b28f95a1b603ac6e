package api

import (
	"context"
	"io"

	"github.com/caisson-dev/caisson/sandbox"
)

// Runner runs what has no session.
type Runner interface {
	// Run runs one exec in a sandbox of its own. A program that ran and failed
	// is a Result; so is, beside a [sandbox.DeniedError], one that was refused.
	Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
}

// Execs run in sessions.
type Execs interface {
	// Exec runs one exec in a session.
	Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
	// StartExec starts one in the background and returns once it runs.
	StartExec(ctx context.Context, session string, run sandbox.Run, local sandbox.Local) (sandbox.ExecRecord, error)
	// ListExecs returns the execs that a filter selects, the newest first: those that
	// run, and those in the background that have ended.
	ListExecs(ctx context.Context, filter sandbox.ExecFilter) ([]sandbox.ExecRecord, error)
	// Processes lists the execs of a session as its sandboxes know them.
	Processes(ctx context.Context, session string) ([]Process, error)
}

// ExecControl is what can be done with an exec of a session, by its id and from
// any process. Errors: NotFound.
type ExecControl interface {
	// AttachExec copies what an exec has put out, from offsets on. Who reads takes
	// nothing away from others, and who stops reading ends nothing. A nil writer
	// discards. Of what runs in the background the newest half mebibyte of each
	// stream is kept; of others, what their own caller has not read.
	AttachExec(ctx context.Context, session string, id sandbox.ID, opts sandbox.AttachOptions, stdout, stderr io.Writer) (sandbox.Attached, error)
	// InputExec writes to the standard input of an exec that was started with
	// [sandbox.Run].Input, and with end closes it behind that. It waits while the
	// process does not read, until ctx is done, and returns how much that one was
	// given. Errors: Conflict where that input is closed or was never open.
	InputExec(ctx context.Context, session string, id sandbox.ID, b []byte, end bool) (int, error)
	// SignalExec signals an exec's process, or with all everything it started.
	// Errors: Conflict where it has ended.
	SignalExec(ctx context.Context, session string, id sandbox.ID, signal int, all bool) error
	// KillExec ends an exec and everything that it started.
	KillExec(ctx context.Context, session string, id sandbox.ID) error
	// ResizeExec sets the size of an exec's terminal, in characters. Errors:
	// Conflict where it has none.
	ResizeExec(ctx context.Context, session string, id sandbox.ID, rows, cols uint16) error
}

// Terminals are those of execs that were started with [sandbox.Run].Terminal.
type Terminals interface {
	// AttachTerminal joins the terminal of an exec until that ends, or ctx is done,
	// which ends the look alone. What it has shown last is shown again on Stdout,
	// without what would have a terminal answer, and then what comes; Stdin is typed
	// into it. Any number may watch, with a nil Stdin, and one types. Errors: NotFound,
	// Conflict where the exec has no terminal or somebody else types into it.
	AttachTerminal(ctx context.Context, session string, id sandbox.ID, streams sandbox.Streams) (sandbox.Attached, error)
}

// Process is an exec of a session as its sandbox knows it.
type Process struct {
	ID        sandbox.ID `json:"exec_id"`
	Command   []string   `json:"command"`
	PID       int        `json:"pid"` // in the sandbox
	AgeMS     int64      `json:"age_ms"`
	Running   bool       `json:"running"`
	Processes int        `json:"processes"` // that it started and that live
	Stdout    int64      `json:"stdout_bytes"`
	Stderr    int64      `json:"stderr_bytes"`
	// Starts are the first programs that it started, where that is seen, in the order in
	// which they were, or of one that has ended those that are kept. While it runs, those
	// that have not ended run, and one that waits to be judged has the verdict ask.
	// StartsLeftOut counts the others, StartsUnjudged is as in [sandbox.Result].
	Starts         []sandbox.Start `json:"starts,omitempty"`
	StartsLeftOut  int             `json:"starts_left_out,omitempty"`
	StartsUnjudged int             `json:"starts_unjudged,omitempty"`
}
