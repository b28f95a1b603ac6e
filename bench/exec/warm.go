//go:build linux

package main

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// Names of subjects that several sets have.
const (
	unlimited  = "caisson, CPU not limited"
	limited    = "caisson, default limits"
	nativeName = "native spawn"
	dockerExec = "docker exec"
)

// settle lets an engine finish what an exec of its leaves behind.
const settle = 100 * time.Millisecond

// warm is a pair of open sandboxes: without and with the default CPU limit.
type warm struct {
	free, tight *manager.Sandbox
}

func (f *fixture) warm(ctx context.Context, language string) (w warm, err error) {
	if w.free, err = f.sandbox(ctx, language, f.cores); err != nil {
		return w, err
	}
	w.tight, err = f.sandbox(ctx, language, 0)
	return w, err
}

func (w warm) close() error { return errors.Join(w.free.Close(), w.tight.Close()) }

// subjects are the pair, running argv.
func (w warm) subjects(f *fixture, argv ...string) []measure.Subject {
	run := func(s *manager.Sandbox) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error { return execIn(ctx, s, argv...) })
	}
	return []measure.Subject{
		{Name: unlimited, CPUs: f.cores, Sample: run(w.free)},
		{Name: limited, CPUs: sandbox.DefaultLimits.CPUs, Sample: run(w.tight)},
	}
}

// warmTrue measures the way of an exec alone: the program does nothing.
func warmTrue(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "warm true"
	if !s.Wants(name) {
		return nil
	}
	w, err := f.warm(ctx, "shell")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	n, err := f.nativeOf(ctx, s, "shell")
	if err != nil {
		return err
	}
	plain, err := f.Container(ctx, "shell", f.cores)
	if err != nil {
		return err
	}
	bar := &measure.Bar{Asked: "p50 <= peer + 0.7 ms, p99 <= 5 ms", Holds: func(own, peer measure.Stats) bool {
		return own.P50 <= peer.P50+0.7 && own.P99 <= 5
	}}
	const slow = 25
	const captured, api = "native spawn, output taken", "engine's exec API"
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 1000, Warmup: 20, Settle: settle,
		Subjects: append(w.subjects(f, "true"),
			measure.Subject{Name: nativeName, CPUs: f.cores, Sample: measure.Millis(n.run("true"))},
			measure.Subject{Name: captured, CPUs: f.cores, Sample: measure.Millis(n.captured("true"))},
			measure.Subject{Name: dockerExec, CPUs: f.cores, Every: slow, Sample: measure.Millis(func(ctx context.Context) error {
				return f.command(ctx, "docker", "exec", plain, "true")
			})},
			measure.Subject{Name: api, CPUs: f.cores, Every: slow, Sample: measure.Millis(f.execAPI(plain, "true"))},
		),
		Rows: []measure.Row{
			{Name: "true/unlimited/native", Own: unlimited, Peer: nativeName, Bar: bar},
			{Name: "true/default/native", Own: limited, Peer: nativeName, Bar: bar},
			{Name: "true/unlimited/native-captured", Own: unlimited, Peer: captured},
			{Name: "true/unlimited/docker-exec", Own: unlimited, Peer: dockerExec},
			{Name: "true/unlimited/engine-exec", Own: unlimited, Peer: api},
		},
	})
}

// warmPython measures an interpreter's start, where CPU time counts.
func warmPython(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "warm python3 -c pass"
	if !s.Wants(name) {
		return nil
	}
	w, err := f.warm(ctx, "python")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	n, err := f.nativeOf(ctx, s, "python")
	if err != nil {
		return err
	}
	inside, err := w.free.Exec(ctx, sandbox.Run{Command: []string{"python3", "--version"}}, sandbox.Streams{})
	if err := rig.Succeeded(inside, err); err != nil {
		return err
	}
	s.Note("sandbox: %.40s; native: %s", inside.Stdout[:len(inside.Stdout)-1], n.version(ctx, "python3"))
	argv := []string{"python3", "-c", "pass"}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 400, Warmup: 10,
		Subjects: append(w.subjects(f, argv...),
			measure.Subject{Name: nativeName, CPUs: f.cores, Sample: measure.Millis(n.run(argv[0], argv[1:]...))},
		),
		Rows: []measure.Row{
			{Name: "python/unlimited/native", Own: unlimited, Peer: nativeName, Bar: measure.AtMost("p50 <= 1.3 x peer", 1.3)},
			{Name: "python/default/native", Own: limited, Peer: nativeName, Bar: &measure.Bar{
				Asked: "p99 <= 3 x own p50", Holds: func(own, _ measure.Stats) bool { return own.P99 <= 3*own.P50 },
			}},
		},
	})
}
