//go:build linux

package main

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/sandbox"
)

// create measures a sandbox from nothing to the answer of its first exec,
// without a pool.
func create(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "create to first answer, true"
	if !s.Wants(name) {
		return nil
	}
	ref, err := f.Image(ctx, "shell")
	if err != nil {
		return err
	}
	const answer, run, whole = "caisson, to the answer", "caisson, and destroyed", "caisson run, whole process"
	const sealed, plain = "docker run --rm --network none", "docker run --rm"
	cpus := sandbox.DefaultLimits.CPUs
	bar := measure.AtMost("p50 <= 1.25 x peer", 1.25)
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 20, Warmup: 1,
		Subjects: []measure.Subject{
			{Name: answer, CPUs: cpus, Sample: f.firstAnswer},
			{Name: sealed, CPUs: cpus, Sample: measure.Millis(func(ctx context.Context) error {
				return f.command(ctx, "docker", "run", "--rm", "--network", "none", "--cpus", "0.5", ref, "true")
			})},
			{Name: run, CPUs: cpus, Sample: measure.Millis(func(ctx context.Context) error {
				return rig.Succeeded(f.manager.Run(ctx, sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}))
			})},
			{Name: plain, CPUs: cpus, Sample: measure.Millis(func(ctx context.Context) error {
				return f.command(ctx, "docker", "run", "--rm", "--cpus", "0.5", ref, "true")
			})},
			{Name: whole, CPUs: cpus, Sample: measure.Millis(func(ctx context.Context) error {
				return f.command(ctx, f.Program("caisson"), "run", "--", "true")
			})},
		},
		Rows: []measure.Row{
			{Name: "create/answer/docker-run-no-network", Own: answer, Peer: sealed, Bar: bar},
			{Name: "create/destroyed/docker-run-no-network", Own: run, Peer: sealed, Bar: bar},
			{Name: "create/process/docker-run-no-network", Own: whole, Peer: sealed, Bar: bar},
			{Name: "create/process/docker-run", Own: whole, Peer: plain},
		},
	})
}

// firstAnswer leaves the sandbox's end out of the sample.
func (f *fixture) firstAnswer(ctx context.Context) (float64, error) {
	start := time.Now()
	box, err := f.sandbox(ctx, "shell", 0)
	if err != nil {
		return 0, err
	}
	err = execIn(ctx, box, "true")
	took := float64(time.Since(start)) / float64(time.Millisecond)
	if closed := box.Close(); err == nil {
		err = closed
	}
	return took, err
}
