package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// loopOptions are the flags of `caisson test` about cases and revising.
type loopOptions struct {
	cases, main, function, language string
	compare                         string
	tolerance                       float64
	first                           bool
	checker                         string

	runner  string
	command []string // of the runner

	task, reviser, url, model string
	iterations                int
	key                       string
}

func (o *loopOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.cases, "cases", "", "judge by the inputs and outputs in this `FILE`")
	f.StringVar(&o.runner, "runner", "", "what runs the tests: pytest, unittest, or a COMMAND that reports by tap, junit or exit (default the language's own)")
	f.StringVar(&o.main, "main", "", "the `FILE` of a folder that cases are for")
	f.StringVar(&o.function, "function", "", "cases call this function, of Python or Node")
	f.StringVarP(&o.language, "language", "l", "", "language of the solution, or of the tests; suffixes tell it too")
	f.StringVar(&o.compare, "compare", "", "how outputs are compared: exact, trimmed, float or unordered (default trimmed, with --function exact)")
	f.Float64Var(&o.tolerance, "tolerance", 1e-6, "how much numbers may differ by, with --compare float")
	f.BoolVar(&o.first, "first-failure", false, "stop at the first case that does not pass")
	f.StringVar(&o.checker, "checker", "", "have this program judge outputs, in a sandbox of its own: a `FILE` that gets JSON and exits with 0 or 1")
	f.StringVar(&o.reviser, "reviser", "", "ask this `COMMAND` for a better solution: it gets JSON and answers {\"files\": {name: text}}")
	f.StringVar(&o.url, "reviser-url", "", "ask the chat endpoint at this `URL`, such as http://localhost:8080/v1; CAISSON_REVISER_KEY is its key")
	f.StringVar(&o.model, "reviser-model", "", "the `MODEL` to ask there")
	f.IntVar(&o.iterations, "max-iterations", 3, "judge so many solutions at most")
	f.StringVar(&o.task, "task", "", "what the reviser is told that the solution is to do")
}

