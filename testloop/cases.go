package testloop

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

//go:embed call.py
var callPython string

//go:embed call.cjs
var callNode string

// callers are the programs that call a function of a solution, by language.
var callers = map[string]string{"python": callPython, "node": callNode}

// Case is one input, and what is expected of it. Without a function both are JSON
// strings: standard input, and standard output. With one, Input is the list of its
// arguments and Expected what it returns.
type Case struct {
	ID       string          `json:"id,omitempty"` // "" is its number, from 1
	Input    json.RawMessage `json:"input"`
	Expected json.RawMessage `json:"expected"`
}

// CaseSuite is a solution and the cases to judge it by.
type CaseSuite struct {
	Solution []sandbox.File
	// Main is the file that is run, or that has the function. "" is the only one.
	Main string
	// Function is called, in Python or Node. "" runs Main as a program.
	Function string
	Cases    []Case
	// Compare says when an output is right. "" is [CompareTrimmed], and with a
	// Function [CompareExact].
	Compare Comparison
	// Tolerance is how much numbers may differ by, absolutely or for their size.
	// It is for [CompareFloat]; 0 is 1e-6.
	Tolerance float64
	// Checker, where not nil, says it in the place of Compare.
	Checker *Checker
	// First stops after the first case that does not pass.
	First bool
	// Run is what each run is asked with: its language is required.
	Run sandbox.Run
	// CaseTimeout bounds each case. 0 is [DefaultTestTimeout].
	CaseTimeout time.Duration
	// Timeout bounds all of them: what is left then is not run. 0 is no bound.
	Timeout time.Duration
}

// Checker is a program that judges outputs, in a sandbox that the solution
// never was in.
type Checker struct {
	File sandbox.File
	// Language is that of File.
	Language string
	// Exec must run in a sandbox of its own.
	Exec Exec
}

// Cases runs a solution on each case and compares what it puts out here, where
// it cannot reach. A case that fails, hangs or crashes is in the Result. Errors:
// Invalid, Unsupported for a function in other languages, and those of exec.
func Cases(ctx context.Context, exec Exec, s CaseSuite) (Result, error) {
	started := time.Now()
	s, err := s.check()
	if err != nil {
		return Result{}, err
	}
	r := Result{Trust: TrustOutside}
	for i, c := range s.Cases {
		t := Test{ID: cmp.Or(c.ID, fmt.Sprint(i+1))}
		if left := s.Timeout - time.Since(started); s.Timeout > 0 && left < time.Millisecond {
			t.Outcome, t.Message = Timeout, "not run: the time of all cases was over"
			r.Tests = append(r.Tests, t)
			continue
		} else if s.Timeout > 0 {
			s.CaseTimeout = min(s.CaseTimeout, left)
		}
		res, err := s.one(ctx, exec, c, &t)
		if i == 0 && language(s.Run) == "python" && unread(err) {
			var changed bool
			if s.Solution, changed, err = s.withoutSyntaxErrors(ctx, exec, err); changed {
				res, err = s.one(ctx, exec, c, &t)
			}
		}
		if r.Processes == 0 {
			r.Decision = res.Decision
		}
		r.Processes++
		r.add(res)
		if err != nil {
			return Result{Trust: TrustOutside, Decision: r.Decision}, err
		}
		r.Tests = append(r.Tests, t)
		if s.First && t.Outcome.Bad() {
			break
		}
	}
	r.settle()
	r.AllPassed = r.AllPassed && len(r.Tests) == len(s.Cases)
	r.Duration = time.Since(started)
	return r, nil
}

// language is a run's, without its version.
func language(run sandbox.Run) string {
	name, _, _ := strings.Cut(run.Language, "@")
	return name
}

// withoutSyntaxErrors is the solution as [standIns] makes it, or why it was refused.
func (s CaseSuite) withoutSyntaxErrors(ctx context.Context, exec Exec, refused error) ([]sandbox.File, bool, error) {
	files, changed, err := standIns(ctx, exec, s.Run, s.Solution)
	if err != nil || !changed {
		return s.Solution, false, cmp.Or(err, refused)
	}
	return files, true, nil
}

// check fills what is not set.
func (s CaseSuite) check() (CaseSuite, error) {
	if len(s.Cases) == 0 {
		return s, sandbox.Errorf(sandbox.Invalid, "no cases").WithHint("give at least one {\"input\", \"expected\"}")
	}
	if s.Main == "" && len(s.Solution) == 1 {
		s.Main = s.Solution[0].Path
	}
	if !slices.ContainsFunc(s.Solution, func(f sandbox.File) bool { return f.Path == s.Main }) {
		return s, sandbox.Errorf(sandbox.Invalid, "the solution has no file %q to run", s.Main).WithHint("name the one that is run")
	}
	if s.Function != "" && callers[language(s.Run)] == "" {
		return s, sandbox.Errorf(sandbox.Unsupported, "a function in %s cannot be called", s.Run.Language).
			WithHint("give cases of standard input and output, which any language has")
	}
	s.CaseTimeout = cmp.Or(s.CaseTimeout, DefaultTestTimeout)
	s.Compare = cmp.Or(s.Compare, CompareTrimmed)
	if s.Function != "" && s.Compare == CompareTrimmed {
		s.Compare = CompareExact
	}
	s.Tolerance = cmp.Or(s.Tolerance, 1e-6)
	for i, c := range s.Cases {
		var list []json.RawMessage
		var text string
		into, want := any(&text), "a JSON string"
		if s.Function != "" {
			into, want = &list, "the list of its arguments"
		}
		if err := json.Unmarshal(c.Input, into); err != nil {
			return s, sandbox.Errorf(sandbox.Invalid, "case %s: its input is not %s", cmp.Or(c.ID, fmt.Sprint(i+1)), want)
		}
		if s.Function == "" && json.Unmarshal(c.Expected, &text) != nil && s.Checker == nil || !json.Valid(c.Expected) {
			return s, sandbox.Errorf(sandbox.Invalid, "case %s: what is expected is not a JSON string", cmp.Or(c.ID, fmt.Sprint(i+1)))
		}
	}
	return s, s.Compare.check()
}

