package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// exitNotPassed is the code of tests that did not all pass.
const exitNotPassed = 1

// testOptions are the flags of `caisson test`.
type testOptions struct {
	solution, tests string
	session         string
	used            string // the session that was made; "" is the user's
	run             sandbox.Run
	env             []string
	testTimeout     sandbox.Duration
	timeout         sandbox.Duration
	json            bool
	junit           string
	loop            loopOptions
	batch           batchOptions
}

// testService is what `caisson test` needs of caisson.
type testService interface {
	api.Runner
	api.Sessions
	api.Execs
	api.Workspaces
	api.Languages
}

func newTest(cfg Config) *cobra.Command {
	o := &testOptions{}
	cmd := &cobra.Command{
		Use:   "test --solution FILE|DIR --tests FILE|DIR [-- COMMAND…] | --cases FILE | --batch FILE",
		Short: "Run tests on a solution that may cheat, and say truly which passed",
		Long: `Run tests in a sandbox and say of each how it ended. Tests of Python, by pytest
or unittest, and their solution lie where nothing in the sandbox can write; results
come back on a way of their own. A test that hangs, crashes or ends its process
costs no other test. What a solution could still do to tests in its own interpreter
is in docs/testing.md.

Other languages' tests are run as the language says (run_tests in docs/images.md):
"node --test" for Node, each file by its exit code for shell. With --runner tap,
junit or exit, COMMAND runs instead in a workspace that has both, and what it
prints, or leaves in {report}, is read. Such a command reports for itself, and may
lie: the result says so.

With --cases, a solution in any language is judged by what it puts out: FILE has
{"input": …, "expected": …} as a JSON list or one a line, standard input and
output, or with --function the list of its arguments and what it returns.

With --batch, problems come as JSON lines ({"id", "solution", "tests" or "cases",
"language", "limits", …}) and a result a line goes out as each ends, every problem
in a sandbox of its own.

With --reviser, a program or a chat endpoint is asked for a better solution while
tests fail, and that is judged the same way.

Without --session a session is made for it, and removed. Exit code: 0 if at least
one test passed and none failed, erred, hung or crashed; 1 otherwise; 126 refused
by policy; of caisson's errors: 2 wrong usage, 125 most others.`,
		Example: `  caisson test --solution solution.py --tests test_solution.py
  caisson test --solution src --tests tests --json --junit report.xml
  caisson test --batch problems.jsonl --workers 4 --output results.jsonl --resume`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.loop.command = args
			if err := o.loop.checkRunner(); err != nil {
				return err
			}
			if o.loop.checker != "" && o.loop.cases == "" && o.batch.file == "" {
				return sandbox.Errorf(sandbox.Invalid, "--checker without --cases").WithHint("give the cases that it is for")
			}
			if o.batch.file != "" || o.batch.given() {
				return o.executeBatch(cmd.Context(), cfg)
			}
			return o.execute(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.solution, "solution", "", "what is judged: a `FILE`, or a folder with all that is in it")
	f.StringVar(&o.tests, "tests", "", "what it is judged by: a `FILE` of tests, or a folder with their helpers and settings")
	f.StringVarP(&o.session, "session", "s", "", "run in this `SESSION`, which stays")
	durationVar(f, &o.testTimeout, "test-timeout", sandbox.Duration(testloop.DefaultTestTimeout), "end a test after this long")
	durationVar(f, &o.timeout, "timeout", sandbox.Duration(testloop.DefaultTimeout), "end all of it after this long")
	f.StringArrayVarP(&o.env, "env", "e", nil, "set `KEY=VALUE` (repeatable)")
	f.Var((*approveFlag)(&o.run.Approve), "approve", "what becomes of what policy asks about: `ask` and wait, never, or always (default ask on a terminal, else never)")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	o.loop.flags(f)
	o.batch.flags(f, "judge", "problems")
	f.StringVar(&o.junit, "junit", "", "write JUnit's XML to this `FILE` too")
	o.run.Limits = sandbox.DefaultLimits
	boxFlags(f, &o.run.Limits, &o.run.Image, &o.run.Network, &o.run.Runtime, &o.run.OCIRuntime)
	return cmd
}

func (o *testOptions) execute(ctx context.Context, cfg Config) error {
	suite, err := o.suite()
	if err != nil {
		return err
	}
	cases, err := o.loop.readCases()
	if err != nil {
		return err
	}
	svc, err := open[testService](ctx, cfg)
	if err != nil {
		return err
	}
	t := openTerminal(ctx, cfg)
	defer t.close()
	var ask sandbox.Asker
	if t != nil && o.run.Approve != sandbox.ApproveNever && o.run.Approve != sandbox.ApproveAlways {
		ask = t.ask
	}
	if suite.Run.Language, err = o.language(svc, suite); err != nil {
		return err
	}
	if o.loop.cases == "" {
		if suite.Runner, err = o.loop.testRunner(ctx, svc, suite.Run.Language); err != nil {
			return err
		}
		if suite.Run.Warm, err = o.warm(ctx, svc, suite); err != nil {
			return err
		}
	}
	checker, err := o.loop.readChecker(svc, ask)
	if err != nil {
		return err
	}
	warnUnwalled(cfg, o.run.Runtime)
	exec, done, err := o.sandbox(ctx, svc, suite.Run.Language, ask)
	if err != nil {
		return err
	}
	o.loop.key = cfg.getenv("CAISSON_REVISER_KEY")
	loop, err := o.loop.loop(suite, exec, cases, checker)
	if err != nil {
		return errors.Join(err, done())
	}
	loop.Reset = func(ctx context.Context) error { return emptied(ctx, svc, o.used) }
	r, err := loop.Run(ctx)
	if err = errors.Join(err, done()); err != nil {
		return err
	}
	return o.report(cfg, r)
}

// warm reports whether processes are to be forked from an interpreter that stays: where
// there are more of them than one, and the language has such.
func (o *testOptions) warm(ctx context.Context, svc api.Languages, s testloop.Suite) (bool, error) {
	if !s.Runner.Ours() || o.session == "" && o.loop.reviser == "" && o.loop.url == "" {
		return false, nil
	}
	all, err := svc.Languages(ctx)
	return warms(all, s.Run.Language), err
}

// warms reports whether a language has interpreters that processes are forked from.
func warms(all []api.LanguageInfo, name string) bool {
	return slices.ContainsFunc(all, func(l api.LanguageInfo) bool { return l.Called(name) && len(l.Warm) > 0 })
}

// language is that of the file that is run, for cases, and else that of the tests.
func (o *testOptions) language(svc api.Languages, s testloop.Suite) (string, error) {
	if o.loop.language != "" {
		return o.loop.language, nil
	}
	if (testloop.Runner{Report: testloop.Reporting(o.loop.runner)}).Ours() && o.loop.runner != "" {
		return "python", nil
	}
	files, name := s.Tests, o.loop.main
	if o.loop.cases != "" || o.loop.runner != "" {
		files = s.Solution
	}
	if name != "" {
		return svc.LanguageOf(name)
	}
	for _, tests := range []bool{true, false} {
		for _, f := range files {
			if language, err := svc.LanguageOf(f.Path); err == nil && testloop.IsTest(f.Path) == tests {
				return language, nil
			}
		}
	}
	return svc.LanguageOf(files[0].Path)
}

// suite reads the flags, and what they name on this host.
func (o *testOptions) suite() (testloop.Suite, error) {
	s := testloop.Suite{TestTimeout: time.Duration(o.testTimeout), Timeout: time.Duration(o.timeout), Run: sandbox.Run{Env: o.env, Approve: o.run.Approve}}
	if o.solution == "" {
		return s, sandbox.Errorf(sandbox.Invalid, "no --solution").WithHint("give --solution FILE or a folder; see: caisson test --help")
	}
	if (o.tests == "") == (o.loop.cases == "") {
		return s, sandbox.Errorf(sandbox.Invalid, "exactly one of --tests and --cases is needed").WithHint("give --tests for pytest, or --cases for inputs and outputs")
	}
	if s.TestTimeout <= 0 || s.Timeout <= 0 {
		return s, sandbox.Errorf(sandbox.Invalid, "a time limit of nothing").WithHint("--test-timeout and --timeout take at least 1ms, such as 10s")
	}
	if err := o.run.Limits.Check(); err != nil {
		return s, err
	}
	var err error
	if s.Solution, err = readFiles(o.solution); err == nil && o.tests != "" {
		s.Tests, err = readFiles(o.tests)
	}
	return s, err
}

// leftOut are folders that no test needs.
var leftOut = []string{".git", "__pycache__", ".pytest_cache", "node_modules", ".venv"}

// readFiles reads a file, or all files of a folder by their paths in it.
func readFiles(src string) ([]sandbox.File, error) {
	st, err := os.Stat(src)
	if err != nil {
		return nil, missing(src, err)
	}
	if !st.IsDir() {
		f, err := readFile(src, filepath.Base(src))
		return []sandbox.File{f}, err
	}
	var files []sandbox.File
	err = filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return missing(p, err)
		}
		if d.IsDir() {
			if p != src && slices.Contains(leftOut, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		f, err := readFile(p, filepath.ToSlash(rel))
		files = append(files, f)
		return err
	})
	if err == nil && len(files) == 0 {
		err = sandbox.Errorf(sandbox.Invalid, "%s has no files", src).WithHint("name a file, or a folder that has some")
	}
	return files, err
}