// readCases reads a list, or an object a line.
func (o *loopOptions) readCases() ([]testloop.Case, error) {
	if o.cases == "" {
		return nil, nil
	}
	b, err := os.ReadFile(o.cases)
	if err != nil {
		return nil, missing(o.cases, err)
	}
	var list []testloop.Case
	if trimmed := bytes.TrimSpace(b); len(trimmed) > 0 && trimmed[0] == '[' {
		err = json.Unmarshal(trimmed, &list)
	} else {
		dec := json.NewDecoder(bytes.NewReader(b))
		for err == nil {
			var c testloop.Case
			if err = dec.Decode(&c); err == nil {
				list = append(list, c)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s: %w", o.cases, err).WithHint("it has to hold {\"input\": …, \"expected\": …}, as a JSON list or one a line")
	}
	return list, nil
}

// checkRunner holds the runner against what else is given.
func (o *loopOptions) checkRunner() error {
	r := testloop.Runner{Report: testloop.Reporting(o.runner)}
	switch {
	case o.runner != "" && !slices.Contains(testloop.Reportings(), r.Report):
		return sandbox.Errorf(sandbox.Invalid, "no runner is called %q", o.runner).WithHint("--runner takes pytest, unittest, tap, junit or exit")
	case o.runner != "" && o.cases != "":
		return sandbox.Errorf(sandbox.Invalid, "both --cases and --runner").WithHint("give one of them")
	case !r.Ours() && len(o.command) == 0:
		return sandbox.Errorf(sandbox.Invalid, "--runner %s without a command", o.runner).WithHint("give the command that runs the tests behind --")
	case r.Ours() && len(o.command) > 0:
		return sandbox.Errorf(sandbox.Invalid, "a command, and nothing says what it reports").WithHint("leave it out, or add --runner tap, junit or exit")
	}
	return nil
}

// testRunner is what runs tests in a language: what the flags say, or the language
// itself.
func (o *loopOptions) testRunner(ctx context.Context, svc api.Languages, language string) (testloop.Runner, error) {
	if o.runner != "" {
		return testloop.Runner{Report: testloop.Reporting(o.runner), Command: o.command}, nil
	}
	all, err := svc.Languages(ctx)
	if err != nil {
		return testloop.Runner{}, err
	}
	return runnerOf(all, language)
}

// runnerOf is what runs a language's tests.
func runnerOf(all []api.LanguageInfo, language string) (testloop.Runner, error) {
	for _, l := range all {
		if l.Called(language) && l.TestReport != "" {
			return testloop.Runner{Report: testloop.Reporting(l.TestReport), Command: l.RunTests, Suffixes: l.Suffixes}, nil
		}
	}
	return testloop.Runner{}, sandbox.Errorf(sandbox.Unsupported, "no runner of tests is known for %s", language).
		WithHint("give --runner and a command, run_tests and test_report in caisson.yaml (docs/images.md), or --cases")
}

// loop is what judges and revises.
func (o *loopOptions) loop(s testloop.Suite, exec testloop.Exec, cases []testloop.Case, checker *testloop.Checker) (testloop.Loop, error) {
	l := testloop.Loop{Task: o.task, Solution: s.Solution, MaxIterations: o.iterations, Timeout: s.Timeout * time.Duration(max(1, o.iterations))}
	switch {
	case o.reviser != "" && o.url != "":
		return l, sandbox.Errorf(sandbox.Invalid, "both --reviser and --reviser-url").WithHint("give one of them")
	case o.iterations < 1:
		return l, sandbox.Errorf(sandbox.Invalid, "--max-iterations %d is out of range", o.iterations).WithHint("it takes at least 1")
	case o.reviser != "":
		l.Reviser = testloop.CommandReviser{Line: o.reviser}
	case o.url != "":
		l.Reviser = testloop.ChatReviser{URL: o.url, Model: o.model, Key: o.key}
	}
	l.Judge = func(ctx context.Context, solution []sandbox.File) (testloop.Result, error) {
		s.Solution = solution
		return testloop.Run(ctx, exec, s)
	}
	if o.cases != "" {
		c := o.caseSuite()
		c.Cases, c.Run, c.CaseTimeout, c.Checker = cases, s.Run, s.TestTimeout, checker
		l.Judge = func(ctx context.Context, solution []sandbox.File) (testloop.Result, error) {
			c.Solution = solution
			return testloop.Cases(ctx, exec, c)
		}
	}
	return l, nil
}

// caseSuite is what the flags say of all cases.
func (o *loopOptions) caseSuite() testloop.CaseSuite {
	return testloop.CaseSuite{Main: o.main, Function: o.function, Compare: testloop.Comparison(o.compare), Tolerance: o.tolerance, First: o.first}
}

// checkerService is what a checker needs of caisson.
type checkerService interface {
	api.Runner
	api.Languages
}

// readChecker reads the program that judges outputs, nil for none. Each of its
// runs has a sandbox of its own.
func (o *loopOptions) readChecker(svc checkerService, ask sandbox.Asker) (*testloop.Checker, error) {
	if o.checker == "" {
		return nil, nil
	}
	f, err := readFile(o.checker, filepath.Base(o.checker))
	if err != nil {
		return nil, err
	}
	language, err := svc.LanguageOf(f.Path)
	if err != nil {
		return nil, err
	}
	return &testloop.Checker{File: f, Language: language, Exec: func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		streams.Ask = ask
		return svc.Run(ctx, run, streams)
	}}, nil
}

// emptied removes what an iteration left in the workspace of a session that was
// made for the loop. "" is the user's own, which is left as it is.
func emptied(ctx context.Context, svc api.Workspaces, session string) error {
	if session == "" {
		return nil
	}
	files, err := svc.Files(ctx, session)
	if err != nil {
		return err
	}
	var names []string
	for info, err := range files.Tree(ctx, ".", 1) {
		if err != nil {
			return err
		}
		names = append(names, info.Path)
	}
	for _, name := range names {
		if err := files.Remove(ctx, name, true); err != nil && !errors.Is(err, sandbox.NotFound) {
			return err
		}
	}
	return nil
}

// rounds tells what became of each solution, where there were several.
func rounds(r testloop.Report) string {
	if len(r.Iterations) < 2 {
		return ""
	}
	var b strings.Builder
	for _, it := range r.Iterations {
		n := it.Result.Totals
		fmt.Fprintf(&b, "iteration %d: %d of %s passed", it.Number, n.Passed, plural(n.Tests, "test", "tests"))
		if it.Refused != "" {
			b.WriteString("; " + oneLine(it.Refused, 200))
		}
		if it.Note != "" {
			b.WriteString("; " + oneLine(it.Note, 200))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "stopped: %s\n", r.Stopped)
	return b.String()
}
