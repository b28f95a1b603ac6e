package sandbox

import (
	"errors"
	"fmt"
)

// Kind classes an error by what a caller can do about it. A Kind is itself an
// error, so that errors.Is(err, sandbox.NotFound) works through any wrapping.
// The zero Kind means "not classed" and is treated as [Internal].
//
// A program that ran and failed is not an error: see [Result].
type Kind int

// The kinds. Each decides one HTTP status and one exit code, in one table each.
const (
	Internal    Kind = iota + 1 // a fault of caisson's own
	Invalid                     // the request is wrong and will stay so
	NotFound                    // what was named does not exist
	Conflict                    // it exists already, or is in a state that forbids this
	Denied                      // policy, a person, or a permission said no
	Exhausted                   // a limit or a resource is used up: disk, memory, queue
	Unsupported                 // this engine, kernel or runtime cannot do it
	Unavailable                 // the engine, the agent or a registry cannot be reached now
	TimedOut                    // caisson's own step took too long (not the program's timeout)
)

var kindNames = [...]string{
	Internal: "internal", Invalid: "invalid", NotFound: "not_found", Conflict: "conflict", Denied: "denied",
	Exhausted: "exhausted", Unsupported: "unsupported", Unavailable: "unavailable", TimedOut: "timed_out",
}

// String is the kind's name on the wire, such as "not_found".
func (k Kind) String() string {
	if k <= 0 || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// Error makes a Kind usable as a target of errors.Is.
func (k Kind) Error() string { return k.String() }

// ParseKind is the inverse of [Kind.String]; it returns false for a name that
// no kind has.
func ParseKind(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name && n != "" {
			return Kind(k), true
		}
	}
	return 0, false
}

// Error is a classed error: Err is the cause for the operator, Hint the next
// step for the user. The zero value is an internal error without a text.
type Error struct {
	Kind Kind
	Err  error
	// Hint is one line that says what to do next and names the command or flag
	// that helps. It may be empty.
	Hint string
}

// Error returns the cause, without the hint.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Kind.String()
	}
	return e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is this error's [Kind].
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Errorf makes an error of a kind. %w wraps as in fmt.Errorf.
func Errorf(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Err: fmt.Errorf(format, args...)}
}

// WithHint returns a copy of e that carries a hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// KindOf returns the kind of the first classed error in err's chain, and
// [Internal] where there is none. For a nil error it returns 0.
func KindOf(err error) Kind {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Kind != 0 {
		return e.Kind
	}
	if k, ok := errors.AsType[Kind](err); ok {
		return k
	}
	return Internal
}

// HintOf returns the first hint in err's chain, or "".
func HintOf(err error) string {
	if d, ok := errors.AsType[*DeniedError](err); ok {
		return d.Hint()
	}
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// DeniedError says that a run was refused, and carries the decision that
// refused it. errors.Is(err, Denied) holds. The Result of such a run has
// [ReasonDenied].
type DeniedError struct {
	Decision Decision
}

// cause is the first finding that asks or denies, or where there is none the first.
func (e *DeniedError) cause() (Finding, bool) {
	for _, f := range e.Decision.Findings {
		if f.Verdict != Allow {
			return f, true
		}
	}
	if len(e.Decision.Findings) > 0 {
		return e.Decision.Findings[0], true
	}
	return Finding{}, false
}

// Error names the finding that refused it, or the verdict where there is none.
func (e *DeniedError) Error() string {
	f, ok := e.cause()
	if !ok {
		return fmt.Sprintf("refused: verdict %s", e.Decision.Verdict)
	}
	text := fmt.Sprintf("refused: verdict %s by rule %s%s: %s", e.Decision.Verdict, f.ID, f.place(), f.Message)
	if e.Decision.Refused != "" {
		text += "; " + e.Decision.Refused
	}
	return text
}

// Hint is what to do next.
func (e *DeniedError) Hint() string {
	f, _ := e.cause()
	return f.Remediation
}

// Is reports whether target is [Denied].
func (e *DeniedError) Is(target error) bool { return target == Denied }

// Unwrap lets [KindOf] see the kind.
func (e *DeniedError) Unwrap() error { return Denied }
