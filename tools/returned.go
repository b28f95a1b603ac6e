package tools

import (
	"encoding/json"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// drivers are the modules that run a program which is to return a value, by language.
var drivers = map[string]string{"python": "caisson_program.py", "node": "program.cjs"}

// Driver is the file, of those that [Set.Modules] has, by which an interpreter of a
// language runs the program that is named behind it, and has its value returned.
// Errors: Unsupported.
func Driver(language string) (string, error) {
	base, _, _ := strings.Cut(language, "@")
	if d, ok := drivers[base]; ok {
		return d, nil
	}
	return "", sandbox.Errorf(sandbox.Unsupported, "programs of %s return no value", language).
		WithHint("leave out program (--program), or write it in Python or Node")
}

// mostTraceback bounds that of a program's error.
const mostTraceback = 64 << 10

// returned is what a program has handed back so far.
type returned struct {
	times int
	last  sandbox.ProgramResult
}

// returns takes what the program hands back. Errors: Invalid, Exhausted for too large a
// value, in whose place an error may come, and Conflict for all but the first.
func (w *Way) returns(value json.RawMessage, raised *sandbox.ProgramError) error {
	if !w.cfg.Program {
		return sandbox.Errorf(sandbox.Invalid, "the run is not to return a value").WithHint("run it as a program (--program)")
	}
	if len(value) > int(sandbox.MaxProgramValue) {
		return sandbox.Errorf(sandbox.Exhausted, "the program returned %s, of at most %s", sandbox.Bytes(len(value)).Human(), sandbox.MaxProgramValue.Human()).
			WithHint("write it to a file below artifacts/")
	}
	if raised != nil {
		value = nil
		raised = &sandbox.ProgramError{Kind: cut(raised.Kind), Message: shortened(raised.Message), Traceback: tail(raised.Traceback, mostTraceback)}
	} else {
		canonical, _, err := decoded(value)
		if err != nil {
			return sandbox.Errorf(sandbox.Invalid, "what the program returned is not JSON: %s", shortened(err.Error()))
		}
		value = canonical
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.returned.times++
	if w.returned.times > 1 {
		w.returned.last = sandbox.ProgramResult{Error: &sandbox.ProgramError{Kind: sandbox.Conflict.String(), Message: "more than one value was returned: which one is the program's is not known"}}
		return sandbox.Errorf(sandbox.Conflict, "a value has been returned before")
	}
	w.returned.last = sandbox.ProgramResult{Value: value, Error: raised}
	return nil
}

// Returned is what the program has returned, nothing where it has not.
func (w *Way) Returned() sandbox.ProgramResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.returned.last
}

// tail keeps the end of a text, which of a traceback says most.
func tail(text string, most int) string {
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}
