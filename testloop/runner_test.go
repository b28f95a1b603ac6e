package testloop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

const unittests = `
import os, time, unittest, warnings
from solution import add, words, TestOwn

def setUpModule(): print("module")

class TestAll(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.three = 3
    def setUp(self): self.four = 4
    def test_equal(self): self.assertEqual(add(1, 2), self.three)
    def test_unequal(self):
        print("said")
        self.assertEqual(add(1, 2), self.four)
    def test_raises(self): words(0)
    def test_sub(self):
        for n in (1, 2):
            with self.subTest(n=n): self.assertEqual(add(n, 0), 1)
    @unittest.skip("later")
    def test_skipped(self): pass
    def test_skips(self): self.skipTest("not here")
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(add(1, 1), 3)
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_warns(self): warnings.warn("beware")
    def test_exits(self): os._exit(0)
    def test_hangs(self):
        while True: time.sleep(1)
    def test_last(self): self.assertIn(add(1, 1), [2])

class TestSetUp(unittest.TestCase):
    def setUp(self): raise OSError("no set-up")
    def test_one(self): pass

class TestClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no class")
    def test_one(self): pass

class TestNone(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("none of them")
    def test_one(self): pass
`

// Python's own unittest, with every outcome, by the same runner.
func TestUnittest(t *testing.T) {
	t.Parallel()
	r, err := testloop.Run(t.Context(), warm(t, "python"), testloop.Suite{
		Solution:    files("solution.py", "import unittest\ndef add(a, b):\n    return a + b\n\ndef words(n):\n    return 1 // n\nclass TestOwn(unittest.TestCase):\n    def test_own(self): pass\n"),
		Tests:       files("test_all.py", unittests, "helper.py", "1/0\n", "sub/test_more.py", "import unittest\nclass TestMore(unittest.TestCase):\n    def test_a(self): pass\n", "test_bad.py", "import nothing_there\n"),
		Runner:      testloop.Runner{Report: testloop.ByUnittest},
		TestTimeout: 15 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]testloop.Outcome{"sub/test_more.py::TestMore::test_a": testloop.Passed}
	for outcome, names := range map[testloop.Outcome]string{
		testloop.Passed:  "TestAll::test_equal TestAll::test_warns TestAll::test_last",
		testloop.Failed:  "TestAll::test_unequal TestAll::test_raises TestAll::test_sub TestAll::test_unexpected",
		testloop.Skipped: "TestAll::test_skipped TestAll::test_skips TestNone::test_one",
		testloop.XFailed: "TestAll::test_expected",
		testloop.Errored: "TestSetUp::test_one TestClass::test_one",
		testloop.Crashed: "TestAll::test_exits",
		testloop.Timeout: "TestAll::test_hangs",
	} {
		for name := range strings.FieldsSeq(names) {
			want["test_all.py::"+name] = outcome
		}
	}
	if d := cmp.Diff(want, outcomes(r)); d != "" || r.AllPassed || r.Trust != testloop.TrustShared {
		t.Errorf("-want +got\n%s\n%s", d, told(r))
	}
	bad := find(t, r, "test_all.py::TestAll::test_unequal")
	if a := bad.Assertion; a == nil || *a != (testloop.Assertion{Left: "3", Op: "==", Right: "4"}) || bad.Output != "said\n" || bad.File != "tests/test_all.py" || bad.Line != 14 {
		t.Errorf("%+v", bad)
	}
	if sub := find(t, r, "test_all.py::TestAll::test_sub"); !strings.Contains(sub.Message, "n=2") {
		t.Error(sub.Message)
	}
	if len(r.Problems) != 1 || r.Problems[0].File != "test_bad.py" || !strings.Contains(r.Problems[0].Message, "nothing_there") {
		t.Errorf("%+v", r.Problems)
	}
	if len(r.Warnings) == 0 || r.Warnings[0].Message != "beware" {
		t.Errorf("%+v", r.Warnings)
	}
}

const cheatedCase = `
import unittest
from solution import add

def check(a, b, c): assert add(a, b) == c
class TestOne(unittest.TestCase):
    def test_1(self): check(1, 2, 3)
    def test_2(self): self.assertEqual(add(2, 2), 4)
`

// What a solution does to tests of unittest does not help it, by either runner.
func TestUnittestCheats(t *testing.T) {
	t.Parallel()
	exec := warm(t, "python")
	const cases = "import sys, unittest, unittest.case, unittest.suite, unittest.result\n"
	for name, c := range map[string]cheat{
		"_exit":             {solution: "import os\nos._exit(0)" + wrong, want: "crashed crashed"},
		"exit in a test":    called("sys.exit(0)", ""),
		"skip":              called("import unittest; raise unittest.SkipTest('x')", ""),
		"a skip's mark":     called("m = sys.modules['test_1'].TestOne; m.__unittest_skip__ = True; m.test_2.__unittest_skip__ = True", ""),
		"expected":          called("m = sys.modules['test_1'].TestOne; m.test_2.__unittest_expecting_failure__ = True", ""),
		"a test's method":   called("sys.modules['test_1'].TestOne.test_2 = lambda self: None", "error error"),
		"a class's run":     called("sys.modules['test_1'].TestOne.run = lambda self, result: result.addSuccess(self)", "error error"),
		"a class's assert":  called("sys.modules['test_1'].TestOne.assertEqual = lambda *a: None", "error error"),
		"a class's set-up":  called("sys.modules['test_1'].TestOne.setUpClass = classmethod(lambda cls: None)", "error error"),
		"the runner":        {solution: cases + "unittest.case.TestCase.run = lambda self, result=None: result.addSuccess(self)" + wrong, want: "error error"},
		"the runner's code": {solution: cases + "unittest.case.TestCase.run.__code__ = (lambda self, result=None: result.addSuccess(self)).__code__" + wrong, want: "error error"},
		"an assertion":      {solution: cases + "unittest.case.TestCase.assertEqual = lambda *a: None" + wrong, want: "error error"},
		"failures":          {solution: cases + "unittest.result.TestResult.addFailure = lambda *a: None" + wrong, want: "error error"},
		"the suite":         {solution: cases + "unittest.suite.TestSuite.run = lambda self, result: [result.addSuccess(t) for t in self]" + wrong, want: "error error"},
		"the loader":        {solution: "import sys\nsys.modules['test_1'].load_tests = lambda *a: __import__('unittest').TestSuite()" + wrong, want: "error error"},
		"forged lines":      {solution: "import os\nfor fd in range(1, 400):\n    try: os.write(fd, b'\\n{\"kind\":\"end\",\"outcome\":\"passed\"}\\n')\n    except OSError: pass" + wrong},
	} {
		for _, by := range []testloop.Reporting{testloop.ByUnittest, testloop.ByPytest} {
			if by == testloop.ByPytest && (name == "the suite" || name == "the loader" || name == "failures" || name == "expected") {
				continue // pytest uses none of them; its own are in TestCheats
			}
			t.Run(name+" by "+string(by), func(t *testing.T) {
				r, err := testloop.Run(t.Context(), exec, testloop.Suite{
					Solution: files("solution.py", c.solution), Tests: files("test_1.py", cheatedCase), Runner: testloop.Runner{Report: by}, TestTimeout: patient,
				})
				if err != nil {
					t.Fatal(err)
				}
				want := c.want
				if want == "" {
					want = "failed failed"
				}
				got := outcomes(r)
				if is := fmt.Sprint(got["test_1.py::TestOne::test_1"], " ", got["test_1.py::TestOne::test_2"]); is != want || r.AllPassed || r.Totals.Tests != 2 {
					t.Errorf("%s, want %s, all passed: %v\n%s", is, want, r.AllPassed, told(r))
				}
			})
		}
	}
}

func TestReadJUnit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		report, want, problem string
		all                   bool
	}{
		"good":         {report: `<?xml version="1.0"?><testsuites><testsuite name="s" tests="2"><testcase classname="c" name="a" time="1.5"/><testcase name="b"/></testsuite></testsuites>`, want: "c::a=passed b=passed", all: true},
		"outcomes":     {report: `<testsuite><testcase name="a"><failure message="no" type="E">at 1</failure></testcase><testcase name="b"><error/></testcase><testcase name="c"><skipped/></testcase><testcase name="d"><skipped type="pytest.xfail"/></testcase></testsuite>`, want: "a=failed b=error c=skipped d=xfailed"},
		"within":       {report: `<testsuite tests="2"><testsuite tests="1"><testcase name="a"/></testsuite><testcase name="b"/></testsuite>`, want: "a=passed b=passed", all: true},
		"too few":      {report: `<testsuite name="s" tests="3"><testcase name="a"/></testsuite>`, want: "a=passed", problem: "to be 3 and were 1"},
		"half":         {report: `<testsuite tests="1"><testcase name="a"/>`, want: "a=passed", problem: "could not be read"},
		"nothing":      {problem: "no tests"},
		"none":         {report: `<testsuite tests="0"/>`, problem: "no tests"},
		"no XML":       {report: "2 passed <3", problem: "could not be read"},
		"an entity":    {report: `<!DOCTYPE x [<!ENTITY e "aaaa">]><testsuite><testcase name="&e;"/></testsuite>`, problem: "could not be read"},
		"latin1":       {report: "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><testsuite><testcase name=\"\xe9\"/></testsuite>", want: "é=passed", all: true},
		"another code": {report: `<?xml version="1.0" encoding="EBCDIC"?><testsuite/>`, problem: "could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testloop.ReadJUnit([]byte(tt.report))
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
	r := testloop.ReadJUnit([]byte(`<testsuite><testcase name="a" time="0.25" file="a.py" line="3"><failure message="no" type="E">at 1</failure><system-out>said</system-out></testcase></testsuite>`))
	if got := r.Tests[0]; got.Message != "no\nat 1" || got.Duration != 250*time.Millisecond || got.Type != "E" || got.File != "a.py" || got.Line != 3 || got.Output != "said" {
		t.Errorf("%+v", got)
	}
}

// What is written as JUnit's XML is read as it was.
func TestJUnitBack(t *testing.T) {
	t.Parallel()
	was := testloop.Result{Tests: []testloop.Test{
		{ID: "a.py::a", Outcome: testloop.Passed}, {ID: "a.py::b", Outcome: testloop.Failed, Message: "no"}, {ID: "a.py::c", Outcome: testloop.Errored},
		{ID: "a.py::d", Outcome: testloop.Timeout}, {ID: "a.py::e", Outcome: testloop.Crashed}, {ID: "a.py::f", Outcome: testloop.Skipped}, {ID: "a.py::g", Outcome: testloop.XFailed},
	}}
	var b strings.Builder
	if err := was.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	for i, got := range testloop.ReadJUnit([]byte(b.String())).Tests {
		if w := was.Tests[i]; got.Outcome != w.Outcome || !strings.HasSuffix(got.ID, w.ID[4:]) || !strings.HasPrefix(got.Message, w.Message) {
			t.Errorf("%+v, was %+v", got, w)
		}
	}
}

func FuzzReadJUnit(f *testing.F) {
	f.Add([]byte(`<testsuites><testsuite name="s" tests="2"><testcase classname="c" name="a" time="1.5"><failure>x</failure></testcase></testsuite></testsuites>`))
	f.Fuzz(func(t *testing.T, report []byte) {
		r := testloop.ReadJUnit(report)
		if r.Totals.Tests != len(r.Tests) || r.AllPassed && (len(r.Problems) > 0 || r.Totals.Failed > 0) {
			t.Errorf("%+v", r)
		}
	})
}

// A command is run on each file of tests, and what it leaves is read from a name
// that no run before could have written.
func TestByCommand(t *testing.T) {
	t.Parallel()
	const report = `<testsuite tests="1"><testcase name="one"/></testsuite>`
	exited := sandbox.Exit{Reason: sandbox.ReasonExited}
	for name, tt := range map[string]struct {
		runner  testloop.Runner
		exit    sandbox.Exit
		left    []string // what is left in {report}
		want    string
		problem string
		all     bool
	}{
		"junit, printed":        {runner: testloop.Runner{Report: testloop.ByJUnit, Command: []string{"x"}}, exit: exited, want: "one=passed", all: true},
		"junit, left":           {runner: testloop.Runner{Report: testloop.ByJUnit, Command: []string{"x", "--to={report}"}}, exit: exited, left: []string{report, report}, want: "one=passed one=passed", all: true},
		"junit, not left":       {runner: testloop.Runner{Report: testloop.ByJUnit, Command: []string{"x", "{report}"}}, exit: exited, problem: "no report"},
		"junit, but it failed":  {runner: testloop.Runner{Report: testloop.ByJUnit, Command: []string{"x"}}, exit: sandbox.Exit{Reason: sandbox.ReasonExited, Code: 2}, want: "one=passed", problem: "exit code 2"},
		"each file":             {runner: testloop.Runner{Report: testloop.ByJUnit, Command: []string{"x", "{file}"}, Suffixes: []string{".t"}}, exit: exited, want: "a_test.t::one=passed sub/b_test.t::one=passed", all: true},
		"files of another name": {runner: testloop.Runner{Report: testloop.ByJUnit, Command: []string{"x", "{file}"}, Suffixes: []string{".o"}}, exit: exited, want: "other.o::one=passed", all: true},
		"by exit":               {runner: testloop.Runner{Report: testloop.ByExit, Command: []string{"x", "{file}"}, Suffixes: []string{".t"}}, exit: exited, want: "a_test.t=passed sub/b_test.t=passed", all: true},
		"by exit, once":         {runner: testloop.Runner{Report: testloop.ByExit, Command: []string{"x", "y"}}, exit: exited, want: "x y=passed", all: true},
		"by exit, failed":       {runner: testloop.Runner{Report: testloop.ByExit, Command: []string{"x"}}, exit: sandbox.Exit{Reason: sandbox.ReasonExited, Code: 1}, want: "x=failed"},
		"by exit, hung":         {runner: testloop.Runner{Report: testloop.ByExit, Command: []string{"x"}}, exit: sandbox.Exit{Reason: sandbox.ReasonTimeout, Code: 124}, want: "x=timeout"},
		"by exit, crashed":      {runner: testloop.Runner{Report: testloop.ByExit, Command: []string{"x"}}, exit: sandbox.Exit{Reason: sandbox.ReasonSignal, Signal: "SIGSEGV"}, want: "x=crashed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names := map[string]bool{}
			exec := func(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
				res := sandbox.Result{ExecID: sandbox.NewID(), Exit: tt.exit, Stdout: []byte(report)}
				for i, text := range tt.left {
					res.Artifacts = append(res.Artifacts, sandbox.Artifact{Path: fmt.Sprint(run.Artifacts[0], "/", i), Data: []byte(text)})
				}
				if slices.ContainsFunc(run.Command, func(a string) bool { return strings.ContainsAny(a, "{}") }) || len(run.Artifacts) > 0 && names[run.Artifacts[0]] {
					t.Errorf("%+v", run)
				}
				if len(run.Artifacts) > 0 {
					names[run.Artifacts[0]] = true
				}
				return res, nil
			}
			r, err := testloop.Run(t.Context(), exec, testloop.Suite{Tests: files("a_test.t", "", "sub/b_test.t", "", "data.t", "", "other.o", ""), Runner: tt.runner})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, test := range r.Tests {
				got = append(got, test.ID+"="+string(test.Outcome))
			}
			if is := strings.Join(got, " "); is != tt.want || r.AllPassed != tt.all || r.Trust != testloop.TrustSelf {
				t.Errorf("%s, all %v, %s\n%s", is, r.AllPassed, r.Trust, told(r))
			}
			if (tt.problem == "") != (len(r.Problems) == 0) || tt.problem != "" && !strings.Contains(r.Problems[0].Message, tt.problem) {
				t.Errorf("%+v", r.Problems)
			}
		})
	}
	for _, bad := range []testloop.Runner{{Report: "x"}, {Report: testloop.ByTAP}, {Command: []string{"x"}}, {Report: testloop.ByExit, Command: []string{"{file}"}, Suffixes: []string{".none"}}} {
		if _, err := testloop.Run(t.Context(), nil, testloop.Suite{Tests: files("a", ""), Runner: bad}); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestIsTest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"test_a.py": true, "a_test.go": true, "a.test.js": true, "a.spec.ts": true, "test.js": true, "sub/FooTest.java": true, "TestFoo.java": true, "testFoo.rb": true,
		"latest.py": false, "attest.js": false, "data.json": false, "contest_a.py": false, "protester.py": false,
	} {
		if testloop.IsTest(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// refusing is an exec that refuses texts which are no program, as policy does.
func refusing(exec testloop.Exec) testloop.Exec {
	return func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		for _, f := range slices.Concat(run.Stage, run.Files) {
			if strings.Contains(string(f.Data), "(\n") {
				d := sandbox.Decision{Verdict: sandbox.Ask, Findings: []sandbox.Finding{{ID: "SBX-EV-0002", Verdict: sandbox.Ask, File: f.Path}}}
				return sandbox.Result{ExecID: sandbox.NewID(), Exit: sandbox.Exit{Reason: sandbox.ReasonDenied}, Decision: d}, &sandbox.DeniedError{Decision: d}
			}
		}
		return exec(ctx, run, streams)
	}
}

// A text that Python refuses to compile does nothing: it is a result with its
// place, also where policy refuses what it cannot read. What Python does compile
// stays refused.
func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	exec := refusing(warm(t, "python"))
	const good, bad = "from solution import a\ndef test_a(): assert a == 1\n", "a = 1\nb = (\n"
	for _, by := range []testloop.Reporting{testloop.ByPytest, testloop.ByUnittest} {
		for place, s := range map[string]testloop.Suite{
			"solution/solution.py": {Solution: files("solution.py", bad), Tests: files("test_a.py", good)},
			"tests/test_a.py":      {Solution: files("solution.py", "a = 1\n"), Tests: files("test_a.py", bad)},
		} {
			s.Runner, s.TestTimeout = testloop.Runner{Report: by}, patient
			r, err := testloop.Run(t.Context(), exec, s)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Problems) != 1 || r.AllPassed || r.Decision.Verdict != sandbox.Allow {
				t.Fatalf("%+v", r)
			}
			if p := r.Problems[0]; p.Place != place || p.Line != 2 || p.Type != "SyntaxError" || !strings.Contains(p.Message, "never closed") {
				t.Errorf("%+v", p)
			}
		}
	}
	r, err := testloop.Cases(t.Context(), exec, testloop.CaseSuite{
		Solution: files("solution.py", bad), Run: sandbox.Run{Language: "python"}, CaseTimeout: patient,
		Cases: []testloop.Case{{Input: []byte(`""`), Expected: []byte(`""`)}, {Input: []byte(`""`), Expected: []byte(`""`)}},
	})
	if err != nil || r.Totals.Failed != 2 || !strings.Contains(r.Tests[0].Message, "solution.py\", line 2\n") || !strings.Contains(r.Tests[1].Message, "SyntaxError") {
		t.Errorf("%v\n%s", err, told(r))
	}
	_, err = testloop.Run(t.Context(), exec, testloop.Suite{Solution: files("solution.py", "a = (\n1)\n"), Tests: files("test_a.py", good)})
	if !errors.Is(err, sandbox.Denied) {
		t.Error(err)
	}
}
