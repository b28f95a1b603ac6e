//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

var justTrue = sandbox.Run{Command: []string{"true"}}

// created measures a session from nothing to its first answer. What it costs to remove
// it is not measured.
func (f *fixture) created(c *caisson.Caisson, runtime string) func(context.Context) (float64, error) {
	return func(ctx context.Context) (ms float64, err error) {
		if err := f.filled(ctx); err != nil {
			return 0, err
		}
		name := ""
		ms, err = measure.Millis(func(ctx context.Context) error {
			made, err := c.CreateSession(ctx, api.SessionOptions{Language: "shell", Runtime: runtime}, sandbox.Local{})
			if err != nil {
				return err
			}
			name = made.Name
			return rig.Succeeded(c.Exec(ctx, name, justTrue, sandbox.Streams{}))
		})(ctx)
		if name != "" {
			err = errors.Join(err, c.RemoveSession(context.WithoutCancel(ctx), name, true))
		}
		return ms, err
	}
}

// session measures sessions on the default runtime.
func session(ctx context.Context, s *measure.Suite, f *fixture) error {
	const plain = "caisson, without a pool"
	return s.Measure(ctx, measure.Set{
		Name: "session, create to first answer", Unit: "ms", Rounds: 100, Warmup: 3,
		Subjects: []measure.Subject{
			{Name: own, CPUs: 0.5, Sample: f.created(f.c, docker.Name)},
			{Name: plain, CPUs: 0.5, Every: 5, Sample: f.created(f.plain, docker.Name)},
			{Name: peer, CPUs: 0.5, Sample: measure.Millis(f.docker)},
		},
		Rows: []measure.Row{
			{Name: "pool/session", Own: own, Peer: peer, Bar: measure.AtMost("p50 <= 0.05 x peer", 0.05)},
			{Name: "pool/session/p99", Own: own, Peer: peer, Bar: tail("p99 <= 0.2 x peer", 0.2)},
			{Name: "pool/session/plain", Own: own, Peer: plain},
		},
	})
}

// light measures the same without a container engine.
func light(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, session, shot = "bubblewrap", "session, create to first answer", "one-shot"
	if !s.Wants(name) {
		return nil
	}
	run := justTrue
	run.Language, run.Runtime = "shell", bubblewrap.Name
	once := func(c *caisson.Caisson) func(context.Context) (float64, error) {
		at := measure.Millis(func(ctx context.Context) error { return rig.Succeeded(c.Run(ctx, run, sandbox.Streams{})) })
		return func(ctx context.Context) (float64, error) {
			if err := f.filled(ctx); err != nil {
				return 0, err
			}
			return at(ctx)
		}
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 50, Warmup: 3,
		Subjects: []measure.Subject{
			{Name: session + ", from the pool", CPUs: 0.5, Sample: f.created(f.c, bubblewrap.Name)},
			{Name: session + ", without a pool", CPUs: 0.5, Sample: f.created(f.plain, bubblewrap.Name)},
			{Name: shot + ", from the pool", CPUs: 0.5, Sample: once(f.c)},
			{Name: shot + ", without a pool", CPUs: 0.5, Sample: once(f.plain)},
			{Name: peer, CPUs: 0.5, Every: 5, Sample: measure.Millis(f.docker)},
		},
		Rows: []measure.Row{
			{Name: "pool/bubblewrap/session", Own: session + ", from the pool", Peer: session + ", without a pool"},
			{Name: "pool/bubblewrap/docker-run", Own: session + ", from the pool", Peer: peer, Bar: measure.AtMost("p50 <= 0.05 x peer", 0.05)},
			{Name: "pool/bubblewrap/one-shot", Own: shot + ", from the pool", Peer: shot + ", without a pool"},
		},
	})
}

