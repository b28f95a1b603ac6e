package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/batch"
	"github.com/caisson-dev/caisson/sandbox"
)

// exitNoResult is the code of a batch of runs where not each has a result.
const exitNoResult = 1

// checkBatch says which flags and arguments a batch of runs cannot have.
func (o *runOptions) checkBatch(args []string) error {
	if err := o.batch.check(); err != nil {
		return err
	}
	switch {
	case len(args) > 0 || o.hasCode:
		return sandbox.Errorf(sandbox.Invalid, "--batch beside something to run").WithHint("leave out -c, FILE and COMMAND: the lines say it")
	case o.stdin != "":
		return sandbox.Errorf(sandbox.Invalid, "--batch beside --stdin").WithHint(`give each line its own "stdin"`)
	case o.into != "" || o.summary:
		return sandbox.Errorf(sandbox.Invalid, "--batch beside --artifacts-to or --summary").WithHint("leave them out: artifacts and usage are in the results")
	case o.run.Approve == sandbox.ApproveAsk:
		return sandbox.Errorf(sandbox.Invalid, "--batch asks nobody").WithHint("give --approve never or always")
	}
	return nil
}

// executeBatch carries out the runs of a file.
func (o *runOptions) executeBatch(ctx context.Context, cfg Config, args []string) (err error) {
	if err := o.checkBatch(args); err != nil {
		return err
	}
	if err := o.collect(cfg); err != nil {
		return err
	}
	answered, endTools, err := o.openTools(ctx, cfg)
	if err != nil {
		return err
	}
	defer endTools()
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
	svc, err := open[runRoles](ctx, cfg)
	if err != nil {
		return err
	}
	warnUnwalled(cfg, o.run.Runtime)
	bar := newBatchBar(cfg.IO.Err, "runs ", total)
	tally := runTally{all: stand.count}
	runs := batch.Runs{
		Workers: o.batch.atOnce(), Ordered: o.ordered, Like: o.run, Local: sandbox.Local{Contents: o.contents.open, Tools: answered}, Do: svc.Run, LanguageOf: svc.LanguageOf,
		Skip: func(id batch.Name) bool { return stand.ids[id] },
	}
	bar.add(stand.count)
	err = runs.Run(ctx, batch.LinesUntil(ctx, in), func(e batch.Ended) error {
		tally.count(e)
		bar.add(1)
		return writeLine(out, e)
	})
	bar.close()
	return o.concludeBatch(cfg, tally, err)
}

// concludeBatch tells what came of all runs.
func (o *runOptions) concludeBatch(cfg Config, tally runTally, err error) error {
	if err == nil && tally.all == 0 {
		return sandbox.Errorf(sandbox.Invalid, "no runs").WithHint("give at least one line to --batch")
	}
	if o.batch.output != "" {
		fmt.Fprintln(cfg.IO.Out, tally.String())
	}
	if err == nil && tally.failed > 0 {
		return exitCode(exitNoResult)
	}
	return err
}

// runTally counts what came of runs.
type runTally struct{ all, failed int }

func (t *runTally) count(e batch.Ended) {
	t.all++
	if e.Failed != nil {
		t.failed++
	}
}

// String is a line for people.
func (t *runTally) String() string {
	text := []string{plural(t.all-t.failed, "result", "results")}
	if t.failed > 0 {
		text = append(text, plural(t.failed, "error", "errors"))
	}
	return strings.Join(text, ", ")
}