func readFile(src, name string) (sandbox.File, error) {
	if st, err := os.Stat(src); err != nil {
		return sandbox.File{}, missing(src, err)
	} else if !st.Mode().IsRegular() {
		return sandbox.File{}, sandbox.Errorf(sandbox.Invalid, "%s is not a file", src).WithHint("leave it out of the folder")
	}
	b, err := os.ReadFile(src)
	if err != nil {
		return sandbox.File{}, missing(src, err)
	}
	return sandbox.File{Path: name, Data: b, Size: int64(len(b))}, nil
}

// sandbox gives a way to run things, in a session that done removes where it is
// not the user's.
func (o *testOptions) sandbox(ctx context.Context, svc testService, language string, ask sandbox.Asker) (exec testloop.Exec, done func() error, err error) {
	name := o.session
	done = func() error { return nil }
	if name == "" {
		s, err := svc.CreateSession(ctx, api.SessionOptions{
			Language: language, Image: o.run.Image, Limits: o.run.Limits, Network: o.run.Network, Runtime: o.run.Runtime, OCIRuntime: o.run.OCIRuntime,
			Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}, Idle: 2 * o.timeout, Temporary: true,
		}, sandbox.Local{})
		if err != nil {
			return nil, nil, err
		}
		name = s.Name
		o.used = name
		done = func() error { return svc.RemoveSession(context.WithoutCancel(ctx), name, true) }
	}
	return func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		streams.Ask = ask
		return svc.Exec(ctx, name, run, streams)
	}, done, nil
}