// many measures a warm exec with more and more sessions open.
func many(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "warm exec, sessions open"
	if !s.Wants(name) {
		return nil
	}
	counts := []int{1, 50, 200}
	if s.Smoke {
		counts = []int{1, 2, 3}
	}
	defer func() { err = errors.Join(err, closeAll(context.WithoutCancel(ctx), f.plain, counts[len(counts)-1])) }()
	set := measure.Set{Name: name, Unit: "ms"}
	samples, open := map[string][]float64{}, 0
	for _, n := range counts {
		for ; open < n; open++ {
			if _, err := f.plain.CreateSession(ctx, api.SessionOptions{Name: fmt.Sprintf("s%d", open), Language: "shell"}, sandbox.Local{}); err != nil {
				return err
			}
			if err := rig.Succeeded(f.plain.Exec(ctx, fmt.Sprintf("s%d", open), justTrue, sandbox.Streams{})); err != nil {
				return err
			}
		}
		rounds, label := 500, fmt.Sprintf("%d open", n)
		if s.Smoke {
			rounds = 3
		}
		for i := range rounds {
			took, err := measure.Millis(func(ctx context.Context) error {
				return rig.Succeeded(f.plain.Exec(ctx, fmt.Sprintf("s%d", i%n), justTrue, sandbox.Streams{}))
			})(ctx)
			if err != nil {
				return err
			}
			samples[label] = append(samples[label], took)
		}
		set.Subjects = append(set.Subjects, measure.Subject{Name: label, CPUs: 0.5})
	}
	for _, sub := range set.Subjects[1:] {
		set.Rows = append(set.Rows, measure.Row{Name: "pool/" + sub.Name, Own: sub.Name, Peer: set.Subjects[0].Name, Bar: measure.AtMost("p50 <= 1.3 x peer", 1.3)})
	}
	return s.Report(set, samples)
}

// closeAll removes what many has made.
func closeAll(ctx context.Context, c *caisson.Caisson, n int) error {
	var errs []error
	for i := range n {
		if err := c.RemoveSession(ctx, fmt.Sprintf("s%d", i), true); !errors.Is(err, sandbox.NotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// hostile is an owner who asks for as much as there is.
const hostile = "eve"

// load is what that owner runs, all the time.
var load = sandbox.Run{Command: []string{"sh", "-c", "for i in 1 2 3; do while :; do :; done & done; head -c 20M /dev/zero > f; sleep 2; kill $!"}}

// beside measures warm execs of an owner beside another who does what they may.
func beside(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name, alone, with = "beside a hostile owner", "alone", "beside a hostile owner"
	if !s.Wants(name) {
		return nil
	}
	ann := sandbox.WithCaller(ctx, sandbox.Caller{Owner: "ann"})
	made, err := f.c.CreateSession(ann, api.SessionOptions{Language: "shell"}, sandbox.Local{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.c.RemoveSession(context.WithoutCancel(ann), made.Name, true)) }()
	rounds := 500
	if s.Smoke {
		rounds = 3
	}
	samples := map[string][]float64{}
	take := func(label string) error {
		for range rounds {
			took, err := measure.Millis(func(ctx context.Context) error {
				return rig.Succeeded(f.c.Exec(ctx, made.Name, justTrue, sandbox.Streams{}))
			})(ann)
			if err != nil {
				return err
			}
			samples[label] = append(samples[label], took)
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	}
	if err := errors.Join(f.filled(ctx), take(alone)); err != nil {
		return err
	}
	eve, stop := context.WithCancel(sandbox.WithCaller(ctx, sandbox.Caller{Owner: hostile}))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for eve.Err() == nil {
				_, _ = f.c.Run(eve, load, sandbox.Streams{}) // what becomes of it is hers
			}
		})
	}
	time.Sleep(2 * time.Second)
	err = take(with)
	stop()
	all.Wait()
	if err != nil {
		return err
	}
	return s.Report(measure.Set{
		Name: name, Unit: "ms", Subjects: []measure.Subject{{Name: alone, CPUs: 0.5}, {Name: with, CPUs: 0.5}},
		Rows: []measure.Row{{Name: "pool/hostile", Own: with, Peer: alone, Bar: tail("p99 <= 1.5 x peer", 1.5)}},
	}, samples)
}
