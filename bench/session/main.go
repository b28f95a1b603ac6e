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
	"path/filepath"
	"runtime"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

func main() { os.Exit(measure.Main("session", run)) }

// fixture is caisson as a program and as a library, on a state of its own.
type fixture struct {
	dir     string
	api     *client.Client
	images  *images.Store
	store   *sqlite.Store
	audited *manager.Manager
	plain   *manager.Manager // remembers nothing
	closers []func() error
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	f := &fixture{}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.open(ctx); err != nil {
		return err
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{audit, command, openState, idle} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) open(ctx context.Context) (err error) {
	// In the cache and not in a place that may be memory: what is durable is
	// measured. Short, since sockets' paths are bounded.
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	if f.dir, err = os.MkdirTemp(cache, "cais"); err != nil {
		return err
	}
	f.closers = append(f.closers, func() error { return os.RemoveAll(f.dir) })
	for _, name := range []string{"caisson", "caisson-agent", "caisson-scan"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(f.dir, name),
			"github.com/caisson-dev/caisson/cmd/"+name)
		if name != "caisson-scan" { // whose parsers are C
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	engine, err := dockerclient.New(dockerclient.Config{})
	if err != nil {
		return err
	}
	f.closers = append(f.closers, engine.Close)
	if f.api, err = engine.API(ctx); err != nil {
		return err
	}
	if f.images, err = images.New(images.Config{Engine: engine, StateDir: filepath.Join(f.dir, "images"), Progress: func(p sandbox.Progress) { fmt.Fprintln(os.Stderr, p.Ref, p.Text) }}); err != nil {
		return err
	}
	rt, err := docker.New(docker.Config{Engine: engine, Agent: filepath.Join(f.dir, "caisson-agent"), Base: filepath.Join(f.dir, "run")})
	if err != nil {
		return err
	}
	if f.store, err = sqlite.Open(ctx, sqlite.Config{Dir: f.dir}); err != nil {
		return err
	}
	f.closers = append(f.closers, f.store.Close)
	cfg := manager.Config{Runtime: rt, Images: f.images, Gate: manager.Unjudged}
	if f.plain, err = manager.New(cfg); err != nil {
		return err
	}
	f.closers = append(f.closers, f.plain.Close)
	cfg.Store, cfg.StateID, cfg.LockDir, cfg.Actor = f.store, f.store.ID(), filepath.Join(f.dir, "locks"), "bench"
	if f.audited, err = manager.New(cfg); err != nil {
		return err
	}
	f.closers = append(f.closers, f.audited.Close)
	return nil
}

func (f *fixture) close() error {
	var errs []error
	for i := len(f.closers) - 1; i >= 0; i-- {
		errs = append(errs, f.closers[i]())
	}
	return errors.Join(errs...)
}

// session makes a session that the fixture's end removes.
func (f *fixture) session(ctx context.Context, name string) error {
	limits := sandbox.Limits{CPUs: float64(runtime.NumCPU())}
	if _, err := f.audited.CreateSession(ctx, manager.SessionOptions{Name: name, Limits: limits}); err != nil {
		return err
	}
	f.closers = append(f.closers, func() error { return f.audited.RemoveSession(context.WithoutCancel(ctx), name, true) })
	return nil
}

var justTrue = sandbox.Run{Command: []string{"true"}}

func succeeded(res sandbox.Result, err error) error {
	if err == nil && res.Code != 0 {
		err = fmt.Errorf("exec ended with code %d, %s %s", res.Code, res.Reason, res.Cause)
	}
	return err
}

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
				return succeeded(f.audited.ExecIn(ctx, "warm", justTrue, sandbox.Streams{}))
			})},
			{Name: without, Sample: measure.Millis(func(ctx context.Context) error {
				return succeeded(box.Exec(ctx, justTrue, sandbox.Streams{}))
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
	lang, err := f.images.Language("shell")
	if err != nil {
		return err
	}
	img, err := f.images.Ensure(ctx, lang.Image)
	if err != nil {
		return err
	}
	made, err := f.api.ContainerCreate(ctx, &container.Config{Image: img.Ref, Entrypoint: []string{"sleep", "infinity"}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		return dockerclient.Wrap(err, "create a plain container")
	}
	f.closers = append(f.closers, func() error {
		return f.api.ContainerRemove(context.WithoutCancel(ctx), made.ID, container.RemoveOptions{Force: true})
	})
	if err := f.api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return dockerclient.Wrap(err, "start a plain container")
	}
	process := func(name string, args ...string) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, name, args...)
			cmd.Env = append(os.Environ(), "CAISSON_STATE_DIR="+f.dir, "CAISSON_RUNTIME_DIR="+filepath.Join(f.dir, "run"))
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
			{Name: own, Sample: process(filepath.Join(f.dir, "caisson"), "exec", "command", "--", "true")},
			{Name: peer, Sample: process("docker", "exec", made.ID, "true")},
		},
		Rows: []measure.Row{{Name: "session/command", Own: own, Peer: peer, Bar: measure.AtMost("p50 <= 0.5 x peer", 0.5)}},
	})
}
