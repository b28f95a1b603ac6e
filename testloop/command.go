package testloop

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// TAP runs a command in a workspace that holds solution and tests, and reads
// what it prints in the Test Anything Protocol. The command reports for itself
// ([TrustSelf]): whatever runs in it can print that it passed. Errors: Invalid
// for no command, and those of exec, as [Pytest] has them.
func TAP(ctx context.Context, exec Exec, s Suite, command []string) (Result, error) {
	if len(command) == 0 {
		return Result{}, sandbox.Errorf(sandbox.Invalid, "no command").WithHint("give the command that prints TAP behind --")
	}
	started := time.Now()
	run := s.Run
	run.Code, run.File, run.Args, run.Stage, run.Command, run.Reap = "", "", nil, nil, command, true
	run.Timeout = sandbox.Duration(cmp.Or(s.Timeout, DefaultTimeout))
	solution := slices.DeleteFunc(slices.Clone(s.Solution), func(f sandbox.File) bool {
		return slices.ContainsFunc(s.Tests, func(t sandbox.File) bool { return t.Path == f.Path })
	})
	run.Files = slices.Concat(run.Files, solution, s.Tests)
	res, err := exec(ctx, run, sandbox.Streams{})
	if err != nil && (res.ExecID == "" || res.Reason == sandbox.ReasonDenied) {
		return Result{Trust: TrustSelf, Decision: res.Decision}, err
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	r := ReadTAP(res.Stdout)
	r.Decision, r.Processes, r.Duration = res.Decision, 1, time.Since(started)
	r.Usage.add(res.Usage)
	said := &excerpt{}
	said.add(res.Stderr)
	switch {
	case res.Truncated.Stdout > 0:
		r.Problems = append(r.Problems, Problem{Message: "it put out more than is kept"})
	case res.Reason != sandbox.ReasonExited:
		r.Problems = append(r.Problems, Problem{Message: "the command " + howEnded(res) + tail(said.text())})
	case res.Code != 0 && (r.AllPassed || r.Totals.Tests == 0):
		r.Problems = append(r.Problems, Problem{Message: "the command " + howEnded(res) + tail(said.text())})
	}
	r.settle()
	return r, nil
}
