package testloop

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// byCommand runs a command in a workspace that holds solution and tests, and reads
// what it reports of itself ([TrustSelf]): whatever runs in it can say that it
// passed.
func byCommand(ctx context.Context, exec Exec, s Suite) (Result, error) {
	started := time.Now()
	limit := cmp.Or(s.Timeout, DefaultTimeout)
	r := Result{Trust: TrustSelf}
	files := s.Runner.files(s.Tests)
	if len(files) == 0 {
		return r, sandbox.Errorf(sandbox.Invalid, "no file of tests that %s takes", s.Runner.Command[0]).WithHint("its files end in %s", strings.Join(s.Runner.Suffixes, ", "))
	}
	for i, file := range files {
		left := limit - time.Since(started)
		if left < time.Millisecond {
			r.Problems = append(r.Problems, Problem{File: file, Message: "not run: the time of all tests was over"})
			continue
		}
		res, report, err := s.command(ctx, exec, file, left)
		if i == 0 {
			r.Decision = res.Decision
		}
		if err != nil {
			return Result{Trust: TrustSelf, Decision: r.Decision}, err
		}
		r.Processes++
		r.add(res)
		r.take(s.Runner.read(res, report, file), file)
	}
	r.settle()
	r.Duration = time.Since(started)
	return r, nil
}

// command runs it once, on one file of tests, and returns what it has reported.
func (s Suite) command(ctx context.Context, exec Exec, file string, limit time.Duration) (sandbox.Result, [][]byte, error) {
	run := s.Run
	name := ".caisson-report-" + string(sandbox.NewID())
	run.Code, run.File, run.Args, run.Stage, run.Command, run.Reap = "", "", nil, nil, nil, true
	for _, arg := range s.Runner.Command {
		if strings.Contains(arg, "{report}") {
			run.Artifacts = []string{name, name + "/**"}
		}
		run.Command = append(run.Command, strings.NewReplacer("{file}", file, "{report}", name).Replace(arg))
	}
	run.Timeout = sandbox.Duration(limit)
	solution := slices.DeleteFunc(slices.Clone(s.Solution), func(f sandbox.File) bool {
		return slices.ContainsFunc(s.Tests, func(t sandbox.File) bool { return t.Path == f.Path })
	})
	run.Files = slices.Concat(run.Files, solution, s.Tests)
	res, err := exec(ctx, run, sandbox.Streams{})
	if err != nil && (res.ExecID == "" || res.Reason == sandbox.ReasonDenied) {
		return res, nil, err
	}
	if ctx.Err() != nil {
		return res, nil, context.Cause(ctx)
	}
	if run.Artifacts == nil {
		return res, [][]byte{res.Stdout}, nil
	}
	var report [][]byte
	for _, a := range res.Artifacts {
		report = append(report, a.Data)
	}
	return res, report, nil
}

// read makes a result of what one command reported, as far as its end bears it out.
func (r Runner) read(res sandbox.Result, report [][]byte, file string) Result {
	said := &excerpt{}
	said.add(res.Stderr)
	if r.Report == ByExit {
		said = &excerpt{}
		said.add(slices.Concat(res.Stdout, res.Stderr))
		return r.byExit(res, said, file)
	}
	out := Result{}
	read := ReadTAP
	if r.Report == ByJUnit {
		read = ReadJUnit
	}
	for _, text := range report {
		one := read(text)
		out.Tests, out.Problems = append(out.Tests, one.Tests...), append(out.Problems, one.Problems...)
	}
	out.settle()
	problem := ""
	switch {
	case len(report) == 0:
		problem = "it left no report; the command " + howEnded(res) + tail(said.text())
	case len(report) == 1 && bytes.Equal(report[0], res.Stdout) && res.Truncated.Stdout > 0:
		problem = "it put out more than is kept"
	case res.Reason != sandbox.ReasonExited, res.Code != 0 && (out.AllPassed || out.Totals.Tests == 0):
		problem = "the command " + howEnded(res) + tail(said.text())
	}
	if problem != "" {
		out.Problems = append(out.Problems, Problem{Message: problem})
	}
	return out
}

func (r Runner) byExit(res sandbox.Result, said *excerpt, file string) Result {
	t := Test{ID: cmp.Or(file, strings.Join(r.Command, " ")), Duration: res.Duration, Memory: res.Usage.PeakMemory, Output: said.text(), Lost: said.lost}
	switch {
	case res.Reason == sandbox.ReasonTimeout:
		t.Outcome, t.Message = Timeout, "it took more than it had"
	case res.Reason != sandbox.ReasonExited:
		t.Outcome, t.Message = Crashed, "its process "+howEnded(res)
	case res.Code != 0:
		t.Outcome, t.Message = Failed, fmt.Sprintf("exit code %d%s", res.Code, tail(t.Output))
	default:
		t.Outcome = Passed
	}
	return Result{Tests: []Test{t}}
}

// take adds what one command reported of one file.
func (r *Result) take(one Result, file string) {
	for _, t := range one.Tests {
		if file != "" && t.ID != file && !strings.HasPrefix(t.ID, file+"::") {
			t.ID = file + "::" + t.ID
		}
		r.Tests = append(r.Tests, t)
	}
	for _, p := range one.Problems {
		p.File = cmp.Or(p.File, file)
		r.Problems = append(r.Problems, p)
	}
	if file != "" && len(one.Tests)+len(one.Problems) == 0 {
		r.Problems = append(r.Problems, Problem{File: file, Message: "it has no tests"})
	}
}
