package testloop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

func TestReadTAP(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		report, want string // tests as "id=outcome"
		problem      string
		all          bool
	}{
		"good":           {report: "TAP version 13\n1..2\nok 1 - a\nok 2 b\n", want: "a=passed b=passed", all: true},
		"plan last":      {report: "ok 1 - a\n1..1\n", want: "a=passed", all: true},
		"directives":     {report: "1..4\nok 1 - a # SKIP later\nnot ok 2 - b # TODO soon\nok 3 - c # todo\nok 4 - d\n", want: "a=skipped b=xfailed c=xpassed d=passed", all: true},
		"failed":         {report: "1..1\nnot ok 1 - a\n", want: "a=failed"},
		"too few":        {report: "1..2\nok 1 - a\n", want: "a=passed", problem: "to be 2 and were 1"},
		"too many":       {report: "1..1\nok 1 - a\nok 2 - b\n", want: "a=passed b=passed", problem: "to be 1 and were 2"},
		"no plan":        {report: "ok 1 - a\n", want: "a=passed", problem: "no plan"},
		"nothing":        {problem: "no plan"},
		"none":           {report: "1..0 # skip all\n"},
		"bail out":       {report: "1..2\nok 1 - a\nBail out! no disk\nok 2 - b\n", want: "a=passed", problem: "no disk"},
		"out of order":   {report: "1..2\nok 2 - a\nok 1 - b\n", want: "a=passed b=passed", problem: "test point 2"},
		"subtests":       {report: "1..1\n    ok 1 - a\n    not ok 2 - b\n    1..2\nnot ok 1 - p\n", want: "p::a=passed p::b=failed"},
		"subtests' plan": {report: "1..1\n    1..2\n    ok 1 - a\nok 1 - p\n", want: "p::a=passed", problem: "to be 2 and were 1"},
		"parent failed":  {report: "1..1\n    1..1\n    ok 1 - a\nnot ok 1 - p\n", want: "p::a=passed p=failed"},
		"a child failed": {report: "1..1\n    1..1\n    not ok 1 - a\nok 1 - p\n", want: "p::a=failed p=passed"},
		"an orphan":      {report: "1..1\nok 1 - a\n    1..1\n    not ok 1 - b\n", want: "a=passed subtest::b=failed", problem: "no test point"},
		"unicode":        {report: "1..1\nok 1 - ☃\xff\n", want: "☃\uFFFD=passed", all: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testloop.ReadTAP([]byte(tt.report))
			var got []string
			for _, test := range r.Tests {
				got = append(got, test.ID+"="+string(test.Outcome))
			}
			if d := cmp.Diff(tt.want, strings.Join(got, " ")); d != "" || r.AllPassed != tt.all || r.Trust != testloop.TrustSelf {
				t.Errorf("all %v, %s\n%s", r.AllPassed, r.Trust, d)
			}
			if (tt.problem == "") != (len(r.Problems) == 0) || tt.problem != "" && !strings.Contains(r.Problems[0].Message, tt.problem) {
				t.Errorf("%+v", r.Problems)
			}
		})
	}
	r := testloop.ReadTAP([]byte("1..1\nnot ok 1 - a\n  ---\n  message: 'no'\n  duration_ms: 1.5\n  expected: 2\n  actual: 1\n  ...\n"))
	if got := r.Tests[0]; got.Message != "no" || got.Duration.Microseconds() != 1500 || got.Assertion == nil || got.Assertion.Left != "1" || got.Assertion.Right != "2" {
		t.Errorf("%+v", got)
	}
}

// What a command reports counts only as far as its end bears it out.
func TestTAPEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		exit sandbox.Exit
		all  bool
	}{
		"well":      {sandbox.Exit{Reason: sandbox.ReasonExited}, true},
		"not well":  {sandbox.Exit{Reason: sandbox.ReasonExited, Code: 3}, false},
		"timeout":   {sandbox.Exit{Reason: sandbox.ReasonTimeout, Code: 124}, false},
		"by signal": {sandbox.Exit{Reason: sandbox.ReasonSignal, Signal: "SIGSEGV"}, false},
	} {
		exec := func(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
			if len(run.Command) != 1 || len(run.Files) != 1 || string(run.Files[0].Data) != "tests" {
				t.Errorf("%+v", run)
			}
			return sandbox.Result{ExecID: sandbox.NewID(), Exit: tt.exit, Stdout: []byte("1..1\nok 1\n")}, nil
		}
		r, err := testloop.Run(t.Context(), exec, testloop.Suite{
			Solution: files("a", "solution"), Tests: files("a", "tests"), Runner: testloop.Runner{Report: testloop.ByTAP, Command: []string{"x"}},
		})
		if err != nil || r.AllPassed != tt.all {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}

func FuzzReadTAP(f *testing.F) {
	f.Add([]byte("1..1\n    1..1\n    ok 1 - a\nok 1 - p # TODO x\n  ---\n  message: x\n  ...\nBail out!\n"))
	f.Fuzz(func(t *testing.T, report []byte) {
		r := testloop.ReadTAP(report)
		if r.Totals.Tests != len(r.Tests) || r.AllPassed && (len(r.Problems) > 0 || r.Totals.Failed > 0) {
			t.Errorf("%+v", r)
		}
	})
}
