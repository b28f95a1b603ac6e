package testloop

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// Reporting is how the results of tests come about.
type Reporting string

// The ways. Those from ByTAP on take a command, which reports for itself.
const (
	ByPytest   Reporting = "pytest"   // by a runner of ours, with pytest
	ByUnittest Reporting = "unittest" // by a runner of ours, with Python's own unittest
	ByTAP      Reporting = "tap"      // in the Test Anything Protocol
	ByJUnit    Reporting = "junit"    // in JUnit's XML
	ByExit     Reporting = "exit"     // by exit codes alone: each command is a test
)

// Reportings lists them.
func Reportings() []Reporting { return []Reporting{ByPytest, ByUnittest, ByTAP, ByJUnit, ByExit} }

// Runner says what runs tests.
type Runner struct {
	Report Reporting // "" is [ByPytest]
	// Command is an argv, run in a workspace that has solution and tests. "{file}"
	// in it stands for each file of tests in turn; "{report}" for a new name, where
	// it leaves its report as a file, or a folder of files, and else on standard
	// output.
	Command []string
	// Suffixes are those of the files that "{file}" stands for; nil is any.
	Suffixes []string
}

// check refuses what cannot be meant.
func (r Runner) check() error {
	switch {
	case r.Report != "" && !slices.Contains(Reportings(), r.Report):
		return sandbox.Errorf(sandbox.Invalid, "no runner is called %q", r.Report).WithHint("there are pytest, unittest, tap, junit and exit")
	case r.Ours() && len(r.Command) > 0:
		return sandbox.Errorf(sandbox.Invalid, "%s takes no command", cmp.Or(r.Report, ByPytest)).WithHint("leave it out, or say what the command reports: tap, junit or exit")
	case !r.Ours() && len(r.Command) == 0:
		return sandbox.Errorf(sandbox.Invalid, "%s without a command", r.Report).WithHint("give the command that runs the tests")
	}
	return nil
}

// Ours reports whether a runner of this package runs the tests.
func (r Runner) Ours() bool { return slices.Contains([]Reporting{"", ByPytest, ByUnittest}, r.Report) }

// Run runs the tests of a suite by its Runner. Errors: those of [Pytest], and
// Invalid for a Runner that cannot be meant.
func Run(ctx context.Context, exec Exec, s Suite) (Result, error) {
	if err := s.Runner.check(); err != nil {
		return Result{}, err
	}
	switch s.Runner.Report {
	case "", ByPytest:
		return Pytest(ctx, exec, s)
	case ByUnittest:
		return Unittest(ctx, exec, s)
	default:
		return byCommand(ctx, exec, s)
	}
}

// testName is what files of tests are called, without the suffix.
var testName = lazyregexp.New(`(?i:(^|[._-])(tests?|spec)([._-]|$))|[a-z0-9](Tests?|Spec)$|^[Tt]est[A-Z]`)

// IsTest reports whether a file has the name of tests: test_x.py, x.test.js,
// XTest.java.
func IsTest(file string) bool {
	name := path.Base(file)
	return testName().MatchString(strings.TrimSuffix(name, path.Ext(name)))
}

// files are those that the command runs on, one "" where it names none.
func (r Runner) files(tests []sandbox.File) []string {
	if !slices.ContainsFunc(r.Command, func(a string) bool { return strings.Contains(a, "{file}") }) {
		return []string{""}
	}
	var all, named []string
	for _, f := range tests {
		if f.Dir || r.Suffixes != nil && !slices.Contains(r.Suffixes, path.Ext(f.Path)) {
			continue
		}
		if all = append(all, f.Path); IsTest(f.Path) {
			named = append(named, f.Path)
		}
	}
	if len(named) > 0 {
		return named
	}
	return all
}
