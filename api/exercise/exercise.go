// Package exercise judges solutions by tests or by cases over roles of
// [api.Service], for the faces that take them as data.
package exercise

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// Service is what judging needs of caisson.
type Service interface {
	api.Runner
	api.Sessions
	api.Execs
	api.Languages
}

// Judge judges an exercise where nothing else runs: tests in sandboxes of their
// own, the many runs of cases in a session of theirs.
func Judge(ctx context.Context, svc Service, e testloop.Exercise) (_ testloop.Result, err error) {
	suite := testloop.Suite{
		TestTimeout: testloop.DefaultTestTimeout, Timeout: testloop.DefaultTimeout,
		Run: sandbox.Run{Approve: sandbox.ApproveNever, Limits: e.Limits},
	}
	e.Language = cmp.Or(e.Language, "python")
	languages, err := svc.Languages(ctx)
	if err != nil {
		return testloop.Result{}, err
	}
	for _, l := range languages {
		if l.Called(e.Language) {
			e.Language = l.Name
			suite.Runner = testloop.Runner{Report: testloop.Reporting(l.TestReport), Command: l.RunTests, Suffixes: l.Suffixes}
		}
	}
	if len(e.Cases) == 0 {
		if e.Runner == "" && suite.Runner.Report == "" {
			return testloop.Result{}, sandbox.Errorf(sandbox.Unsupported, "no runner of tests is known for %s", e.Language).
				WithHint(`give "runner" and "command", or "cases", which any language has`)
		}
		return e.Judge(ctx, svc.Run, testloop.CaseSuite{}, suite)
	}
	name, done, err := forCases(ctx, svc, e)
	if err != nil {
		return testloop.Result{}, err
	}
	defer func() { err = errors.Join(err, done()) }()
	suite.Run.Limits = sandbox.Limits{} // they are the session's
	return e.Judge(ctx, func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		return svc.Exec(ctx, name, run, streams)
	}, testloop.CaseSuite{}, suite)
}

// forCases makes the session that cases run in.
func forCases(ctx context.Context, svc Service, e testloop.Exercise) (name string, done func() error, err error) {
	made, err := svc.CreateSession(ctx, api.SessionOptions{
		Language: e.Language, Limits: e.Limits, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs},
		Idle: 2 * cmp.Or(e.Timeout, sandbox.Duration(testloop.DefaultTimeout)), Temporary: true,
	}, sandbox.Local{})
	if err != nil {
		return "", nil, err
	}
	return made.Name, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return svc.RemoveSession(ctx, made.Name, true)
	}, nil
}
