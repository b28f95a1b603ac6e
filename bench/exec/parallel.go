//go:build linux

package main

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/manager"
)

// sideBySide measures how many execs 8 sandboxes do in a second.
func sideBySide(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "8 sandboxes side by side, true"
	if !s.Wants(name) {
		return nil
	}
	const workers, while = 8, 1500 * time.Millisecond
	var boxes [workers]*manager.Sandbox
	for i := range boxes {
		if boxes[i], err = f.sandbox(ctx, "shell", f.cores); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, boxes[i].Close()) }()
	}
	n, err := f.nativeOf(ctx, s, "shell")
	if err != nil {
		return err
	}
	spawn := n.run("true")
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "exec/s", Rounds: 8, Warmup: 1,
		Subjects: []measure.Subject{
			{Name: unlimited, CPUs: f.cores, Sample: measure.Rate(workers, while, func(ctx context.Context, worker int) error {
				return execIn(ctx, boxes[worker], "true")
			})},
			{Name: nativeName, CPUs: f.cores, Sample: measure.Rate(workers, while, func(ctx context.Context, _ int) error {
				return spawn(ctx)
			})},
		},
		Rows: []measure.Row{
			{Name: "parallel/unlimited/native", Own: unlimited, Peer: nativeName, Bar: measure.AtLeast("p50 >= peer / 3", 1.0/3)},
		},
	})
}
