// Package wire is what a server of caisson and its client say to each other
// beside the types of package sandbox: the form of errors, pages of lists, and
// the messages of a run that is carried out over a WebSocket. docs/server.md has
// the whole protocol for those who write another client.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Problem is the form of every error that a server answers.
type Problem struct {
	sandbox.Problem
	RequestID string `json:"request_id"`
	// Decision is policy's, of a run that it refused.
	Decision *sandbox.Decision `json:"decision,omitempty"`
	// Result is what came of the call nonetheless, in the form that it has where
	// nothing fails.
	Result json.RawMessage `json:"result,omitempty"`
}

// statuses is the one table from kinds of error to HTTP statuses.
var statuses = map[sandbox.Kind]int{
	sandbox.Internal: http.StatusInternalServerError, sandbox.Invalid: http.StatusBadRequest, sandbox.NotFound: http.StatusNotFound,
	sandbox.Conflict: http.StatusConflict, sandbox.Denied: http.StatusForbidden, sandbox.Exhausted: http.StatusTooManyRequests,
	sandbox.Unsupported: http.StatusNotImplemented, sandbox.Unavailable: http.StatusServiceUnavailable, sandbox.TimedOut: http.StatusGatewayTimeout,
}

// StatusCanceled is the status of a call that its caller gave up, which as a rule
// nobody reads.
const StatusCanceled = 499

// Status is the HTTP status of an error.
func Status(err error) int {
	if errors.Is(err, context.Canceled) {
		return StatusCanceled
	}
	if code, ok := statuses[sandbox.KindOf(err)]; ok {
		return code
	}
	return http.StatusInternalServerError
}

// ProblemOf puts an error into the form of a server's, and with it what came of
// the call nonetheless; nil is nothing.
func ProblemOf(err error, requestID string, result any) Problem {
	p := Problem{Problem: sandbox.ProblemOf(err, Status(err)), RequestID: requestID}
	if denied, ok := errors.AsType[*sandbox.DeniedError](err); ok {
		p.Decision = &denied.Decision
	}
	if result != nil {
		p.Result, _ = json.Marshal(result) // what cannot be written is left out of an error
	}
	return p
}

// Err is the error that a problem tells of: its kind, its hint, and the decision
// that it carries are as they were.
func (p Problem) Err() error {
	if p.Kind == "canceled" {
		return &canceled{p.Message}
	}
	if p.Decision != nil {
		return &sandbox.DeniedError{Decision: *p.Decision}
	}
	kind, ok := sandbox.ParseKind(p.Kind)
	if !ok {
		kind = sandbox.Internal
	}
	return sandbox.Errorf(kind, "%s", p.Message).WithHint("%s", p.Hint)
}

// canceled is a [context.Canceled] that was told in words.
type canceled struct{ message string }

// Error implements error.
func (c *canceled) Error() string { return c.message }

// Is reports whether target is [context.Canceled].
func (c *canceled) Is(target error) bool { return target == context.Canceled }

// Page is one page of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// Next is the cursor of the page behind this one; "" is that there is none.
	Next string `json:"next"`
}

// RetryAfter is what an error implements that knows when its call can be tried
// again.
type RetryAfter interface {
	error
	RetryAfter() time.Duration
}

// MaxPage is the largest page of a list, and DefaultPage that of who asks for no
// size.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Input is what is written to an exec's standard input.
type Input struct {
	Data   string `json:"data,omitempty"`
	Base64 []byte `json:"data_base64,omitempty"` // in the place of Data
	End    bool   `json:"end,omitempty"`         // close it behind that
}

// Bytes are what is written.
func (i Input) Bytes() []byte {
	if i.Base64 != nil {
		return i.Base64
	}
	return []byte(i.Data)
}

// Taken says how much was taken of what was written.
type Taken struct {
	Bytes int64 `json:"bytes"`
}

// Names of events that end a stream, and of those that carry output.
const (
	EventEnd    = "end"   // its data is what the stream came to
	EventError  = "error" // its data is a [Problem]
	EventStdout = "stdout"
	EventStderr = "stderr" // their data is an [Output]
)

// Output is a piece of an exec's output.
type Output struct {
	Offset int64   `json:"offset"` // of its first byte, from the exec's start
	Text   *string `json:"data,omitempty"`
	Base64 []byte  `json:"data_base64,omitempty"` // where it is not UTF-8
}

// Bytes are the piece itself.
func (o Output) Bytes() []byte {
	if o.Text != nil {
		return []byte(*o.Text)
	}
	return o.Base64
}

// Names of events that carry what streams yield.
const (
	EventChange   = "change"
	EventAlert    = "alert"
	EventFile     = "file"
	EventProgress = "progress"
)

// Trailers of an answer in bytes: what came of it in JSON, and the [Problem] that
// cut it short.
const (
	TrailerResult  = "Caisson-Result"
	TrailerProblem = "Caisson-Problem"
)
