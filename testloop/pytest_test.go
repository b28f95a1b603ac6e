package testloop_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// outcomes are those of a result, by test.
func outcomes(r testloop.Result) map[string]testloop.Outcome {
	m := map[string]testloop.Outcome{}
	for _, t := range r.Tests {
		m[t.ID] = t.Outcome
	}
	return m
}

func find(t *testing.T, r testloop.Result, id string) testloop.Test {
	t.Helper()
	i := slices.IndexFunc(r.Tests, func(o testloop.Test) bool { return o.ID == id })
	if i < 0 {
		t.Fatalf("no %s in\n%s", id, told(r))
	}
	return r.Tests[i]
}

const everything = `
import ctypes, os, sys, time, unittest, warnings
import pytest
from solution import add, words

def test_right(): assert add(1, 2) == 3

def test_wrong():
    print("héllo \N{SNOWMAN}")
    os.write(2, b"\xff\0raw\n")
    assert add(1, 2) == 4, "no"

@pytest.mark.parametrize("a,b", [(1, "x"), (2, "ü")])
def test_given(a, b): assert add(a, 1) == 2

@pytest.mark.skip(reason="later")
def test_skipped(): pass

def test_skips():
    pytest.skip("not here")

later = pytest.mark.skipif(True, reason="an alias")
@later
def test_alias(): pass

@pytest.mark.xfail(reason="known")
def test_xfailed(): assert add(1, 1) == 3

def test_xfails(): pytest.xfail("known too")

@pytest.mark.xfail
def test_xpassed(): pass

@pytest.mark.xfail(strict=True)
def test_strict(): pass

@pytest.fixture
def broken(): raise OSError("no fixture")
def test_setup(broken): pass

@pytest.fixture
def leaves():
    yield
    raise OSError("not left well")
def test_teardown(leaves): pass

class TestCase(unittest.TestCase):
    def test_equal(self): self.assertEqual(add(1, 1), 2)
    def test_unequal(self): self.assertEqual(add(1, 1), 3)
    def test_skip(self): self.skipTest("why")
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(add(1, 1), 3)

class TestPlain:
    def test_method(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(time, "time", lambda: 1)
        monkeypatch.setattr("builtins.input", lambda: "x")
        print("taken")
        assert capsys.readouterr().out == "taken\n"
        (tmp_path / "f").write_text("x")
        warnings.warn("beware")

def test_calls():
    with pytest.raises(ZeroDivisionError): words(0)
    words(0)

def test_exits(): os._exit(0)
def test_after(): assert add(2, 2) == 4
def test_crashes(): ctypes.string_at(0)
def test_memory(): bytearray(1 << 30)[0::4096]; b = [b"x" * (1 << 20) for _ in range(600)]
def test_hangs():
    print("before")
    while True: time.sleep(1)
def test_flood():
    for _ in range(40000): print("x" * 99)
def test_last(): assert add(2, 3) == 5
`

// patient is a time limit of tests that end: a busy machine does not reach it.
const patient = time.Minute

// Every outcome, in one file: what hangs or ends its process costs no other test.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	r, err := testloop.Pytest(t.Context(), warm(t, "python"), testloop.Suite{
		Solution:    files("solution.py", "def add(a, b):\n    return a + b\n\ndef words(n):\n    return 1 // n\n"),
		Tests:       files("test_all.py", everything),
		TestTimeout: 15 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]testloop.Outcome{}
	for outcome, names := range map[testloop.Outcome]string{
		testloop.Passed:  "right given[1-x] TestCase::test_equal TestPlain::test_method after flood last",
		testloop.Failed:  "wrong given[2-\\xfc] strict TestCase::test_unequal calls",
		testloop.Skipped: "skipped skips alias TestCase::test_skip",
		testloop.XFailed: "xfailed xfails TestCase::test_expected",
		testloop.XPassed: "xpassed",
		testloop.Errored: "setup teardown",
		testloop.Crashed: "exits crashes memory",
		testloop.Timeout: "hangs",
	} {
		for name := range strings.FieldsSeq(names) {
			if !strings.Contains(name, "::") {
				name = "test_" + name
			}
			want["test_all.py::"+name] = outcome
		}
	}
	if d := cmp.Diff(want, outcomes(r)); d != "" {
		t.Errorf("-want +got\n%s\n%s", d, told(r))
	}
	if n := r.Totals; r.AllPassed || n.Tests != len(want) || n.Crashed != 3 || n.Timeout != 1 || len(r.Problems) > 0 || r.Trust != testloop.TrustShared {
		t.Errorf("%+v, %v", n, r.Problems)
	}
	wrong := find(t, r, "test_all.py::test_wrong")
	if a := wrong.Assertion; a == nil || *a != (testloop.Assertion{Left: "3", Op: "==", Right: "4"}) {
		t.Errorf("%+v", wrong)
	}
	if wrong.Output != "héllo ☃\n\uFFFD\x00raw\n" || wrong.File != "tests/test_all.py" || wrong.Line != 11 || wrong.Type != "AssertionError" {
		t.Errorf("%+v", wrong)
	}
	frames := find(t, r, "test_all.py::test_calls").Traceback
	if len(frames) != 2 || frames[1] != (testloop.Frame{File: "solution/solution.py", Line: 5, Function: "words", Source: "return 1 // n"}) {
		t.Errorf("%+v", frames)
	}
	if p := find(t, r, "test_all.py::test_given[1-x]").Parameters; p["a"] != "1" || p["b"] != "'x'" {
		t.Errorf("%v", p)
	}
	if out := find(t, r, "test_all.py::test_hangs").Output; !strings.Contains(out, "before\n") {
		t.Errorf("%q", out)
	}
	if f := find(t, r, "test_all.py::test_flood"); f.Lost < 3_900_000 || len(f.Output) > 20_000 {
		t.Errorf("%d of %d lost", f.Lost, len(f.Output))
	}
	if m := find(t, r, "test_all.py::test_memory").Message; !strings.Contains(m, "memory") {
		t.Error(m)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Message != "beware" || r.Warnings[0].ID != "test_all.py::TestPlain::test_method" {
		t.Errorf("%+v", r.Warnings)
	}
}

