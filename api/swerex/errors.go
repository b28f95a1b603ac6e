package swerex

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caisson-dev/caisson/internal/fastapi"
	"github.com/caisson-dev/caisson/sandbox"
)

// statusRaised is the status of an exception that travels.
const statusRaised = 511

// Exceptions that clients know, by their paths in Python.
const (
	anyError        = "swerex.exceptions.SwerexException"
	nonZero         = "swerex.exceptions.NonZeroExitCodeError"
	wrongSyntax     = "swerex.exceptions.BashIncorrectSyntaxError"
	commandTimeout  = "swerex.exceptions.CommandTimeoutError"
	sessionExists   = "swerex.exceptions.SessionExistsError"
	noSession       = "swerex.exceptions.SessionDoesNotExistError"
	shellEnded      = "pexpect.exceptions.EOF"
	fileNotFound    = "builtins.FileNotFoundError"
	isADirectory    = "builtins.IsADirectoryError"
	unknownEncoding = "builtins.LookupError"
)

// raised is an exception of the client's side.
type raised struct {
	class, message string
	extra          map[string]any
}

// Error implements error.
func (r *raised) Error() string { return r.message }

// raise makes one.
func raise(class, format string, args ...any) error {
	return &raised{class: class, message: fmt.Sprintf(format, args...)}
}

// fail answers with an error as an exception: clients raise it as their own. One that
// was refused tells its rules.
func fail(w http.ResponseWriter, err error) {
	r, ok := errors.AsType[*raised](err)
	if !ok {
		r = &raised{class: anyError, message: fastapi.Explain(err), extra: map[string]any{"kind": sandbox.KindOf(err).String()}}
		if denied, is := errors.AsType[*sandbox.DeniedError](err); is {
			rules := []string{}
			for _, f := range denied.Decision.Findings {
				rules = append(rules, f.ID)
			}
			r.extra["rules"] = rules
		}
	}
	if r.extra == nil {
		r.extra = map[string]any{}
	}
	fastapi.Write(w, statusRaised, map[string]any{"swerexception": map[string]any{
		"message": r.message, "class_path": r.class, "traceback": "", "extra_info": r.extra,
	}})
}
