package testloop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/batch"
	"github.com/caisson-dev/caisson/sandbox"
)

// Exercise is one line of a batch: a solution, and tests or cases to judge it by.
type Exercise struct {
	ID       Name  `json:"id,omitempty"`
	Solution Texts `json:"solution"`
	Tests    Texts `json:"tests,omitempty"`
	// Runner runs Tests, by Command where it is none of ours. "" leaves it to who
	// judges.
	Runner  Reporting `json:"runner,omitempty"`
	Command []string  `json:"command,omitempty"`
	// Cases are given in the place of Tests; the fields from Main to First are
	// theirs, as [CaseSuite] has them.
	Cases     []Case     `json:"cases,omitempty"`
	Language  string     `json:"language,omitempty"` // "" is python
	Main      string     `json:"main,omitempty"`
	Function  string     `json:"function,omitempty"`
	Compare   Comparison `json:"compare,omitempty"`
	Tolerance float64    `json:"tolerance,omitempty"`
	First     bool       `json:"first_failure,omitempty"`
	// Limits bound its sandbox, TestTimeout each test, Timeout all of them. Zero
	// fields leave it to who judges.
	Limits      sandbox.Limits   `json:"limits,omitzero"`
	TestTimeout sandbox.Duration `json:"test_timeout_ms,omitempty"`
	Timeout     sandbox.Duration `json:"timeout_ms,omitempty"`
}

// Name is the id of a line.
type Name = batch.Name

// Texts are files by their names. A text alone is the file "".
type Texts map[string]string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Texts) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*t = Texts{"": text}
		return nil
	}
	return json.Unmarshal(b, (*map[string]string)(t))
}

// files are those texts, with a name for one that has none.
func (t Texts) files(name string) ([]sandbox.File, error) {
	named := map[string]string{}
	for file, text := range t {
		if file == "" {
			file = name
		}
		if !inside(file) {
			return nil, sandbox.Errorf(sandbox.Invalid, "a file %q", file).WithHint("name paths inside the solution, or the tests")
		}
		named[file] = text
	}
	return filesOf(named), nil
}

// inside reports whether a name is a path in a folder, as short as it can be.
func inside(name string) bool {
	return name != "" && !path.IsAbs(name) && path.Clean(name) == name && name != "." && name != ".." && !strings.HasPrefix(name, "../")
}

// suffixes name a solution that is a text alone.
var suffixes = map[string]string{"python": ".py", "node": ".js", "shell": ".sh"}

// Judge runs an exercise by exec. What the exercise leaves open is like's, and
// the checker, if any, that of all. Errors: those of [Run] and [Cases], Invalid
// for an exercise that cannot be meant.
func (e Exercise) Judge(ctx context.Context, exec Exec, like CaseSuite, suite Suite) (Result, error) {
	if err := e.check(); err != nil {
		return Result{}, err
	}
	language, _, _ := strings.Cut(cmp.Or(e.Language, "python"), "@")
	suffix := suffixes[language]
	if suffix == "" && len(suite.Runner.Suffixes) > 0 {
		suffix = suite.Runner.Suffixes[0]
	}
	solution, err := e.Solution.files(cmp.Or(e.Main, "solution"+suffix))
	if err != nil {
		return Result{}, err
	}
	suite.TestTimeout = cmp.Or(time.Duration(e.TestTimeout), suite.TestTimeout)
	suite.Timeout = cmp.Or(time.Duration(e.Timeout), suite.Timeout)
	suite.Run.Language, suite.Solution = cmp.Or(e.Language, "python"), solution
	if e.Cases == nil {
		if e.Runner != "" {
			suite.Runner = Runner{Report: e.Runner, Command: e.Command}
		}
		if suite.Runner.Ours() && language != "python" {
			return Result{}, sandbox.Errorf(sandbox.Unsupported, "%s has no tests of %s", cmp.Or(suite.Runner.Report, ByPytest), language).
				WithHint(`give "runner" and "command", or "cases", which any language has`)
		}
		if suite.Tests, err = e.Tests.files("test_solution" + suffix); err != nil {
			return Result{}, err
		}
		return Run(ctx, exec, suite)
	}
	like.Solution, like.Cases, like.Run, like.CaseTimeout, like.Timeout = solution, e.Cases, suite.Run, suite.TestTimeout, suite.Timeout
	like.Main, like.Function = cmp.Or(e.Main, like.Main), cmp.Or(e.Function, like.Function)
	like.Compare, like.Tolerance = cmp.Or(e.Compare, like.Compare), cmp.Or(e.Tolerance, like.Tolerance)
	like.First = e.First || like.First
	return Cases(ctx, exec, like)
}

