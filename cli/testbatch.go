package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// mostLine bounds one problem of a batch.
const mostLine = 64 << 20

// batchOptions are the flags of `caisson test` about many problems.
type batchOptions struct {
	file    string
	workers int
	output  string
	resume  bool
}

func (o *batchOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "batch", "", "judge the problems in this `FILE`, one JSON object a line; - is standard input")
	f.IntVar(&o.workers, "workers", 0, "judge so many problems at once (default one for each processor)")
	f.StringVar(&o.output, "output", "", "write results to this `FILE` instead of standard output")
	f.BoolVar(&o.resume, "resume", false, "leave out problems whose result stands in the file of --output, and add to it")
}

// given reports whether flags are set that are for a batch alone.
func (o *batchOptions) given() bool { return o.workers != 0 || o.output != "" || o.resume }

func (o *testOptions) checkBatch() error {
	b := o.batch
	switch {
	case b.file == "":
		return sandbox.Errorf(sandbox.Invalid, "--workers, --output and --resume are for --batch").WithHint("give --batch FILE, or leave them out")
	case o.solution != "" || o.tests != "" || o.loop.cases != "" || o.session != "" || o.junit != "" || o.loop.language != "":
		return sandbox.Errorf(sandbox.Invalid, "--batch beside flags about one problem").WithHint("leave out --solution, --tests, --cases, --language, --session and --junit: the lines say it")
	case o.loop.reviser != "" || o.loop.url != "":
		return sandbox.Errorf(sandbox.Invalid, "--batch judges each problem once").WithHint("leave out --reviser and --reviser-url")
	case b.workers < 0:
		return sandbox.Errorf(sandbox.Invalid, "--workers %d is out of range", b.workers).WithHint("it takes at least 1")
	case b.resume && b.output == "":
		return sandbox.Errorf(sandbox.Invalid, "--resume without --output").WithHint("give the file that has the results")
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
	bar := newBatchBar(cfg.IO.Err, total)
	tally := batchTally{bar: bar, all: stand.count, passed: stand.passed}
	b := testloop.Batch{
		Workers: o.batch.workers,
		Judge: func(ctx context.Context, e testloop.Exercise) (testloop.Result, error) {
			return o.judgeOne(ctx, svc, languages, e, like)
		},
		Skip: func(id testloop.Name) bool { return stand.ids[id] },
	}
	if b.Workers == 0 {
		b.Workers = runtime.NumCPU()
	}
	bar.add(stand.count)
	err = b.Run(ctx, linesOf(ctx, in), func(j testloop.Judged) error {
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

// judgeOne judges a problem where no other runs: tests in sandboxes of their own,
// the many runs of cases in a session of theirs.
func (o *testOptions) judgeOne(
	ctx context.Context, svc testService, languages []api.LanguageInfo, e testloop.Exercise, like testloop.CaseSuite,
) (r testloop.Result, err error) {
	one := *o
	e.Language = cmp.Or(e.Language, "python")
	if i := slices.IndexFunc(languages, func(l api.LanguageInfo) bool { return l.Called(e.Language) }); i >= 0 {
		e.Language = languages[i].Name
	}
	one.run.Limits = filled(e.Limits, o.run.Limits)
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

// filled are limits, and those of others where they have none.
func filled(l, others sandbox.Limits) sandbox.Limits {
	for _, f := range []struct{ own, other *sandbox.Bytes }{
		{&l.Memory, &others.Memory}, {&l.Workspace, &others.Workspace}, {&l.Tmp, &others.Tmp}, {&l.Shm, &others.Shm}, {&l.FileSize, &others.FileSize},
	} {
		if *f.own == 0 {
			*f.own = *f.other
		}
	}
	if l.CPUs == 0 {
		l.CPUs = others.CPUs
	}
	if l.PIDs == 0 {
		l.PIDs = others.PIDs
	}
	if l.OpenFiles == 0 {
		l.OpenFiles = others.OpenFiles
	}
	return l
}

// open opens the problems, and counts them where they are a file; else total is 0.
func (o *batchOptions) open(stdin io.Reader) (in io.ReadCloser, total int, err error) {
	if o.file == "-" {
		return io.NopCloser(stdin), 0, nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, 0, missing(o.file, err)
	}
	for line, err := range fileLines(f) {
		if err != nil {
			return nil, 0, errors.Join(sandbox.Errorf(sandbox.Invalid, "%s: %w", o.file, err), f.Close())
		}
		if len(bytes.TrimSpace(line)) > 0 {
			total++
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, 0, errors.Join(sandbox.Errorf(sandbox.Invalid, "%s: %w", o.file, err).WithHint("give a file, or - and a pipe"), f.Close())
	}
	return f, total, nil
}

// fileLines are the lines of a text, the last one with or without its end.
func fileLines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, mostLine)
		for lines.Scan() {
			if !yield(bytes.Clone(lines.Bytes()), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("read problems: %w", err))
		}
	}
}

// linesOf are the lines of an input that nobody may end: once ctx is over they
// are, and who waits to read another is left behind until this process ends.
func linesOf(ctx context.Context, r io.Reader) iter.Seq2[[]byte, error] {
	type line struct {
		text []byte
		err  error
	}
	return func(yield func([]byte, error) bool) {
		read := make(chan line)
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			defer close(read)
			for text, err := range fileLines(r) {
				select {
				case read <- line{text, err}:
				case <-stop:
					return
				}
			}
		}()
		for {
			select {
			case l, more := <-read:
				if !more || !yield(l.text, l.err) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// standing is what a file of results has already.
type standing struct {
	ids           map[testloop.Name]bool
	count, passed int
}

// openOutput opens what results are written to. To resume, it keeps whole lines
// that have a result: half a line, and lines that have an error, are taken out,
// and their problems run again.
func (o *batchOptions) openOutput(stdout io.Writer) (io.WriteCloser, standing, error) {
	stand := standing{ids: map[testloop.Name]bool{}}
	if o.output == "" {
		return unclosed{stdout}, stand, nil
	}
	old, err := os.ReadFile(o.output)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, stand, missing(o.output, err)
	case !o.resume && len(old) > 0:
		return nil, stand, sandbox.Errorf(sandbox.Conflict, "%s has something in it", o.output).WithHint("add --resume to go on with it, or remove it")
	}
	kept, err := stand.keep(old)
	if err != nil {
		return nil, stand, sandbox.Errorf(sandbox.Invalid, "%s: %w", o.output, err).WithHint("--output has to name a file of results")
	}
	if !bytes.Equal(kept, old) {
		if err := replaceFile(o.output, kept); err != nil {
			return nil, stand, err
		}
	}
	f, err := os.OpenFile(o.output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, stand, sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("check the folder of --output")
	}
	return f, stand, nil
}

// keep returns the lines that stay, and notes whose they are.
func (s *standing) keep(old []byte) ([]byte, error) {
	kept := make([]byte, 0, len(old))
	number := 0
	for line := range bytes.Lines(old) {
		number++
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // half a line, the last
		}
		var j struct {
			ID        testloop.Name   `json:"id"`
			AllPassed bool            `json:"all_passed"`
			Error     json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &j); err != nil || j.ID == "" {
			return nil, fmt.Errorf("line %d is no result", number)
		}
		if j.Error != nil || s.ids[j.ID] {
			continue
		}
		s.ids[j.ID] = true
		s.count++
		if j.AllPassed {
			s.passed++
		}
		kept = append(kept, line...)
	}
	return kept, nil
}

// replaceFile writes a file such that there is the old one or the new one.
func replaceFile(name string, text []byte) error {
	wrong := func(err error) error {
		return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("check the folder of --output")
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".results-*")
	if err != nil {
		return wrong(err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(wrong(err), os.Remove(f.Name()))
	}
	return nil
}

// unclosed is a writer that is another's to close.
type unclosed struct{ io.Writer }

// Close implements [io.Closer].
func (unclosed) Close() error { return nil }

// writeLine writes a result in one call, so that only a death can leave half.
func writeLine(w io.Writer, j testloop.Judged) error {
	b, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	return nil
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

// batchBar shows on a terminal how far a batch is; elsewhere nothing.
type batchBar struct {
	pool *mpb.Progress
	bar  *mpb.Bar
}

// newBatchBar begins one. A total of 0 is not known.
func newBatchBar(w io.Writer, total int) *batchBar {
	if f, ok := w.(*os.File); !ok || !isTerminal(f) {
		return &batchBar{}
	}
	pool := mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(120*time.Millisecond))
	name := mpb.PrependDecorators(decor.Name("problems "))
	if total == 0 {
		return &batchBar{pool, pool.AddSpinner(0, name, mpb.BarRemoveOnComplete(), mpb.AppendDecorators(decor.CurrentNoUnit("%d")))}
	}
	return &batchBar{pool, pool.AddBar(int64(total), name, mpb.BarRemoveOnComplete(), mpb.AppendDecorators(decor.CountersNoUnit("%d of %d")))}
}

func (b *batchBar) add(n int) {
	if b.bar != nil {
		b.bar.IncrBy(n)
	}
}

func (b *batchBar) close() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.pool.Wait()
	}
}