// What cannot be collected is told with its place, and costs no other file.
func TestCollection(t *testing.T) {
	t.Parallel()
	exec := warm(t, "python")
	const good = "from solution import add\ndef test_a(): assert add(1, 2) == 3\n"
	solution := files("solution.py", "def add(a, b):\n    return a + b\n", "named.py", "def test_sum(list):\n    return sum(list)\n", "bad.py", "x = (\n", "dies.py", "import os\nos._exit(0)\n", "sleeps.py", "import time\ntime.sleep(600)\n")
	for name, tt := range map[string]struct {
		tests   []sandbox.File
		want    map[string]testloop.Outcome
		problem string // part of its message
		place   string
		line    int
		all     bool
	}{
		"a good one":           {tests: files("test_a.py", good), want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed}, all: true},
		"any name":             {tests: files("checks.py", good), want: map[string]testloop.Outcome{"checks.py::test_a": testloop.Passed}, all: true},
		"helpers and folders":  {tests: files("conftest.py", "import pytest\n@pytest.fixture\ndef three(): return 3\n", "helper.py", "def check(a, b): assert a == b\n", "sub/test_a.py", "from helper import check\nfrom solution import add\ndef test_a(three): check(add(1, 2), three)\n"), want: map[string]testloop.Outcome{"sub/test_a.py::test_a": testloop.Passed}, all: true},
		"settings":             {tests: files("pytest.ini", "[pytest]\npython_functions = check_*\nmarkers = slow: x\naddopts = --strict-markers\n", "test_a.py", "import pytest\n@pytest.mark.slow\ndef check_a(): pass\ndef test_b(): assert 0\n"), want: map[string]testloop.Outcome{"test_a.py::check_a": testloop.Passed}, all: true},
		"a name like a test's": {tests: files("test_a.py", "from named import *\n"+good+"def test_named(): assert test_sum([1, 2]) == 3\n"), want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed, "test_a.py::test_named": testloop.Passed}, all: true},
		"none":                 {tests: files("test_a.py", "x = 1\n"), want: map[string]testloop.Outcome{}},
		"syntax of the solution": {tests: files("test_a.py", good, "test_b.py", "import bad\ndef test_b(): pass\n"),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed, "test_b.py::test_b": testloop.Errored}, problem: "SyntaxError", place: "solution/bad.py", line: 1},
		"syntax of the tests": {tests: files("test_a.py", good, "test_b.py", "def test_b(:\n"),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed}, problem: "SyntaxError", place: "tests/test_b.py", line: 1},
		"an import that fails": {tests: files("test_a.py", good, "test_b.py", "import nothing_there\ndef test_b(): pass\n"),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed, "test_b.py::test_b": testloop.Errored}, problem: "No module named 'nothing_there'", place: "tests/test_b.py", line: 1},
		"an import that ends it": {tests: files("test_0.py", "import dies\ndef test_b(): pass\n", "test_a.py", good),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed, "test_0.py::test_b": testloop.Crashed}, problem: "exit code 0"},
		"an import that hangs": {tests: files("test_0.py", "import sleeps\ndef test_b(): pass\n", "test_a.py", good),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed, "test_0.py::test_b": testloop.Timeout}, problem: "more than 10s"},
		"a conftest that ends it": {tests: files("conftest.py", "import dies\n", "test_a.py", good),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Crashed}, problem: "exit code 0"},
		"a conftest that fails": {tests: files("conftest.py", "import nothing_there\n", "test_a.py", good),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Errored}, problem: "nothing_there"},
		"a module that skips itself": {tests: files("test_a.py", good, "test_b.py", "import pytest\npytest.importorskip('nothing_there')\ndef test_b(): pass\n"),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed, "test_b.py::test_b": testloop.Skipped}, all: true},
		"tests left out by the tests": {tests: files("conftest.py", "def pytest_collection_modifyitems(items): items[:] = items[:1]\n", "test_a.py", good+"def test_b(): assert 0\n"),
			want: map[string]testloop.Outcome{"test_a.py::test_a": testloop.Passed}, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := patient
			if strings.Contains(tt.problem, "more than 10s") {
				limit = 10 * time.Second
			}
			r, err := testloop.Pytest(t.Context(), exec, testloop.Suite{Solution: solution, Tests: tt.tests, TestTimeout: limit})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, outcomes(r)); d != "" || r.AllPassed != tt.all {
				t.Errorf("all %v, -want +got\n%s\n%s", r.AllPassed, d, told(r))
			}
			if tt.problem == "" && len(r.Problems) > 0 {
				t.Errorf("%+v", r.Problems)
			}
			if tt.problem != "" && (len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, tt.problem) || r.Problems[0].Place != tt.place || r.Problems[0].Line != tt.line) {
				t.Errorf("%+v", r.Problems)
			}
		})
	}
}