func (e Exercise) check() error {
	switch {
	case len(e.Solution) == 0:
		return sandbox.Errorf(sandbox.Invalid, "no solution").WithHint(`give "solution": a text, or {name: text}`)
	case (len(e.Tests) == 0) == (len(e.Cases) == 0):
		return sandbox.Errorf(sandbox.Invalid, "exactly one of tests and cases is needed").WithHint(`give "tests", or "cases" for inputs and outputs`)
	case len(e.Command) > 0 && e.Runner == "":
		return sandbox.Errorf(sandbox.Invalid, "a command, and nothing says what it reports").WithHint(`give "runner": tap, junit or exit`)
	case e.TestTimeout < 0 || e.Timeout < 0:
		return sandbox.Errorf(sandbox.Invalid, "a time limit below nothing").WithHint("times are in milliseconds")
	}
	return e.Limits.WithDefaults().Check()
}

// Judged is one line of what comes of a batch.
type Judged struct {
	ID     Name
	Result Result
	// Failed says why there is no result: the exercise cannot be meant, policy
	// refused it, or caisson could not run it. nil where there is one.
	Failed error
}

// Failure is an error as lines of a batch have it.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// MarshalJSON writes the Result's fields beside the id, or the error.
func (j Judged) MarshalJSON() ([]byte, error) {
	if j.Failed == nil {
		return json.Marshal(struct {
			ID Name `json:"id"`
			resultJSON
		}{j.ID, j.Result.json()})
	}
	f := Failure{Kind: sandbox.KindOf(j.Failed).String(), Message: j.Failed.Error(), Hint: sandbox.HintOf(j.Failed)}
	line := struct {
		ID        Name              `json:"id"`
		AllPassed bool              `json:"all_passed"` // never
		Error     Failure           `json:"error"`
		Decision  *sandbox.Decision `json:"decision,omitempty"`
	}{ID: j.ID, Error: f}
	if denied, ok := errors.AsType[*sandbox.DeniedError](j.Failed); ok {
		line.Decision = &denied.Decision
	}
	return json.Marshal(line)
}

// Batch judges many exercises, some at once.
type Batch struct {
	// Workers bounds how many are judged at once. It is at least 1.
	Workers int
	// Judge judges one. It is called by several goroutines, and must have each
	// exercise run where no other does.
	Judge func(ctx context.Context, e Exercise) (Result, error)
	// Skip says which exercises are not judged. nil is none.
	Skip func(id Name) bool
}

// Run judges the exercises of lines and hands each to done as it ends, one at a
// time. An exercise that fails costs no other. Errors: those of [batch.Batch.Run].
func (b Batch) Run(ctx context.Context, lines iter.Seq2[[]byte, error], done func(Judged) error) error {
	all := batch.Batch[Exercise, Result]{Workers: b.Workers, Read: readExercise, Do: b.Judge, Skip: b.Skip}
	return all.Run(ctx, lines, func(d batch.Done[Result]) error {
		return done(Judged{ID: d.Name, Result: d.Out, Failed: d.Err})
	})
}

// readExercise reads a line. Errors: Invalid.
func readExercise(line []byte) (Name, Exercise, error) {
	var e Exercise
	if err := batch.Decode(line, &e); err != nil {
		return e.ID, e, sandbox.Errorf(sandbox.Invalid, "the line is no problem: %w", err).
			WithHint(`write one JSON object a line: {"id", "solution", "tests" or "cases", …}`)
	}
	if e.ID == "" {
		return "", e, sandbox.Errorf(sandbox.Invalid, "the problem has no id").WithHint(`give it "id": a text or a number`)
	}
	return e.ID, e, nil
}
