//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-dev/caisson/batch"
	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/sandbox"
)

// programs are HumanEval's canonical solutions, each with its tests; nil where there
// is no corpus.
func programs() (all []string, err error) {
	dir := os.Getenv("CORPUS")
	if dir == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "humaneval.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var r struct {
			Code  string `json:"code"`
			Test  string `json:"test"`
			Entry string `json:"entry_point"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("humaneval.jsonl: %w", err)
		}
		all = append(all, r.Code+"\n"+r.Test+"\ncheck("+r.Entry+")\n")
	}
	return all, err
}

// batches measures many programs of one file, by as many workers each.
func batches(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, warm, native = "batch of HumanEval", "caisson, a batch of warm runs", "python3 on this host"
	all, err := programs()
	switch {
	case err != nil || !s.Wants(name):
		return err
	case all == nil:
		s.Note("%s: no humaneval.jsonl in CORPUS", name)
		return nil
	}
	if s.Smoke {
		all = all[:4]
	}
	perSecond := func(do func(context.Context) error) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			if err := f.filled(ctx); err != nil {
				return 0, err
			}
			started := time.Now()
			err := do(ctx)
			return float64(len(all)) / time.Since(started).Seconds(), err
		}
	}
	process := func(args ...string) func(context.Context) (float64, error) {
		return perSecond(func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(runtime.NumCPU())
			for _, code := range all {
				g.Go(func() error {
					out, err := exec.CommandContext(ctx, args[0], append(args[1:len(args):len(args)], code)...).CombinedOutput()
					if err != nil {
						return fmt.Errorf("%s: %w: %s", args[0], err, out)
					}
					return nil
				})
			}
			return g.Wait()
		})
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "runs/s", Rounds: 3, Warmup: 1,
		Subjects: []measure.Subject{
			{Name: own, CPUs: 1, Sample: perSecond(func(ctx context.Context) error { return f.batch(ctx, all, false) })},
			{Name: warm, CPUs: 1, Sample: perSecond(func(ctx context.Context) error { return f.batch(ctx, all, true) })},
			{Name: peer, CPUs: 1, Sample: process("docker", "run", "--rm", "--network", "none", "--cpus", "1", f.python, "python3", "-c")},
			{Name: native, Sample: process("python3", "-c")},
		},
		Rows: []measure.Row{
			{Name: "pool/batch", Own: own, Peer: peer},
			{Name: "pool/batch/warm", Own: warm, Peer: peer, Bar: measure.AtLeast("p50 >= 3 x peer", 3)},
			{Name: "pool/batch/native", Own: warm, Peer: native, Bar: measure.AtLeast("p50 >= 0.33 x peer", 0.33)},
		},
	})
}

// batch carries out the programs as `caisson run --batch` does.
func (f *fixture) batch(ctx context.Context, programs []string, warm bool) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for _, code := range programs {
		if err := enc.Encode(sandbox.Run{Language: "python", Code: code}); err != nil {
			return err
		}
	}
	bad := 0
	runs := batch.Runs{
		Workers: runtime.NumCPU(), Do: f.c.Run, LanguageOf: f.c.LanguageOf,
		Like: sandbox.Run{Approve: sandbox.ApproveAlways, Warm: warm, Limits: sandbox.Limits{CPUs: 1}},
	}
	err := runs.Run(ctx, batch.Lines(&lines), func(e batch.Ended) error {
		if e.Failed != nil || e.Result.Code != 0 {
			bad++
		}
		return e.Failed
	})
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d programs did not end well", bad, len(programs))
	}
	return err
}
