//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/bench/rig/judge"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// oneShotCommand has this program do one run in a fresh process and end. Its
// arguments are the rig's folder, whether it judges, and the round.
const oneShotCommand = "one-shot"

func oneShot(args []string) int {
	if len(args) != 3 {
		return 2
	}
	if err := runOnce(context.Background(), args[0], args[1] == judged, args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "one-shot:", err)
		return 125
	}
	return 0
}

// runOnce is what `caisson run -- true ROUND` does, with or without its gate.
func runOnce(ctx context.Context, dir string, judges bool, round string) (err error) {
	debug.SetGCPercent(800) // as caisson does
	var closers []func() error
	later := func(f func() error) { closers = append(closers, f) }
	defer func() {
		for i := len(closers) - 1; i >= 0; i-- {
			err = errors.Join(err, closers[i]())
		}
	}()
	engine, err := dockerclient.New(dockerclient.Config{})
	if err != nil {
		return err
	}
	later(engine.Close)
	imgs, err := images.New(images.Config{Engine: engine, StateDir: filepath.Join(dir, "images")})
	if err != nil {
		return err
	}
	rt, err := docker.New(docker.Config{Engine: engine, Agent: filepath.Join(dir, "caisson-agent"), Base: filepath.Join(dir, "run")})
	if err != nil {
		return err
	}
	cfg, g, err := open(ctx, dir, rt, imgs, later)
	if err != nil {
		return err
	}
	cfg.Gate = manager.Unjudged
	if judges {
		cfg.Gate = g.Judge
	}
	m, err := manager.New(cfg)
	if err != nil {
		return err
	}
	later(m.Close)
	return rig.Succeeded(m.Run(ctx, sandbox.Run{Command: []string{"true", round}}, sandbox.Streams{}))
}

// open gives a manager's configuration the state folder, and a gate on it.
func open(ctx context.Context, dir string, rt runtimes.Runtime, imgs *images.Store, later func(func() error)) (manager.Config, *gate.Gate, error) {
	st, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return manager.Config{}, nil, err
	}
	later(st.Close)
	g, err := judge.Lazy(dir, filepath.Join(dir, "caisson-scan"), st, later)
	return manager.Config{
		Runtimes: runtimes.Only(docker.Name, rt), Images: imgs, Store: st, StateID: st.ID(), LockDir: filepath.Join(dir, "locks"), Actor: "bench",
	}, g, err
}

// cold measures a one-shot in a process of its own, with a gate and without.
func cold(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "cold one-shot"
	if !s.Wants(name) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	process := func(how string) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			f.round++
			return f.process(self, oneShotCommand, f.Dir, how, strconv.Itoa(f.round))(ctx)
		}
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 60, Warmup: 3, Settle: time.Second,
		Subjects: []measure.Subject{{Name: judged, Sample: process(judged)}, {Name: unjudged, Sample: process(unjudged)}},
		Rows:     []measure.Row{{Name: "gate/one-shot", Own: judged, Peer: unjudged, Bar: measure.AtMost("p50 <= 1.03 x peer", 1.03)}},
	})
}

// command measures `caisson run` as a process, beside `docker run`.
func command(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, own, peer = "run as a command", "caisson run", "docker run"
	if !s.Wants(name) {
		return nil
	}
	ref, err := f.Image(ctx, "shell")
	if err != nil {
		return err
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 60, Warmup: 3,
		Subjects: []measure.Subject{
			{Name: own, Sample: func(ctx context.Context) (float64, error) {
				f.round++
				return f.process(f.Program("caisson"), "run", "--", "true", strconv.Itoa(f.round))(ctx)
			}},
			{Name: peer, Sample: f.process("docker", "run", "--rm", "--network", "none", ref, "true")},
		},
		Rows: []measure.Row{{Name: "gate/run", Own: own, Peer: peer, Bar: measure.AtMost("p50 <= 1.25 x peer", 1.25)}},
	})
}

// process is a sample of a whole process.
func (f *fixture) process(name string, args ...string) func(context.Context) (float64, error) {
	return measure.Millis(func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = f.Environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	})
}
