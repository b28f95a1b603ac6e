package sandbox

import (
	"context"
	"errors"
)

// Problem is an error in the form that other programs read: what --json prints
// where there is no result, and what a server answers.
type Problem struct {
	// Code is the exit code of a command, and the HTTP status of a server; 0 where
	// it is of one thing among several.
	Code int `json:"code,omitempty"`
	// Kind is a kind's name, such as "not_found", or "canceled".
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint"` // what to do next, or ""
}

// ProblemOf puts an error into that form.
func ProblemOf(err error, code int) Problem {
	p := Problem{Code: code, Kind: KindOf(err).String(), Message: err.Error(), Hint: HintOf(err)}
	if errors.Is(err, context.Canceled) {
		p.Kind = "canceled"
	}
	return p
}

// ProblemOfOne is the form of what happened to one thing among several; nil is that
// nothing did.
func ProblemOfOne(err error) *Problem {
	if err == nil {
		return nil
	}
	return new(ProblemOf(err, 0))
}

// Err is the error that the problem was made of, as far as it tells: its kind, its
// message and its hint.
func (p Problem) Err() error {
	if p.Kind == "canceled" {
		return &Error{Kind: Internal, Err: &canceledError{p.Message}, Hint: p.Hint}
	}
	kind, ok := ParseKind(p.Kind)
	if !ok {
		kind = Internal // of a version that has more kinds
	}
	return &Error{Kind: kind, Err: errors.New(p.Message), Hint: p.Hint}
}

// canceledError is a [context.Canceled] with the words of whoever met it.
type canceledError struct{ message string }

func (e *canceledError) Error() string { return e.message }

// Unwrap makes it known as what it is.
func (e *canceledError) Unwrap() error { return context.Canceled }
