//go:build linux

// Command session measures what sessions and the durable audit cost:
//
//	go run ./bench/session            tables, and exit code 1 where a bar does not hold
//	go run ./bench/session -json      one object a line
//	go run ./bench/session -smoke     a few samples, to see that all of it works
//
// It needs a Docker Engine on this host and Go to build caisson. Its sessions
// and containers are removed at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("session", run)) }

// fixture is caisson with a memory and without one.
type fixture struct {
	*rig.Rig
	audited *manager.Manager
	plain   *manager.Manager // remembers nothing
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f := &fixture{Rig: r}
	if f.plain, err = r.Manager(r.Config()); err != nil {
		return err
	}
	durable, err := r.Durable(ctx, r.Config())
	if err != nil {
		return err
	}
	if f.audited, err = r.Manager(durable); err != nil {
		return err
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{audit, command, openState, idle} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

// session makes a session that the fixture's end removes.
func (f *fixture) session(ctx context.Context, name string) error {
	limits := sandbox.Limits{CPUs: float64(runtime.NumCPU())}
	return f.Session(ctx, f.audited, sandbox.SessionOptions{Name: name, Limits: limits})
}

var justTrue = sandbox.Run{Command: []string{"true"}}

// audit measures a warm exec with a durable start and end, beside one without.
func audit(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "warm true, audited"
	if !s.Wants(name) {
		return nil
	}
	if err := f.session(ctx, "warm"); err != nil {
		return err
	}
	box, err := f.plain.Open(ctx, manager.OpenOptions{Language: "shell", Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	const with, without = "session, durable audit", "no audit"
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 500, Warmup: 20,
		Subjects: []measure.Subject{
			{Name: with, Sample: measure.Millis(func(ctx context.Context) error {
				return rig.Succeeded(f.audited.ExecIn(ctx, "warm", justTrue, sandbox.Streams{}))
			})},
			{Name: without, Sample: measure.Millis(func(ctx context.Context) error {
				return rig.Succeeded(box.Exec(ctx, justTrue, sandbox.Streams{}))
			})},
		},
		Rows: []measure.Row{{Name: "session/true/audit", Own: with, Peer: without, Bar: &measure.Bar{
			Asked: "p50 <= peer + 2 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+2 },
		}}},
	})
}

// command measures `caisson exec` as a process, beside `docker exec`.
func command(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "exec as a command"
	if !s.Wants(name) {
		return nil
	}
	if err := f.session(ctx, "command"); err != nil {
		return err
	}
	plain, err := f.Container(ctx, "shell", 0)
	if err != nil {
		return err
	}
	process := func(name string, args ...string) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, name, args...)
			cmd.Env = f.Environ()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", name, err, out)
			}
			return nil
		})
	}
	const own, peer = "caisson exec", "docker exec"
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 100, Warmup: 3,
		Subjects: []measure.Subject{
			{Name: own, Sample: process(f.Program("caisson"), "exec", "command", "--", "true")},
			{Name: peer, Sample: process("docker", "exec", plain, "true")},
		},
		Rows: []measure.Row{{Name: "session/command", Own: own, Peer: peer, Bar: measure.AtMost("p50 <= 0.5 x peer", 0.5)}},
	})
}