// Thousands of tests are thousands of results.
func TestMany(t *testing.T) {
	t.Parallel()
	r, err := testloop.Pytest(t.Context(), warm(t, "python"), testloop.Suite{
		Solution: files("solution.py", "def twice(n):\n    return 2 * n\n"),
		Tests:    files("test_m.py", "import pytest\nfrom solution import twice\n@pytest.mark.parametrize('n', range(2500))\ndef test_n(n): assert twice(n) == (n + n if n % 100 else -1)\n"),
	})
	if err != nil || r.Totals.Passed != 2475 || r.Totals.Failed != 25 || r.Processes != 1 {
		t.Errorf("%v, %+v in %d processes", err, r.Totals, r.Processes)
	}
	t.Log(r.Duration)
}

// What was refused does not run, and is no Result of tests.
func TestDenied(t *testing.T) {
	t.Parallel()
	no := &sandbox.DeniedError{Decision: sandbox.Decision{Verdict: sandbox.Deny}}
	_, err := testloop.Pytest(t.Context(), func(context.Context, sandbox.Run, sandbox.Streams) (sandbox.Result, error) {
		return sandbox.Result{ExecID: sandbox.NewID(), Exit: sandbox.Exit{Reason: sandbox.ReasonDenied}, Decision: no.Decision}, no
	}, testloop.Suite{Tests: files("test_a.py", "")})
	if !errors.Is(err, sandbox.Denied) {
		t.Error(err)
	}
	if _, err := testloop.Pytest(t.Context(), nil, testloop.Suite{}); !errors.Is(err, sandbox.Invalid) {
		t.Error(err)
	}
}

const cheated = `
import pytest
from solution import add

def check(a, b, c): assert add(a, b) == c
def test_1(): check(1, 2, 3)
class TestTwo:
    def test_2(self): assert add(2, 2) == 4
`

// byFork is exec, for runs that are each to be a fork of a warm interpreter, or none.
func byFork(t *testing.T, exec testloop.Exec, want bool) testloop.Exec {
	return func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		res, err := exec(ctx, run, streams)
		if err == nil && res.Warm != want {
			t.Errorf("forked: %v, want %v: %+v", res.Warm, want, res.Exit)
		}
		return res, err
	}
}

// Cheats get nowhere, in interpreters that start anew and in forks of one that stays.
func TestCheats(t *testing.T) {
	t.Parallel()
	for way, forked := range map[string]bool{"started": false, "forked": true} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			exec := byFork(t, warmWith(t, func(cfg *manager.Config) { cfg.Starts.Mode = sandbox.StartsJudge }, "python"), forked)
			for _, name := range slices.Sorted(maps.Keys(cheats)) {
				t.Run(name, func(t *testing.T) { cheats[name].fails(t, exec, forked) })
			}
		})
	}
}

// fails sees a cheat fail.
func (c cheat) fails(t *testing.T, exec testloop.Exec, forked bool) {
	s := testloop.Suite{
		Run:         sandbox.Run{Warm: forked},
		Solution:    append(files("solution.py", c.solution), c.more...),
		Tests:       append(files("test_1.py", cheated), c.tests...),
		TestTimeout: patient,
	}
	if strings.Contains(c.want, "timeout") {
		s.TestTimeout = 10 * time.Second
	}
	r, err := testloop.Pytest(t.Context(), exec, s)
	if err != nil {
		t.Fatal(err)
	}
	want := c.want
	if want == "" {
		want = "failed failed"
	}
	got := outcomes(r)
	if is := fmt.Sprint(got["test_1.py::test_1"], " ", got["test_1.py::TestTwo::test_2"]); is != want || r.AllPassed {
		t.Errorf("%s, want %s, all passed: %v\n%s", is, want, r.AllPassed, told(r))
	}
	for _, test := range r.Tests {
		if !test.Outcome.Bad() {
			t.Errorf("%s %s", test.ID, test.Outcome)
		}
	}
}
