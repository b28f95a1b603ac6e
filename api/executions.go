package api

import (
	"context"
	"io"

	"github.com/caisson-dev/caisson/sandbox"
)

// Executions are runs that are carried out while nobody waits for them.
type Executions interface {
	// SubmitExecution remembers one and returns at once; from then on it is not
	// lost. Of local it takes the contents of files. Errors: Invalid, Denied for the
	// callback's address, Exhausted where the queue is full.
	SubmitExecution(ctx context.Context, opts sandbox.ExecutionOptions, local sandbox.Local) (sandbox.Execution, error)
	// Execution returns one with its run and its result. While it is not over, and
	// wait is not, it waits for its end. Errors: NotFound.
	Execution(ctx context.Context, id sandbox.ID, wait sandbox.Duration) (sandbox.Execution, error)
	// Executions returns those that a filter selects, the newest first, without
	// their runs and results.
	Executions(ctx context.Context, filter sandbox.ExecutionFilter) ([]sandbox.Execution, error)
	// CancelExecution ends one: at once where it is queued, and soon where it runs.
	// Errors: NotFound, Conflict for one that has ended otherwise.
	CancelExecution(ctx context.Context, id sandbox.ID) (sandbox.Execution, error)
	// ExecutionArtifact writes the content of an artifact, by its path in the
	// result, and returns its size. Errors: NotFound, and those of w.
	ExecutionArtifact(ctx context.Context, id sandbox.ID, path string, w io.Writer) (int64, error)
}

// DeadLetters are callbacks that nobody took.
type DeadLetters interface {
	// DeadLetters returns those that a filter selects, of the newest executions first.
	DeadLetters(ctx context.Context, filter sandbox.DeadLetterFilter) ([]sandbox.DeadLetter, error)
	// ResendDeadLetter has that of an execution sent again. Errors: NotFound,
	// Conflict for one that is not dead.
	ResendDeadLetter(ctx context.Context, execution sandbox.ID) (sandbox.DeadLetter, error)
}
