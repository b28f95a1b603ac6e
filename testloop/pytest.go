package testloop

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/internal/signed"
	"github.com/caisson-dev/caisson/sandbox"
)

// What runs tests in Python: a text that both ways share, and what each goes on with.
var (
	//go:embed runner.py
	runnerText string
	//go:embed pytest.py
	pytestText string
	//go:embed unittest.py
	unittestText string

	pytestRunner   = runnerText + pytestText
	unittestRunner = runnerText + unittestText
)

// Exec runs something in a sandbox: a method of api.Service, in a sandbox of its
// own or in a session. It is called from one goroutine at a time.
type Exec func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)

// Suite is a solution and the tests to judge it by.
type Suite struct {
	// Solution and Tests are files by their paths; of Tests every path is collected
	// from. Tests and runner find both where nobody in the sandbox can write; a copy
	// of the solution is the working directory.
	Solution, Tests []sandbox.File
	// Runner runs the tests, for [Run]. Its zero value is pytest.
	Runner Runner
	// Run is what each run is asked with: its language, image, limits, environment,
	// and what becomes of questions. What it would run is filled in. With Warm, in a
	// session, processes are forked from one that has imported pytest, of another user's.
	Run sandbox.Run
	// TestTimeout bounds each test, and each import of a file of tests. 0 is
	// [DefaultTestTimeout].
	TestTimeout time.Duration
	// Timeout bounds all of it. 0 is [DefaultTimeout].
	Timeout time.Duration
}

// What zero times of a [Suite] mean.
const (
	DefaultTestTimeout = 10 * time.Second
	DefaultTimeout     = 10 * time.Minute
)

// startPatience is added to what the interpreter and pytest may take before
// the first test, or between two.
const startPatience = 30 * time.Second

// mostDeaths is after how many processes that ended too early the tests that are
// left are given up.
const mostDeaths = 20

// Own are the texts that this package has run: a gate need not judge them, but
// what is staged beside them.
func Own() []string {
	return []string{pytestRunner, unittestRunner, callPython, callNode, compilePython}
}

// pytestModules are what pytest imports before it looks for tests.
var pytestModules = strings.Fields("pytest unittest.mock pdb doctest difflib platform tempfile " +
	"_pytest.assertion.rewrite _pytest.cacheprovider _pytest.capture _pytest.debugging _pytest.doctest _pytest.faulthandler _pytest.freeze_support " +
	"_pytest.helpconfig _pytest.legacypath _pytest.logging _pytest.monkeypatch _pytest.nose _pytest.python _pytest.python_path _pytest.recwarn " +
	"_pytest.reports _pytest.runner _pytest.setuponly _pytest.setupplan _pytest.skipping _pytest.terminal _pytest.threadexception _pytest.tmpdir " +
	"_pytest.unittest _pytest.unraisableexception _pytest.warnings")

// Pytest runs the tests of a suite. Tests that fail, hang or end their process
// are in the Result. Errors: Invalid for a suite that cannot be meant, those of
// exec, among them a [sandbox.DeniedError] with the Decision in the Result.
func Pytest(ctx context.Context, exec Exec, s Suite) (Result, error) {
	if s.Run.Warm {
		s.Run.WarmWith = pytestModules
	}
	return inPython(ctx, exec, s, pytestRunner)
}

// Unittest is [Pytest] for tests of Python's own unittest, which needs no pytest
// in the image. What is in a folder of tests is collected from test*.py.
func Unittest(ctx context.Context, exec Exec, s Suite) (Result, error) {
	return inPython(ctx, exec, s, unittestRunner)
}

func inPython(ctx context.Context, exec Exec, s Suite, runner string) (Result, error) {
	started := time.Now()
	stage, err := s.stage()
	if err != nil {
		return Result{}, err
	}
	p := &pytestRun{runner: runner, suite: s, stage: stage, exec: exec, ended: map[string]Test{}, broken: map[string]Test{}}
	p.suite.Run.Language = cmp.Or(s.Run.Language, "python")
	p.patience = cmp.Or(s.TestTimeout, DefaultTestTimeout)
	limit, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, DefaultTimeout))
	defer cancel()
	for p.deaths < mostDeaths && !p.complete && limit.Err() == nil {
		if err := p.process(limit); err != nil {
			return Result{Trust: TrustShared, Decision: p.decision}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, context.Cause(ctx)
	}
	r := p.result(limit.Err() != nil)
	r.Duration = time.Since(started)
	return r, nil
}

