//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/sandbox"
)

// throughput measures how much 8 clients get done, each in a session of its own.
func throughput(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, judge = "8 clients, true", "go-judge, POST /run"
	if !s.Wants(name) {
		return nil
	}
	for i := range workers {
		for _, svc := range []api.Service{f.own, f.server.client} {
			if err := f.session(ctx, svc, number("crowd", i)); err != nil {
				return err
			}
		}
	}
	const while = 2 * time.Second
	set := measure.Set{
		Name: name, Unit: "exec/s", Rounds: 10, Warmup: 1,
		Subjects: []measure.Subject{
			{Name: inProcess, Sample: measure.Rate(workers, while, func(ctx context.Context, i int) error {
				return rig.Succeeded(f.own.Exec(ctx, number("crowd", i), justTrue, sandbox.Streams{}))
			})},
			{Name: overHTTP, Sample: measure.Rate(workers, while, func(ctx context.Context, i int) error {
				return f.server.exec(ctx, number("crowd", i))
			})},
		},
		Rows: []measure.Row{{Name: "server/crowd/in-process", Own: overHTTP, Peer: inProcess, Bar: measure.AtLeast("p50 >= 0.7 x peer", 0.7)}},
	}
	peer, err := goJudge(ctx, s, f.Rig)
	if err != nil {
		return err
	}
	if peer != nil {
		set.Subjects = append(set.Subjects, measure.Subject{Name: judge, Sample: measure.Rate(workers, while, func(ctx context.Context, _ int) error {
			return peer.run(ctx)
		})})
		set.Rows = append(set.Rows, measure.Row{Name: "server/crowd/go-judge", Own: overHTTP, Peer: judge, Bar: measure.AtLeast("p50 >= peer", 1)})
	}
	return s.Measure(ctx, set)
}

// hundred measures how long 100 executions take that are submitted at once, beside
// as many runs by as many workers in this process.
func hundred(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, own, queued = "100 runs at once", "8 workers in process", "server, executions"
	if !s.Wants(name) {
		return nil
	}
	runs := 100
	if s.Smoke {
		runs = workers
	}
	program := sandbox.Run{Language: "shell", Command: justTrue.Command}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 5,
		Subjects: []measure.Subject{
			{Name: own, Sample: measure.Millis(func(ctx context.Context) error {
				return all(ctx, runs, workers, func(ctx context.Context) error {
					return rig.Succeeded(f.own.Run(ctx, program, sandbox.Streams{}))
				})
			})},
			{Name: queued, Sample: measure.Millis(func(ctx context.Context) error {
				return all(ctx, runs, runs, func(ctx context.Context) error { return execution(ctx, f.server.client, program) })
			})},
		},
		Rows: []measure.Row{{Name: "server/hundred", Own: queued, Peer: own, Bar: measure.AtMost("p50 <= 1.3 x peer", 1.3)}},
	})
}

// all does something n times, at most so many at once.
func all(ctx context.Context, n, atOnce int, do func(context.Context) error) error {
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(atOnce)
	for range n {
		tasks.Go(func() error { return do(ctx) })
	}
	return tasks.Wait()
}

// execution submits a run and waits for its answer.
func execution(ctx context.Context, svc api.Service, run sandbox.Run) error {
	e, err := svc.SubmitExecution(ctx, sandbox.ExecutionOptions{Run: run}, sandbox.Local{})
	for err == nil && !e.State.Over() {
		e, err = svc.Execution(ctx, e.ID, sandbox.Duration(time.Minute))
	}
	if err == nil && e.State != sandbox.ExecutionSucceeded {
		err = fmt.Errorf("execution %s is %s: %+v %+v", e.ID, e.State, e.Exit, e.Error)
	}
	return err
}

// idle measures what a server holds while nobody asks it for anything: before the
// first request, and after a run.
func idle(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, first, later = "memory of an idle server", "before the first run", "after a run"
	if !s.Wants(name) {
		return nil
	}
	samples := map[string][]float64{}
	rest := func(subject string) error {
		if err := rested(ctx, f.server.pid); err != nil {
			return err
		}
		for range 10 { // what it does by itself is back in its memory by then
			select {
			case <-time.After(time.Second / 2):
			case <-ctx.Done():
				return ctx.Err()
			}
			mb, _, err := rig.Memory(f.server.pid)
			if err != nil {
				return err
			}
			samples[subject] = append(samples[subject], mb)
		}
		return nil
	}
	if err := rest(first); err != nil {
		return err
	}
	run := sandbox.Run{Language: "shell", Code: "echo once"}
	if err := rig.Succeeded(f.server.client.Run(ctx, run, sandbox.Streams{})); err != nil {
		return err
	}
	if err := rest(later); err != nil {
		return err
	}
	bar := measure.Below("<= 40 MB", 40)
	return s.Report(measure.Set{
		Name: name, Unit: "MB", Subjects: []measure.Subject{{Name: first}, {Name: later}},
		Rows: []measure.Row{{Name: "server/idle/fresh", Own: first, Bar: bar}, {Name: "server/idle/used", Own: later, Bar: bar}},
	}, samples)
}

// rested waits until a server that nobody asks has given back what it can, of which
// the pages of its program are the last.
func rested(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for most := 0; ; {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return err
		}
		var kib int
		_, mapped, _ := strings.Cut(string(status), "RssFile:")
		if _, err := fmt.Sscan(mapped, &kib); err != nil {
			return fmt.Errorf("read what the server has mapped: %w", err)
		}
		if most = max(most, kib); kib < most*2/3 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the server to rest: %w", ctx.Err())
		}
	}
}
