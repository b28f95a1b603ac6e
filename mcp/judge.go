package mcp

import (
	"context"
	"encoding/json"

	"github.com/caisson-dev/caisson/api/exercise"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

type (
	checking struct {
		Language string `json:"language" jsonschema:"such as python, node or shell"`
		Code     string `json:"code" jsonschema:"the text to judge"`
		File     string `json:"file,omitempty" jsonschema:"a name for it in the findings"`
	}
	testing struct {
		Solution map[string]string `json:"solution" jsonschema:"files by name: what is judged, such as {\"solution.py\": \"…\"}"`
		Tests    map[string]string `json:"tests,omitempty" jsonschema:"files of tests by name, such as {\"test_solution.py\": \"…\"}"`
		Cases    []testCase        `json:"cases,omitempty" jsonschema:"in the place of tests: inputs and what is expected"`
		Language string            `json:"language,omitempty" jsonschema:"python if not given"`
		Function string            `json:"function,omitempty" jsonschema:"with cases: the function that is called; without it, the program reads standard input and prints"`
		Main     string            `json:"main,omitempty" jsonschema:"with cases: the file that is run, where there are more"`
		Each     float64           `json:"test_timeout_seconds,omitempty" jsonschema:"end a test after this long"`
		Timeout  float64           `json:"timeout_seconds,omitempty" jsonschema:"end all of it after this long"`
	}
	testCase struct {
		Input    any `json:"input" jsonschema:"standard input, or the list of the function's arguments"`
		Expected any `json:"expected" jsonschema:"standard output, or what the function returns"`
	}
)

func judgeTools(s *Server) {
	add(s, about{name: "check_policy", title: "Judge without running", text: "Say what the policy thinks of a program, without running it: allow, ask or deny, with findings and what to do instead.", reads: true},
		func(ctx context.Context, in checking) (any, error) {
			return s.svc.CheckCode(ctx, in.Language, []byte(in.Code), in.File)
		})
	add(s, about{name: "run_tests", title: "Run tests", text: "Judge a solution by tests (pytest or unittest for Python, the language's own for others) or by inputs and outputs, in a sandbox where it cannot touch them. " +
		"Answers with the outcome of each test: message, assertion, file and line, traceback."},
		func(ctx context.Context, in testing) (any, error) {
			e, err := in.exercise()
			if err != nil {
				return nil, err
			}
			return exercise.Judge(ctx, s.svc, e)
		})
}

// exercise is what is judged.
func (in testing) exercise() (testloop.Exercise, error) {
	e := testloop.Exercise{
		Solution: in.Solution, Tests: in.Tests, Language: in.Language, Function: in.Function, Main: in.Main,
		TestTimeout: seconds(in.Each), Timeout: seconds(in.Timeout),
	}
	b, err := json.Marshal(in.Cases)
	if err == nil && len(in.Cases) > 0 {
		err = json.Unmarshal(b, &e.Cases)
	}
	if err != nil {
		return e, sandbox.Errorf(sandbox.Invalid, "cases: %w", err).WithHint("give each an input and what is expected")
	}
	return e, nil
}