// one runs one case.
func (s CaseSuite) one(ctx context.Context, exec Exec, c Case, t *Test) (sandbox.Result, error) {
	run, input := s.run(c)
	res, err := exec(ctx, run, sandbox.Streams{Stdin: bytes.NewReader(input)})
	if err != nil && (res.ExecID == "" || res.Reason == sandbox.ReasonDenied) {
		return res, err
	}
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	t.Duration, t.Memory = res.Duration, res.Usage.PeakMemory
	said := &excerpt{}
	said.add(res.Stderr)
	t.Output, t.Lost = said.text(), said.lost
	switch {
	case res.Reason == sandbox.ReasonTimeout:
		t.Outcome, t.Message = Timeout, fmt.Sprintf("it took more than %s", s.CaseTimeout)
	case res.Reason != sandbox.ReasonExited:
		t.Outcome, t.Message = Crashed, "its process "+howEnded(res)
	case res.Code != 0:
		t.Outcome, t.Message = Failed, fmt.Sprintf("exit code %d%s", res.Code, tail(string(bytes.ToValidUTF8(res.Stderr, []byte("\uFFFD")))))
	case res.Truncated.Stdout > 0:
		t.Outcome, t.Message = Failed, "it put out more than is kept"
	default:
		return res, s.judge(ctx, c, res.Stdout, t)
	}
	return res, nil
}

// run is one case's, with its standard input.
func (s CaseSuite) run(c Case) (sandbox.Run, []byte) {
	run := s.Run
	run.Code, run.Command, run.Args, run.Stage, run.Reap = "", nil, nil, nil, true
	run.Timeout = sandbox.Duration(s.CaseTimeout)
	run.Files = slices.Concat(run.Files, s.Solution)
	if s.Function == "" {
		run.File = s.Main
		return run, []byte(textOf(c.Input))
	}
	run.File, run.Code = "", callers[language(run)]
	for _, f := range s.Solution {
		if !f.Dir {
			f.Path = path.Join("solution", f.Path)
			run.Stage = append(run.Stage, f)
		}
	}
	input, _ := json.Marshal(map[string]any{"file": s.Main, "function": s.Function, "args": c.Input}) // all of it was checked
	return run, input
}

// textOf is a JSON string's text, or the JSON itself.
func textOf(j json.RawMessage) string {
	var text string
	if json.Unmarshal(j, &text) != nil {
		return string(j)
	}
	return text
}

// judge compares an output.
func (s CaseSuite) judge(ctx context.Context, c Case, output []byte, t *Test) error {
	if s.Checker != nil {
		return s.Checker.judge(ctx, s.Run, s.CaseTimeout, c, output, t)
	}
	right := false
	if s.Function != "" {
		right = sameJSON(s.Compare, s.Tolerance, c.Expected, output)
	} else {
		right = sameText(s.Compare, s.Tolerance, textOf(c.Expected), string(output))
	}
	t.Outcome = Passed
	if !right {
		got := string(bytes.ToValidUTF8(output, []byte("\uFFFD")))
		want := textOf(c.Expected)
		if s.Function != "" {
			want = string(c.Expected)
		}
		t.Outcome, t.Message = Failed, "the output is not what is expected"
		t.Assertion = &Assertion{Left: shorten(got), Op: "==", Right: shorten(want)}
	}
	return nil
}

func shorten(s string) string {
	const most = 4000
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// judge asks the checker, which gets {"input", "expected", "output"} on standard
// input and accepts with exit code 0. What it prints is the message.
func (k *Checker) judge(ctx context.Context, like sandbox.Run, limit time.Duration, c Case, output []byte, t *Test) error {
	question, err := json.Marshal(map[string]any{"input": c.Input, "expected": c.Expected, "output": string(output)})
	if err != nil {
		return fmt.Errorf("write the checker's input: %w", err)
	}
	run := sandbox.Run{Language: k.Language, File: k.File.Path, Files: []sandbox.File{k.File}, Approve: like.Approve, Limits: like.Limits}
	run.Timeout = sandbox.Duration(limit)
	res, err := k.Exec(ctx, run, sandbox.Streams{Stdin: bytes.NewReader(question)})
	if err != nil && (res.ExecID == "" || res.Reason == sandbox.ReasonDenied) {
		return fmt.Errorf("the checker: %w", err)
	}
	said := strings.TrimSpace(string(bytes.ToValidUTF8(append(res.Stdout, res.Stderr...), []byte("\uFFFD"))))
	switch {
	case res.Reason == sandbox.ReasonExited && res.Code == 0:
		t.Outcome = Passed
	case res.Reason == sandbox.ReasonExited && res.Code == 1:
		t.Outcome, t.Message = Failed, cmp.Or(shorten(said), "the checker does not accept it")
	default:
		t.Outcome, t.Message = Errored, "the checker's process "+howEnded(res)+tail(said)
	}
	return nil
}
