//go:build linux

package main

import (
	"context"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/images"
)

// ensure looks an image up that is there: in a process that has seen it, and in
// one that has not.
func ensure(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "ensure of a present image"
	if !s.Wants(name) {
		return nil
	}
	shell, err := f.Images.Language("shell")
	if err != nil {
		return err
	}
	img, err := f.Images.Ensure(ctx, shell.Image)
	if err != nil {
		return err
	}
	fresh := func(ctx context.Context) error {
		other, err := images.New(images.Config{Engine: f.Engine, StateDir: f.Dir})
		if err == nil {
			_, err = other.Ensure(ctx, img.Ref)
		}
		return err
	}
	seen := func(ctx context.Context) error {
		_, err := f.Images.Ensure(ctx, shell.Image)
		return err
	}
	inspect := func(ctx context.Context) error {
		_, err := f.API.ImageInspect(ctx, img.Ref)
		return err
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 300, Warmup: 10,
		Subjects: []measure.Subject{
			{Name: "seen in this process", Sample: measure.Millis(seen)},
			{Name: "not seen yet", Sample: measure.Millis(fresh)},
			{Name: "the engine's inspect", Sample: measure.Millis(inspect)},
		},
		Rows: []measure.Row{
			{Name: "images/ensure/seen", Own: "seen in this process", Bar: measure.Below("every one <= 3 ms", 3)},
			{Name: "images/ensure/first", Own: "not seen yet", Peer: "the engine's inspect", Bar: &measure.Bar{
				Asked: "p50 <= 3 ms", Holds: func(own, _ measure.Stats) bool { return own.P50 <= 3 },
			}},
		},
	})
}