// stage lays out what the runner finds.
func (s Suite) stage() ([]sandbox.File, error) {
	if len(s.Tests) == 0 {
		return nil, sandbox.Errorf(sandbox.Invalid, "no tests").WithHint("give at least one file of tests")
	}
	var stage []sandbox.File
	for folder, files := range map[string][]sandbox.File{"solution": s.Solution, "tests": s.Tests} {
		for _, f := range files {
			if f.Dir {
				continue
			}
			f.Path = path.Join(folder, f.Path)
			stage = append(stage, f)
		}
	}
	slices.SortFunc(stage, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	return stage, nil
}

// settings is the file of pytest's settings among the tests, "" without one.
func (s Suite) settings() string {
	for _, name := range []string{"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"} {
		if slices.ContainsFunc(s.Tests, func(f sandbox.File) bool { return f.Path == name }) {
			return name
		}
	}
	return ""
}

// pytestRun is what is known of a suite's tests, over all processes that it takes.
type pytestRun struct {
	runner   string // its text
	suite    Suite
	stage    []sandbox.File
	exec     Exec
	patience time.Duration

	static   []string // known before anything of the solution ran
	lenient  bool     // the tests' own configuration may leave some of them out
	items    []string // in the order in which they are run
	known    map[string]bool
	ended    map[string]Test
	broken   map[string]Test // files whose import ended the process, and how
	problems []Problem
	left     map[string]string // files that skip themselves, and why
	warnings []Warning
	decision sandbox.Decision
	used     Result // by all processes, and nothing else

	processes, deaths int
	complete          bool
	compiled          bool // what Python refuses to compile is replaced
}

// process runs what is left of the tests in one process.
func (p *pytestRun) process(ctx context.Context) error {
	k := signed.NewKey()
	live := &process{p: p, out: newPrinted(&k), patience: p.patience}
	config := map[string]any{"key": k.Hex(), "paths": p.paths(), "ini": p.suite.settings()}
	done, ignore := []string{}, []string{}
	for id := range p.ended {
		done = append(done, id)
	}
	for file := range p.broken {
		ignore = append(ignore, file)
	}
	config["done"], config["ignore"] = done, ignore
	input, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("write the runner's input: %w", err)
	}
	run := p.suite.Run
	run.Code, run.File, run.Command, run.Args, run.Reap = p.runner, "", nil, nil, true
	run.Stage, run.Files = p.stage, slices.Concat(run.Files, p.suite.Solution)
	run.Timeout = sandbox.Duration(cmp.Or(p.suite.Timeout, DefaultTimeout))
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	live.begin(func() { cancel(errHung) })
	p.processes++
	res, err := p.exec(watched, run, sandbox.Streams{Stdin: bytes.NewReader(input), Stdout: claims(&k, live.take), Stderr: live.out})
	hung := live.end()
	p.used.add(res)
	if p.processes == 1 {
		p.decision = res.Decision
	}
	if err != nil && (res.ExecID == "" || res.Reason == sandbox.ReasonDenied) {
		if watched.Err() != nil {
			return nil //nolint:nilerr // it was ended before it began: the time of all is over
		}
		return p.withoutSyntaxErrors(ctx, err)
	}
	live.settle(res, hung)
	return nil
}

// withoutSyntaxErrors makes ready for another process after one that was refused,
// or returns why there is to be none.
func (p *pytestRun) withoutSyntaxErrors(ctx context.Context, refused error) error {
	if p.compiled || !unread(refused) {
		return refused
	}
	n := len(p.suite.Solution)
	files, changed, err := standIns(ctx, p.exec, p.suite.Run, slices.Concat(p.suite.Solution, p.suite.Tests))
	if err != nil || !changed {
		return cmp.Or(err, refused)
	}
	p.suite.Solution, p.suite.Tests = files[:n], files[n:]
	p.compiled, p.processes = true, 0
	p.stage, err = p.suite.stage()
	return err
}

