package api

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// Functions are handlers in the convention of AWS Lambda, kept by name. Each owner
// has its own. What shows one has the names of its environment without their values.
type Functions interface {
	// PutFunction keeps a function, or its next version, which calls that begin
	// later have. Errors: Invalid, Conflict where others put it at the same time.
	PutFunction(ctx context.Context, opts sandbox.FunctionOptions, local sandbox.Local) (sandbox.Function, error)
	// Function returns one. Errors: NotFound.
	Function(ctx context.Context, name string) (sandbox.Function, error)
	// Functions returns those that a filter selects, by name.
	Functions(ctx context.Context, filter sandbox.FunctionFilter) ([]sandbox.Function, error)
	// RemoveFunction forgets one, with its sandboxes. Calls that run go on. Errors:
	// NotFound.
	RemoveFunction(ctx context.Context, name string) error
	// InvokeFunction calls one and waits. Whatever the handler does is in the
	// answer. Errors: NotFound, Invalid, Conflict for another version, Exhausted
	// where too many calls wait already, and those of an exec, among them a
	// [sandbox.DeniedError] where policy refuses the code.
	InvokeFunction(ctx context.Context, call sandbox.Invocation, local sandbox.Local) (sandbox.Invoked, error)
}
