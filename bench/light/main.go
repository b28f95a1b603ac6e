//go:build linux

// Command light measures sandboxes without a container engine, beside the engine and
// beside bwrap alone:
//
//	go run ./bench/light          tables, and exit code 1 where a bar does not hold
//	go run ./bench/light -json    one object a line
//	go run ./bench/light -smoke   a few samples, to see that all of it works
//
// It needs bubblewrap, a Docker Engine on this host and Go to build caisson, and is run
// as the user whose sandboxes are to be measured: root, or another. Its sandboxes are
// removed at its end.
package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("light", run)) }

// run measures all sets.
func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := ever(ctx, s, r); err != nil {
		return err
	}
	if err := first(ctx, s, r); err != nil {
		return err
	}
	return warm(ctx, s, r)
}

// bare is bwrap alone, with the namespaces that a sandbox of caisson's has.
var bare = []string{"bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
	"--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"}

// ever measures the first run that there ever is: with nothing kept from another, and no
// engine in sight.
func ever(ctx context.Context, s *measure.Suite, r *rig.Rig) error {
	const name, own = "first run ever, python -c print(1)", "caisson run, no state"
	if !s.Wants(name) {
		return nil
	}
	once := measure.Millis(func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, r.Program("caisson"), "run", "--runtime", "bubblewrap", "-l", "python", "-c", "print(1)")
		cmd.Env, cmd.Stderr = append(r.Environ(), "CAISSON_STATE_DIR="+filepath.Join(r.Dir, "ever"), "DOCKER_HOST=unix:///nonexistent"), os.Stderr
		return cmd.Run()
	})
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 20, Warmup: 1,
		Subjects: []measure.Subject{{Name: own, Sample: func(ctx context.Context) (float64, error) {
			ms, err := once(ctx)
			return ms, errors.Join(err, os.RemoveAll(filepath.Join(r.Dir, "ever")))
		}}},
		Rows: []measure.Row{{Name: "first/ever", Own: own, Bar: &measure.Bar{
			Asked: "p50 <= 1 s", Holds: func(own, _ measure.Stats) bool { return own.P50 <= 1000 },
		}}},
	})
}

// first measures a whole process, from nothing to the end of a program that does
// nothing, as a shell's user starts it.
func first(ctx context.Context, s *measure.Suite, r *rig.Rig) error {
	const name = "first answer, python3 -c pass"
	if !s.Wants(name) {
		return nil
	}
	ref, err := r.Image(ctx, "python")
	if err != nil {
		return err
	}
	const own, alone, engine = "caisson run --runtime bubblewrap", "bwrap alone", "docker run --rm"
	command := func(argv ...string) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Env, cmd.Stderr = r.Environ(), os.Stderr
			return cmd.Run()
		})
	}
	cpus := float64(runtime.NumCPU())
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 40, Warmup: 2,
		Subjects: []measure.Subject{
			{Name: own, CPUs: cpus, Sample: command(r.Program("caisson"), "run", "--runtime", "bubblewrap", "--cpus", "64", "-l", "python", "-c", "pass")},
			{Name: alone, CPUs: cpus, Sample: command(append(bare, "--", "python3", "-c", "pass")...)},
			{Name: engine, CPUs: cpus, Every: 4, Sample: command("docker", "run", "--rm", "--network", "none", ref, "python3", "-c", "pass")},
		},
		Rows: []measure.Row{
			{Name: "first/bubblewrap/bwrap", Own: own, Peer: alone, Bar: &measure.Bar{
				Asked: "p50 <= 1.5 x peer + 15 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= 1.5*peer.P50+15 },
			}},
			{Name: "first/bubblewrap/docker-run", Own: own, Peer: engine, Bar: measure.AtMost("p50 <= peer / 4", 0.25)},
		},
	})
}

// warm measures an exec in a sandbox that is there, beside one in a container.
func warm(ctx context.Context, s *measure.Suite, r *rig.Rig) (err error) {
	const name = "warm true"
	if !s.Wants(name) {
		return nil
	}
	light, err := bubblewrap.New(bubblewrap.Config{Agent: r.Program("caisson-agent"), Base: filepath.Join(r.Dir, "bw"), State: filepath.Join(r.Dir, "bwstate")})
	if err != nil {
		return err
	}
	times, asked := 1.2, "p50 <= 1.2 x peer"
	if os.Geteuid() != 0 {
		times, asked = 2, "p50 <= 2 x peer"
	}
	cpus := float64(runtime.NumCPU())
	const own, peer = "caisson, bubblewrap", "caisson, docker"
	set := measure.Set{Name: name, Unit: "ms", Rounds: 1000, Warmup: 20,
		Rows: []measure.Row{{Name: "warm/bubblewrap/docker", Own: own, Peer: peer, Bar: measure.AtMost(asked, times)}}}
	for _, of := range []struct {
		name string
		reg  *runtimes.Registry
	}{{own, runtimes.Only(bubblewrap.Name, light)}, {peer, runtimes.Only(docker.Name, r.Runtime)}} {
		cfg := r.Config()
		cfg.Runtimes = of.reg
		m, failed := r.Manager(cfg)
		if failed != nil {
			return failed
		}
		box, failed := m.Open(ctx, manager.OpenOptions{Language: "shell", Limits: sandbox.Limits{CPUs: cpus}})
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, box.Close()) }()
		set.Subjects = append(set.Subjects, measure.Subject{Name: of.name, CPUs: cpus, Sample: measure.Millis(func(ctx context.Context) error {
			return rig.Succeeded(box.Exec(ctx, sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}))
		})})
	}
	return s.Measure(ctx, set)
}