// errHung ends a process that says nothing in its time.
var errHung = sandbox.Errorf(sandbox.TimedOut, "it took too long")

// paths are the files that tests are collected from, none for all of them.
func (p *pytestRun) paths() []string {
	if len(p.suite.Tests) == 1 && path.Ext(p.suite.Tests[0].Path) == ".py" {
		return []string{p.suite.Tests[0].Path}
	}
	return []string{}
}

// process is one of a run's, while it lives.
type process struct {
	p        *pytestRun
	out      *printed
	patience time.Duration

	mu        sync.Mutex
	watch     *time.Timer
	hung      bool
	importing string // a file
	running   string // a test
	collected bool
	done      bool
	code      int
	started   []string // tests, in their order
}

func (l *process) begin(hung func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = time.AfterFunc(l.patience+startPatience, func() {
		l.mu.Lock()
		l.hung = true
		l.mu.Unlock()
		hung()
	})
}

func (l *process) end() (hung bool) {
	l.watch.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hung
}

// take notes one line of the runner's. It is watched from one to the next.
func (l *process) take(c claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hung || l.done {
		return
	}
	p, next := l.p, l.patience
	switch c.Kind {
	case "tests":
		if p.static == nil {
			p.static, p.lenient = listed(c.Names), c.Lenient
		}
	case "file":
		l.importing = c.File
	case "problem":
		p.problem(Problem{File: c.File, Type: c.Type, Message: c.Message, Place: c.Place, Line: c.Line, Traceback: c.Traceback})
	case "skipped":
		if p.left == nil {
			p.left = map[string]string{}
		}
		p.left[c.File] = c.Message
	case "warning":
		if len(p.warnings) < 100 {
			p.warnings = append(p.warnings, Warning{ID: c.ID, Type: c.Type, Message: c.Message, File: c.File, Line: c.Line})
		}
	case "items":
		p.collect(c.Names)
	case "collected":
		l.importing, l.collected = "", true
		next += startPatience
	case "start":
		l.running = c.ID
		l.started = append(l.started, c.ID)
	case "end":
		if c.ID != l.running || l.running == "" {
			return
		}
		l.running = ""
		next += startPatience
		p.conclude(Test{
			ID: c.ID, Outcome: c.Outcome, Duration: duration(c.MS), Type: c.Type, Message: c.Message, File: c.File, Line: c.Line,
			Assertion: c.Assertion, Traceback: c.Traceback, Parameters: c.Parameters,
		})
	case "done":
		l.done, l.code = true, c.Code
	}
	l.watch.Reset(next)
}

func (p *pytestRun) problem(found Problem) {
	if !slices.ContainsFunc(p.problems, func(o Problem) bool { return o.File == found.File }) {
		p.problems = append(p.problems, found)
	}
}

func (p *pytestRun) collect(ids []string) {
	if p.known == nil {
		p.known = map[string]bool{}
	}
	for _, id := range ids {
		if !p.known[id] {
			p.known[id] = true
			p.items = append(p.items, id)
		}
	}
}

// conclude keeps a test's first end.
func (p *pytestRun) conclude(t Test) {
	if _, ended := p.ended[t.ID]; !ended {
		p.ended[t.ID] = t
	}
}

// settle notes how the process ended, and what of it counts against whom.
func (l *process) settle(res sandbox.Result, hung bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.p
	lost := Test{Outcome: Crashed, Message: "its process " + howEnded(res)}
	if hung {
		lost = Test{Outcome: Timeout, Message: fmt.Sprintf("it took more than %s", l.patience)}
	}
	if res.Reason == sandbox.ReasonTimeout || !hung && res.Reason == sandbox.ReasonCanceled {
		lost = Test{Outcome: Timeout, Message: "the time of all tests was over"}
	}
	lost.Duration = res.Duration
	switch {
	case l.done:
		p.complete = true
	case l.running != "":
		p.deaths++
		lost.ID = l.running
		p.conclude(lost)
	case l.importing != "" && !l.collected:
		p.deaths++
		p.broken[l.importing] = lost
		p.problem(Problem{File: l.importing, Message: "while it was imported, " + lost.Message})
		p.complete = l.importing == "conftest.py" || slices.Contains(p.paths(), l.importing)
	case l.collected:
		p.deaths++
		p.complete = !slices.ContainsFunc(p.items, func(id string) bool { _, ended := p.ended[id]; return !ended })
	default:
		p.complete = true
		said, _ := l.out.part(0)
		p.problem(Problem{Message: "the runner did not start: its process " + howEnded(res) + tail(said)})
	}
	if l.done && !l.collected { // pytest refused its settings, or a conftest.py
		said, _ := l.out.part(0)
		p.problem(Problem{Message: fmt.Sprintf("pytest ended with code %d before it had tests%s", l.code, tail(said))})
	}
	for i, id := range l.started {
		t, ended := p.ended[id]
		if !ended {
			continue
		}
		if t.Output, t.Lost = l.out.part(2*i + 2); t.Duration == 0 {
			t.Duration = lost.Duration
		}
		p.ended[id] = t
	}
}

