package sandbox

import (
	"regexp"
	"time"
)

// ShellKind is what a shell is.
type ShellKind string

// The kinds of shell.
const (
	ShellAny    ShellKind = "shell" // bash where the image has one, else sh
	ShellBash   ShellKind = "bash"
	ShellSh     ShellKind = "sh"
	ShellPython ShellKind = "python" // its state stays, as at a prompt
)

// Language is that of the texts that it runs.
func (k ShellKind) Language() string {
	if k == ShellPython {
		return "python"
	}
	return "shell"
}

// Check reports a kind that there is not. Errors: Invalid.
func (k ShellKind) Check() error {
	switch k {
	case "", ShellAny, ShellBash, ShellSh, ShellPython:
		return nil
	}
	return Errorf(Invalid, "unknown kind of shell %q", k).WithHint("kinds are shell, bash, sh and python")
}

// ShellOptions ask for a shell in a session.
type ShellOptions struct {
	// Kind is [ShellAny] where it is "": of a sandbox of Python too.
	Kind ShellKind `json:"kind,omitempty"`
	// Language chooses the session's sandbox. "" is the session's own language, and for
	// a Python shell in a session that has none Python.
	Language string      `json:"language,omitempty"`
	Env      []string    `json:"env,omitempty"` // KEY=VALUE, above the session's
	Dir      string      `json:"dir,omitempty"` // "" is the workspace
	Labels   Labels      `json:"labels,omitempty"`
	Approve  ApproveMode `json:"approve,omitempty"`
}

// Shell is one that is open in a session.
type Shell struct {
	Name    string    `json:"name"`
	Session string    `json:"session"`
	ExecID  ID        `json:"exec_id"` // of its own process
	Kind    ShellKind `json:"kind"`
	Sandbox ID        `json:"sandbox"`
	Opened  time.Time `json:"opened"`
}

// ShellRecord is what an [ExecRecord] that is a shell's process keeps of it.
type ShellRecord struct {
	Name string    `json:"name"`
	Kind ShellKind `json:"kind"`
	// Env says that it was given variables of its own.
	Env bool `json:"env,omitempty"`
}

// CheckMode says what becomes of a command that fails in a shell.
type CheckMode string

// The modes.
const (
	CheckSilent CheckMode = "silent" // the Result says so, and no more; "" is this
	CheckRaise  CheckMode = "raise"  // it is an error too, beside its Result: see [FailedError]
	CheckIgnore CheckMode = "ignore" // nobody looks at the exit code, which is told as 0
)

// Check reports a mode that there is not. Errors: Invalid.
func (c CheckMode) Check() error {
	switch c {
	case "", CheckSilent, CheckRaise, CheckIgnore:
		return nil
	}
	return Errorf(Invalid, "unknown check %q", c).WithHint("checks are raise, ignore and silent")
}

// Expect is an answer to what a command asks while it runs.
type Expect struct {
	// Pattern is a regular expression, of either output, from where the last answer
	// was given on.
	Pattern string `json:"pattern"`
	Reply   string `json:"reply"` // is written to its standard input as it stands
	Once    bool   `json:"once,omitempty"`
}

// ShellRun asks a shell to run a text: any number of commands.
type ShellRun struct {
	Text   string `json:"text"`
	Labels Labels `json:"labels,omitempty"`
	ExecLimits
	Check CheckMode `json:"check,omitempty"`
	// Expect answers what it asks. Its standard input is open until it ends then, and
	// what the caller gives comes first.
	Expect []Expect `json:"expect,omitempty"`
	// Until are patterns, as those of Expect: once either output shows one, the run is
	// handed back and goes on. Its Result has no reason of an end then, and
	// [ShellState].Prompt. It needs somebody who stays: a server, or a Go program.
	Until []string `json:"until,omitempty"`
	// Continue goes on with a run that was handed back: Text is written to its standard
	// input as it stands, unjudged, and its time limit goes on to count.
	Continue bool       `json:"continue,omitempty"`
	Track    ChangeMode `json:"track,omitempty"`
	// Open opens the shell where it is not open.
	Open    *ShellOptions `json:"open,omitempty"`
	Approve ApproveMode   `json:"approve,omitempty"`
}

// Validate reports what is wrong with it. Errors: Invalid.
func (r ShellRun) Validate() error {
	if r.Text == "" {
		return Errorf(Invalid, "no command").WithHint("give the shell a text to run")
	}
	if err := r.Check.Check(); err != nil {
		return err
	}
	for _, e := range r.Expect {
		if _, err := regexp.Compile(e.Pattern); err != nil || e.Pattern == "" {
			return Errorf(Invalid, "expect %q: not a pattern", e.Pattern).WithHint("write a regular expression, such as 'Password: $'")
		}
	}
	for _, pattern := range r.Until {
		if _, err := regexp.Compile(pattern); err != nil || pattern == "" {
			return Errorf(Invalid, "until %q: not a pattern", pattern).WithHint("write a regular expression, such as '>>> $'")
		}
	}
	if len(r.Expect) > 0 && (r.Continue || len(r.Until) > 0) {
		return Errorf(Invalid, "answers are given, and the run is handed back to be answered").WithHint("leave out expect, or until and continue")
	}
	return nil
}

// ShellState is what a [Result] says of the shell that it ran in.
type ShellState struct {
	Name   string `json:"name"`
	Dir    string `json:"dir"` // where it is now
	Opened bool   `json:"opened,omitempty"`
	// Prompt is the pattern at which the run was handed back, which goes on; "" of one
	// that has ended.
	Prompt string `json:"prompt,omitempty"`
	// Ended says why it has ended with this run, "" where it goes on.
	Ended string `json:"ended,omitempty"`
}

// FailedError is a command that failed where [CheckRaise] asked for an error. Its
// kind is Conflict.
type FailedError struct{ Result Result }

// Error says how it ended.
func (e *FailedError) Error() string {
	return Errorf(Conflict, "the command failed with exit code %d (%s)", e.Result.Code, e.Result.Reason).Error()
}

// Unwrap gives its kind.
func (e *FailedError) Unwrap() error { return Conflict }
