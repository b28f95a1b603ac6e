package testloop_test

import (
	"context"
	"path"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// withoutID is a gate that lets nothing start id.
func withoutID(g manager.Gate) manager.Gate {
	return func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Start != nil && path.Base(q.Start.Start.File) == "id" {
			return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Deny, Findings: []sandbox.Finding{{ID: "T-1", Title: "Named", Verdict: sandbox.Deny}}}}, nil
		}
		return g(ctx, q)
	}
}

// What a solution starts is judged and told, whichever way it is tested. One that starts
// what is refused costs the test that it did so in, and that says why.
func TestStartsOfSolutions(t *testing.T) {
	t.Parallel()
	exec := warmWith(t, func(cfg *manager.Config) {
		cfg.Starts, cfg.Gate = sandbox.StartsRule{Mode: sandbox.StartsJudge}, withoutID(cfg.Gate)
	}, "python", "shell")
	const ended = "its process was ended by policy: it started /usr/bin/id: T-1 Named"
	solution := files("solution.py", "import subprocess\ndef run(*argv): return subprocess.run(argv, capture_output=True, text=True).stdout\n")
	const pytest = "from solution import run\ndef test_a(): assert run('/bin/echo', 'a') == 'a\\n'\ndef test_b(): run('/usr/bin/id')\ndef test_c(): assert run('/bin/echo', 'c') == 'c\\n'\n"
	const unit = "import unittest\nfrom solution import run\nclass T(unittest.TestCase):\n  def test_a(self): self.assertEqual(run('/bin/echo', 'a'), 'a\\n')\n  def test_b(self): run('/usr/bin/id')\n  def test_c(self): self.assertEqual(run('/bin/echo', 'c'), 'c\\n')\n"
	for name, judge := range map[string]func() (testloop.Result, error){
		"pytest": func() (testloop.Result, error) {
			return testloop.Run(t.Context(), exec, testloop.Suite{Solution: solution, Tests: files("test_s.py", pytest)})
		},
		"pytest, forked": func() (testloop.Result, error) {
			return testloop.Run(t.Context(), exec, testloop.Suite{Solution: solution, Tests: files("test_s.py", pytest), Run: sandbox.Run{Warm: true}})
		},
		"unittest": func() (testloop.Result, error) {
			return testloop.Run(t.Context(), exec, testloop.Suite{Solution: solution, Tests: files("test_s.py", unit), Runner: testloop.Runner{Report: testloop.ByUnittest}})
		},
		"a command": func() (testloop.Result, error) {
			return testloop.Run(t.Context(), exec, testloop.Suite{
				Tests:  files("a_test.sh", "/bin/echo a", "b_test.sh", "/usr/bin/id; :", "c_test.sh", "/bin/echo c"),
				Runner: testloop.Runner{Report: testloop.ByExit, Command: []string{"sh", "{file}"}}, Run: sandbox.Run{Language: "shell"},
			})
		},
		"cases": func() (testloop.Result, error) {
			return testloop.Cases(t.Context(), exec, testloop.CaseSuite{
				Solution: files("main.sh", "read -r a; $a"), Run: sandbox.Run{Language: "shell"},
				Cases: []testloop.Case{{Input: raw(`"/bin/echo a\n"`), Expected: raw(`"a"`)}, {Input: raw(`"/usr/bin/id\n"`), Expected: raw(`""`)}, {Input: raw(`"/bin/echo c\n"`), Expected: raw(`"c"`)}},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := judge()
			if err != nil {
				t.Fatal(err)
			}
			var starts []string
			for _, s := range r.Starts {
				if what := path.Base(s.Path) + " " + string(s.Verdict); what != "sh allow" { // the command's own
					starts = append(starts, what)
				}
			}
			if !slices.Equal(starts, []string{"echo allow", "id deny", "echo allow"}) || r.StartsLeftOut != 0 {
				t.Errorf("told %+v and %d", r.Starts, r.StartsLeftOut)
			}
			if len(r.Tests) != 3 || r.Totals.Passed != 2 || r.Tests[1].Outcome != testloop.Crashed || r.Tests[1].Message != ended {
				t.Errorf("%s", told(r))
			}
		})
	}
}
