package testloop_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

func raw(v string) json.RawMessage { return json.RawMessage(v) }

// Programs and functions are judged by what they put out, outside of their
// sandbox.
func TestCases(t *testing.T) {
	t.Parallel()
	exec := warm(t, "python", "node")
	program := files("main.py", `
import os, sys, time
n = input()
if n == "hang": time.sleep(600)
if n == "crash": os.abort()
if n == "exit": sys.exit(3)
if n == "loud": print("passed", file=sys.stderr)
print(int(n) * 2 if n.isdigit() else n)
`)
	function := files("pkg/helper.py", "def twice(n): return 2 * n\n", "sol.py", `
import os, sys
from pkg.helper import twice
print("at import")
def double(n):
    print("called")
    if n == "cheat":
        os.write(1, b"4"); os._exit(0)
    if n == "none": return None
    if n == "odd": return {1, 2}
    return [twice(n), {"n": float(n)}]
`)
	js := files("sol.mjs", "import {three} from './three.mjs'\nexport async function triple(n) { console.log('called'); return {n: three * n} }\n", "three.mjs", "export const three = 3\n")
	for name, tt := range map[string]struct {
		suite testloop.CaseSuite
		want  map[string]testloop.Outcome
		all   bool
	}{
		"a program": {testloop.CaseSuite{Solution: program, Run: sandbox.Run{Language: "python"}, CaseTimeout: 10 * time.Second, Cases: []testloop.Case{
			{Input: raw(`"2\n"`), Expected: raw(`"4"`)}, {ID: "wrong", Input: raw(`"2\n"`), Expected: raw(`"5"`)}, {ID: "hang", Input: raw(`"hang"`), Expected: raw(`""`)},
			{ID: "crash", Input: raw(`"crash"`), Expected: raw(`""`)}, {ID: "exit", Input: raw(`"exit"`), Expected: raw(`""`)}, {ID: "loud", Input: raw(`"loud"`), Expected: raw(`"passed"`)},
		}}, map[string]testloop.Outcome{"1": testloop.Passed, "wrong": testloop.Failed, "hang": testloop.Timeout, "crash": testloop.Crashed, "exit": testloop.Failed, "loud": testloop.Failed}, false},
		"a function": {testloop.CaseSuite{Solution: function, Main: "sol.py", Function: "double", Run: sandbox.Run{Language: "python"}, Cases: []testloop.Case{
			{Input: raw(`[2]`), Expected: raw(`[4, {"n": 2}]`)}, {ID: "wrong", Input: raw(`[2]`), Expected: raw(`[5, {"n": 2}]`)}, {ID: "none", Input: raw(`["none"]`), Expected: raw(`null`)},
			{ID: "cheat", Input: raw(`["cheat"]`), Expected: raw(`4`)}, {ID: "odd", Input: raw(`["odd"]`), Expected: raw(`[1, 2]`)},
		}}, map[string]testloop.Outcome{"1": testloop.Passed, "wrong": testloop.Failed, "none": testloop.Passed, "cheat": testloop.Failed, "odd": testloop.Failed}, false},
		"a function of Node": {testloop.CaseSuite{Solution: js, Main: "sol.mjs", Function: "triple", Run: sandbox.Run{Language: "node"}, Cases: []testloop.Case{
			{Input: raw(`[2]`), Expected: raw(`{"n": 6}`)},
		}}, map[string]testloop.Outcome{"1": testloop.Passed}, true},
		"the first that fails": {testloop.CaseSuite{Solution: program, First: true, Run: sandbox.Run{Language: "python"}, Cases: []testloop.Case{
			{Input: raw(`"1"`), Expected: raw(`"2"`)}, {Input: raw(`"1"`), Expected: raw(`"3"`)}, {Input: raw(`"1"`), Expected: raw(`"2"`)},
		}}, map[string]testloop.Outcome{"1": testloop.Passed, "2": testloop.Failed}, false},
		"a checker": {testloop.CaseSuite{Solution: program, Run: sandbox.Run{Language: "python"}, Cases: []testloop.Case{
			{Input: raw(`"1"`), Expected: raw(`null`)}, {Input: raw(`"9"`), Expected: raw(`null`)}, {Input: raw(`"x"`), Expected: raw(`null`)},
		}, Checker: &testloop.Checker{File: files("check.py", "import json, sys\nq = json.load(sys.stdin)\nsys.exit(0 if int(q['output']) < 9 else 'too large')\n")[0], Language: "python", Exec: exec}},
			map[string]testloop.Outcome{"1": testloop.Passed, "2": testloop.Failed, "3": testloop.Failed}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := testloop.Cases(t.Context(), exec, tt.suite)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, outcomes(r)); d != "" || r.AllPassed != tt.all || r.Trust != testloop.TrustOutside {
				t.Errorf("all %v, -want +got\n%s\n%s", r.AllPassed, d, told(r))
			}
			if r.Tests[0].Memory == 0 || r.Tests[0].Duration == 0 {
				t.Errorf("%+v", r.Tests[0])
			}
		})
	}
}

func TestCasesThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	one := []testloop.Case{{Input: raw(`"x"`), Expected: raw(`"x"`)}}
	for name, tt := range map[string]struct {
		suite testloop.CaseSuite
		want  sandbox.Kind
	}{
		"no cases":       {testloop.CaseSuite{Solution: files("a.py", "")}, sandbox.Invalid},
		"no file":        {testloop.CaseSuite{Solution: files("a.py", "", "b.py", ""), Cases: one}, sandbox.Invalid},
		"a comparison":   {testloop.CaseSuite{Solution: files("a.py", ""), Cases: one, Compare: "roughly"}, sandbox.Invalid},
		"no text":        {testloop.CaseSuite{Solution: files("a.py", ""), Cases: []testloop.Case{{Input: raw(`1`), Expected: raw(`""`)}}}, sandbox.Invalid},
		"no arguments":   {testloop.CaseSuite{Solution: files("a.py", ""), Function: "f", Run: sandbox.Run{Language: "python"}, Cases: one}, sandbox.Invalid},
		"a shell's":      {testloop.CaseSuite{Solution: files("a.sh", ""), Function: "f", Run: sandbox.Run{Language: "shell"}, Cases: one}, sandbox.Unsupported},
		"nothing at all": {testloop.CaseSuite{Solution: files("a.py", ""), Cases: []testloop.Case{{Input: raw(`""`)}}}, sandbox.Invalid},
	} {
		if _, err := testloop.Cases(t.Context(), nil, tt.suite); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
