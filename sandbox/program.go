package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
)

// MaxProgramValue bounds what a program returns, as JSON.
const MaxProgramValue = 8 * MiB

// ProgramResult is what a run with [Run].Program came to. Value and Error are the
// program's own word.
type ProgramResult struct {
	// Success says that it ended by itself with 0, and that no error is told.
	Success bool `json:"success"`
	// Value is what it returned: null where that was nothing.
	Value json.RawMessage `json:"value,omitempty"`
	Error *ProgramError   `json:"error,omitempty"`
}

// ProgramError says why a program has no value.
type ProgramError struct {
	// Kind is the class of an exception, "value" where what it returned is not to be
	// had, "conflict" where more than one value came, and else the exit reason.
	Kind      string `json:"kind"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

// Settled is what a program came to that has ended so.
func (p ProgramResult) Settled(exit Exit) *ProgramResult {
	if p.Error == nil && (exit.Reason != ReasonExited || exit.Code != 0) {
		p.Error = &ProgramError{Kind: string(exit.Reason), Message: fmt.Sprintf("it ended by %s with exit code %d", exit.Reason, exit.Code)}
		if exit.Cause != "" {
			p.Error.Message += ": " + exit.Cause
		}
	}
	if p.Success = p.Error == nil; !p.Success {
		p.Value = nil
	} else if p.Value == nil {
		p.Value = json.RawMessage("null")
	}
	return &p
}

// Report is a run with [Run].Program as agents have it told.
type Report struct {
	ProgramResult
	Output       string     `json:"output"` // standard output; what is no UTF-8 is replaced
	Calls        []ToolCall `json:"calls"`
	CallsLeftOut int        `json:"calls_left_out,omitempty"`
}

// Report tells a result so, also that of a program that was refused.
func (r Result) Report() Report {
	p := r.Program
	if p == nil {
		exit := r.Exit
		if exit.Reason == ReasonDenied && exit.Cause == "" {
			exit.Cause = (&DeniedError{Decision: r.Decision}).Error()
		}
		p = ProgramResult{}.Settled(exit)
	}
	calls := r.Calls
	if calls == nil {
		calls = []ToolCall{}
	}
	return Report{*p, strings.ToValidUTF8(string(r.Stdout), "\uFFFD"), calls, r.CallsLeftOut}
}
