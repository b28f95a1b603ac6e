//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// flood is how much one exec prints.
const flood = 256 * sandbox.MiB

// output measures how fast bytes come from a program to the caller, who throws
// them away.
func output(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "256 MiB of output"
	if !s.Wants(name) {
		return nil
	}
	const dockerTight = "docker exec, same limit"
	w, err := f.warm(ctx, "shell")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	free, err := f.Container(ctx, "shell", f.cores)
	if err != nil {
		return err
	}
	tight, err := f.Container(ctx, "shell", sandbox.DefaultLimits.CPUs)
	if err != nil {
		return err
	}
	own := func(s *manager.Sandbox) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error { return printIn(ctx, s) })
	}
	theirs := func(id string) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			return f.command(ctx, "docker", "exec", id, "head", "-c", strconv.Itoa(int(flood)), "/dev/zero")
		})
	}
	bar := measure.AtMost("p50 <= peer", 1)
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 7, Warmup: 1, Settle: settle,
		Subjects: []measure.Subject{
			{Name: unlimited, CPUs: f.cores, Sample: own(w.free)},
			{Name: dockerExec, CPUs: f.cores, Sample: theirs(free)},
			{Name: limited, CPUs: sandbox.DefaultLimits.CPUs, Sample: own(w.tight)},
			{Name: dockerTight, CPUs: sandbox.DefaultLimits.CPUs, Sample: theirs(tight)},
		},
		Rows: []measure.Row{
			{Name: "output/unlimited/docker-exec", Own: unlimited, Peer: dockerExec, Bar: bar},
			{Name: "output/default/docker-exec", Own: limited, Peer: dockerTight, Bar: bar},
		},
	})
}

// printIn floods the caller once, and sees to it that every byte came.
func printIn(ctx context.Context, s *manager.Sandbox) error {
	got := &counter{}
	res, err := s.Exec(ctx, sandbox.Run{
		Command: []string{"head", "-c", strconv.Itoa(int(flood)), "/dev/zero"}, ExecLimits: sandbox.ExecLimits{MaxOutput: 2 * flood},
	}, sandbox.Streams{Stdout: got})
	if err := rig.Succeeded(res, err); err != nil {
		return err
	}
	if got.n != int64(flood) {
		return fmt.Errorf("%d bytes came, %d were printed", got.n, flood)
	}
	return nil
}

// counter throws bytes away and counts them.
type counter struct{ n int64 }

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