// tail is the end of what was printed, as part of a message.
func tail(said string) string {
	if said = strings.TrimSpace(said); said == "" {
		return ""
	}
	return ": " + said[max(0, len(said)-2000):]
}

// howEnded says how a process ended that should have gone on.
func howEnded(r sandbox.Result) string {
	switch r.Reason {
	case sandbox.ReasonExited:
		return fmt.Sprintf("ended itself with exit code %d", r.Code)
	case sandbox.ReasonSignal:
		return "was ended by " + r.Signal
	case sandbox.ReasonOOM:
		return "was out of memory"
	case sandbox.ReasonPIDs:
		return "met the limit of processes"
	case sandbox.ReasonDisk:
		return "met a full file system"
	case sandbox.ReasonOutput:
		return "put out more than is allowed"
	case sandbox.ReasonInfra:
		return "was lost: " + r.Cause
	case sandbox.ReasonDenied:
		return "was ended by policy: " + r.Cause
	default:
		return "was ended: " + string(r.Reason)
	}
}

// result puts together what the processes said.
func (p *pytestRun) result(late bool) Result {
	r := Result{Trust: TrustShared, Problems: p.problems, Warnings: p.warnings, Processes: p.processes, Decision: p.decision}
	r.Usage, r.Starts, r.StartsLeftOut = p.used.Usage, p.used.Starts, p.used.StartsLeftOut
	for _, id := range p.items {
		t, ended := p.ended[id]
		if !ended {
			t = p.unrun(id, late)
		}
		r.Tests = append(r.Tests, t)
	}
	for _, name := range p.static {
		if p.wasCollected(name) {
			continue
		}
		file, _, _ := strings.Cut(name, "::")
		t := Test{ID: name, Outcome: Errored, Message: "it is in the tests and was not collected"}
		why, skipped := p.left[file]
		switch b, broken := p.broken[file]; {
		case broken:
			t = b
			t.ID, t.Duration = name, 0
		case p.broken["conftest.py"].Outcome != "":
			t = p.broken["conftest.py"]
			t.ID, t.Duration = name, 0
		case skipped:
			t.Outcome, t.Message = Skipped, why
		case slices.ContainsFunc(p.problems, func(o Problem) bool { return o.File == file }):
			t.Message = "its file could not be collected"
		case len(p.items) == 0 && (late || p.deaths >= mostDeaths):
			t = p.unrun(name, late)
		case p.lenient:
			continue
		}
		r.Tests = append(r.Tests, t)
	}
	r.settle()
	return r
}

// unrun is a test that was never run.
func (p *pytestRun) unrun(id string, late bool) Test {
	switch {
	case late:
		return Test{ID: id, Outcome: Timeout, Message: "not run: the time of all tests was over"}
	case p.deaths >= mostDeaths:
		return Test{ID: id, Outcome: Crashed, Message: fmt.Sprintf("not run: %d processes had ended too early", p.deaths)}
	}
	return Test{ID: id, Outcome: Errored, Message: "there is no result of it"}
}

// wasCollected reports whether a test of the listing became one or more items.
func (p *pytestRun) wasCollected(name string) bool {
	if p.known[name] {
		return true
	}
	return slices.ContainsFunc(p.items, func(id string) bool { return strings.HasPrefix(id, name+"[") || strings.HasPrefix(id, name+"::") })
}
