package sandbox

import (
	"context"
	"errors"
)

// Problem is an error in the form that other programs read: what --json prints
// where there is no result, and what a server answers.
type Problem struct {
	// Code is the exit code of a command, and the HTTP status of a server.
	Code int `json:"code"`
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
