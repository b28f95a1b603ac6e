//go:build linux

package main

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// hardening measures what the second layer costs an exec: the same program in a
// sandbox with it and in one without.
func hardening(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "warm hardened"
	if !s.Wants(name) {
		return nil
	}
	const hard, soft = "caisson, hardened", "caisson, hardening off"
	set := measure.Set{Name: name, Unit: "ms", Rounds: 1000, Warmup: 20}
	for subject, how := range map[string]sandbox.Hardening{hard: sandbox.HardeningStrict, soft: sandbox.HardeningOff} {
		box, failed := f.manager.Open(ctx, manager.OpenOptions{Language: "shell", Limits: sandbox.Limits{CPUs: f.cores, Hardening: how}})
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, box.Close()) }()
		set.Subjects = append(set.Subjects, measure.Subject{Name: subject, CPUs: f.cores, Sample: measure.Millis(func(ctx context.Context) error {
			return execIn(ctx, box, "true")
		})})
	}
	set.Rows = []measure.Row{{Name: "true/hardened/off", Own: hard, Peer: soft, Bar: &measure.Bar{
		Asked: "p50 <= peer + 0.1 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+0.1 },
	}}}
	return s.Measure(ctx, set)
}