// report prints what came of it and turns it into the exit code.
func (o *testOptions) report(cfg Config, r testloop.Report) error {
	if o.junit != "" {
		var b bytes.Buffer
		if err := r.JUnit(&b); err != nil {
			return err
		}
		if err := os.WriteFile(o.junit, b.Bytes(), 0o644); err != nil {
			return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("check the folder of --junit")
		}
	}
	var err error
	if o.json {
		err = writeJSON(cfg.IO.Out, r)
	} else {
		_, err = fmt.Fprint(cfg.IO.Out, rounds(r)+summary(r.Result, colored(cfg)))
	}
	if err == nil && !r.AllPassed {
		err = exitCode(exitNotPassed)
	}
	return err
}

// painted gives a text a colour where colours are wanted.
func painted(color bool) func(colour, text string) string {
	if !color {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string { return colour + text + plain }
}

// summary is a result for people: what did not pass with its reason, and counts.
func summary(r testloop.Result, color bool) string {
	paint := painted(color)
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s %s\n", paint(red, "PROBLEM"), visible(p.File))
		indent(&b, p.Message, place(p.Place, p.Line))
	}
	for _, t := range r.Tests {
		if t.Outcome.Bad() {
			fmt.Fprintf(&b, "%s %s\n", paint(red, strings.ToUpper(string(t.Outcome))), visible(t.ID))
			indent(&b, t.Message, place(t.File, t.Line))
		}
	}
	var counts []string
	for _, c := range []struct {
		n      int
		what   string
		colour string
	}{
		{r.Totals.Passed, "passed", green}, {r.Totals.Failed, "failed", red}, {r.Totals.Errored, "error", red}, {r.Totals.Timeout, "timeout", red},
		{r.Totals.Crashed, "crashed", red}, {r.Totals.Skipped, "skipped", yellow}, {r.Totals.XFailed, "xfailed", yellow}, {r.Totals.XPassed, "xpassed", yellow},
	} {
		if c.n > 0 {
			counts = append(counts, paint(c.colour, fmt.Sprintf("%d %s", c.n, c.what)))
		}
	}
	if len(counts) == 0 {
		counts = []string{paint(red, "no tests")}
	}
	fmt.Fprintf(&b, "%s in %s\n", strings.Join(counts, ", "), r.Duration.Round(time.Millisecond))
	return b.String()
}

func place(file string, line int) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// indent writes the lines of a message, and where it happened.
func indent(b *strings.Builder, message, where string) {
	for line := range strings.Lines(message) {
		fmt.Fprintf(b, "    %s\n", visible(strings.TrimRight(line, "\n")))
	}
	if where != "" {
		fmt.Fprintf(b, "    at %s\n", visible(where))
	}
}
