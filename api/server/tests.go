package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// tests judges solutions by tests or by cases, as a line of `caisson test --batch`
// is judged.
func tests(s *Server) {
	result := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "all_passed, totals, tests and more: docs/testing.md"}
	handleRaw(s, call{"RunTests", post, "/v1/tests", "Judge a solution by tests or by cases", 0}, map[string]*huma.Schema{typeJSON: result}, func(in *struct{ Body testloop.Exercise }, w http.ResponseWriter, r *http.Request) error {
		judged, err := s.judge(r.Context(), in.Body)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", typeJSON)
		_ = json.NewEncoder(w).Encode(judged) // who asked may be gone
		return nil
	})
}

// judge judges an exercise where nothing else runs: tests in sandboxes of their
// own, the many runs of cases in a session of theirs.
func (s *Server) judge(ctx context.Context, e testloop.Exercise) (_ testloop.Result, err error) {
	suite := testloop.Suite{
		TestTimeout: testloop.DefaultTestTimeout, Timeout: testloop.DefaultTimeout,
		Run: sandbox.Run{Approve: sandbox.ApproveNever, Limits: e.Limits},
	}
	e.Language = cmp.Or(e.Language, "python")
	languages, err := s.svc.Languages(ctx)
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
		return e.Judge(ctx, s.svc.Run, testloop.CaseSuite{}, suite)
	}
	name, done, err := s.forCases(ctx, e)
	if err != nil {
		return testloop.Result{}, err
	}
	defer func() { err = errors.Join(err, done()) }()
	suite.Run.Limits = sandbox.Limits{} // they are the session's
	return e.Judge(ctx, func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		return s.svc.Exec(ctx, name, run, streams)
	}, testloop.CaseSuite{}, suite)
}

// forCases makes the session that cases run in.
func (s *Server) forCases(ctx context.Context, e testloop.Exercise) (name string, done func() error, err error) {
	made, err := s.svc.CreateSession(ctx, api.SessionOptions{
		Language: e.Language, Limits: e.Limits, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs},
		Idle: 2 * cmp.Or(e.Timeout, sandbox.Duration(testloop.DefaultTimeout)),
	}, sandbox.Local{})
	if err != nil {
		return "", nil, err
	}
	return made.Name, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return s.svc.RemoveSession(ctx, made.Name, true)
	}, nil
}

// textsSchema describes [testloop.Texts]: files by name, or one text.
type textsSchema struct{}

// Schema implements [huma.SchemaProvider].
func (textsSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString}, {Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
	}, Description: "a text, or {name: text}"}
}

// nameOrNumber describes a [testloop.Name].
type nameOrNumber struct{}

// Schema implements [huma.SchemaProvider].
func (nameOrNumber) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeNumber}}, Description: "what tells it from others; it may be left out"}
}
