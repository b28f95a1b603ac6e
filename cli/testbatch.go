package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/batch"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

func (o *testOptions) checkBatch() error {
	if err := o.batch.check(); err != nil {
		return err
	}
	switch {
	case o.solution != "" || o.tests != "" || o.loop.cases != "" || o.session != "" || o.junit != "" || o.loop.language != "":
		return sandbox.Errorf(sandbox.Invalid, "--batch beside flags about one problem").WithHint("leave out --solution, --tests, --cases, --language, --session and --junit: the lines say it")
	case o.loop.reviser != "" || o.loop.url != "":
		return sandbox.Errorf(sandbox.Invalid, "--batch judges each problem once").WithHint("leave out --reviser and --reviser-url")
	case o.testTimeout <= 0 || o.timeout <= 0:
		return sandbox.Errorf(sandbox.Invalid, "a time limit of nothing").WithHint("--test-timeout and --timeout take at least 1ms, such as 10s")
	case o.run.Approve == sandbox.ApproveAsk:
		return sandbox.Errorf(sandbox.Invalid, "--batch asks nobody").WithHint("give --approve never or always")
	}
	return o.run.Limits.Check()
}

// executeBatch judges all problems of a file.
func (o *testOptions) executeBatch(ctx context.Context, cfg Config) (err error) {
	if err := o.checkBatch(); err != nil {
		return err
	}
	in, total, err := o.batch.open(cfg.IO.In)
	if err != nil {
		return err
	}
	defer in.Close()
	out, stand, err := o.batch.openOutput(cfg.IO.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	svc, err := open[testService](ctx, cfg)
	if err != nil {
		return err
	}
	if o.run.Approve == "" {
		o.run.Approve = sandbox.ApproveNever
	}
	checker, err := o.loop.readChecker(svc, nil)
	if err != nil {
		return err
	}
	languages, err := svc.Languages(ctx)
	if err != nil {
		return err
	}
	like := o.loop.caseSuite()
	like.Checker = checker
	bar := newBatchBar(cfg.IO.Err, "problems ", total)
	tally := batchTally{bar: bar, all: stand.count, passed: stand.passed}
	b := testloop.Batch{
		Workers: o.batch.atOnce(),
		Judge: func(ctx context.Context, e testloop.Exercise) (testloop.Result, error) {
			return o.judgeOne(ctx, svc, languages, e, like)
		},
		Skip: func(id testloop.Name) bool { return stand.ids[id] },
	}
	bar.add(stand.count)
	err = b.Run(ctx, batch.LinesUntil(ctx, in), func(j testloop.Judged) error {
		tally.count(j)
		return writeLine(out, j)
	})
	bar.close()
	if err == nil && tally.all == 0 {
		return sandbox.Errorf(sandbox.Invalid, "no problems").WithHint("give at least one line to --batch")
	}
	if o.batch.output != "" {
		fmt.Fprintln(cfg.IO.Out, tally.String())
	}
	if err == nil && tally.passed < tally.all {
		err = exitCode(exitNotPassed)
	}
	return err
}

// judgeOne judges a problem where no other runs: tests in sandboxes that are new, or the
// same as new ones, the many runs of cases in a session of theirs.
func (o *testOptions) judgeOne(
	ctx context.Context, svc testService, languages []api.LanguageInfo, e testloop.Exercise, like testloop.CaseSuite,
) (r testloop.Result, err error) {
	one := *o
	e.Language = cmp.Or(e.Language, "python")
	if i := slices.IndexFunc(languages, func(l api.LanguageInfo) bool { return l.Called(e.Language) }); i >= 0 {
		e.Language = languages[i].Name
	}
	one.run.Limits = e.Limits.Or(o.run.Limits)
	suite := testloop.Suite{
		TestTimeout: time.Duration(o.testTimeout), Timeout: time.Duration(o.timeout), Run: sandbox.Run{Env: o.env, Approve: o.run.Approve},
	}
	if len(e.Cases) == 0 {
		suite.Runner = testloop.Runner{Report: testloop.Reporting(o.loop.runner), Command: o.loop.command}
		if o.loop.runner == "" && e.Runner == "" {
			if suite.Runner, err = runnerOf(languages, e.Language); err != nil {
				return r, err
			}
		}
		suite.Run.Limits, suite.Run.Image, suite.Run.Network = one.run.Limits, o.run.Image, o.run.Network
		suite.Run.Runtime, suite.Run.OCIRuntime = o.run.Runtime, o.run.OCIRuntime
		suite.Run.Warm = suite.Runner.Ours() && warms(languages, e.Language)
		return e.Judge(ctx, svc.Run, like, suite)
	}
	if e.Timeout > 0 {
		one.timeout = e.Timeout
	}
	exec, done, err := one.sandbox(ctx, svc, e.Language, nil)
	if err != nil {
		return r, err
	}
	r, err = e.Judge(ctx, exec, like, suite)
	return r, errors.Join(err, done())
}

// batchTally counts what came of problems.
type batchTally struct {
	bar                 *batchBar
	all, passed, failed int // failed: without a result
}

func (t *batchTally) count(j testloop.Judged) {
	t.all++
	switch {
	case j.Failed != nil:
		t.failed++
	case j.Result.AllPassed:
		t.passed++
	}
	t.bar.add(1)
}

// String is a line for people.
func (t *batchTally) String() string {
	text := fmt.Sprintf("%d of %s passed", t.passed, plural(t.all, "problem", "problems"))
	if t.failed > 0 {
		text += fmt.Sprintf(", %d without a result", t.failed)
	}
	return text
}
