//go:build linux

// Command pool measures runs whose sandbox a pool has ready, beside `docker run`:
//
//	go run ./bench/pool          tables, and exit code 1 where a bar does not hold
//	go run ./bench/pool -json    one object a line
//	go run ./bench/pool -smoke   a few samples, to see that all of it works
//
// All of it goes the whole way: rules judge, and the audit is durable. It needs root, a
// Docker Engine on this host and Go to build caisson, for one set bubblewrap, for one a
// Python, and for that CORPUS, a folder with humaneval.jsonl. What it makes is removed at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/config"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("pool", run)) }

// size is how many sandboxes are ready: enough for a burst.
const size = 20

// fixture is a caisson with a pool.
type fixture struct {
	*rig.Rig
	c      *caisson.Caisson
	plain  *caisson.Caisson // without a pool
	image  string           // of shell
	python string           // image
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f := &fixture{Rig: r}
	if f.image, err = r.Image(ctx, "shell"); err != nil {
		return err
	}
	if f.python, err = r.Image(ctx, "python"); err != nil {
		return err
	}
	if f.c, err = f.open(ctx, "pooled", config.File{
		Pool: []sandbox.PoolWant{{Language: "shell", Runtime: docker.Name, Size: size}, {Language: "python", Runtime: docker.Name, Size: size}, {Language: "shell", Runtime: bubblewrap.Name, Size: 2}},
		// What one owner may have, so that there is room for others.
		Quotas: sandbox.Quotas{Owners: map[string]sandbox.Quota{hostile: {Execs: 2, CPUs: 1, Memory: sandbox.GiB}}, Wait: sandbox.Duration(time.Minute)},
	}); err != nil {
		return err
	}
	if f.plain, err = f.open(ctx, "plain", config.File{}); err != nil {
		return err
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{oneShot, session, light, burst, steady, batches, many, beside} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

// open opens a caisson with a state folder of its own.
func (f *fixture) open(ctx context.Context, name string, file config.File) (*caisson.Caisson, error) {
	dir := filepath.Join(f.Dir, name)
	settings := map[string]string{
		"CAISSON_AGENT": f.Program("caisson-agent"), "CAISSON_SCAN": f.Program("caisson-scan"),
		"CAISSON_STATE_DIR": dir, "CAISSON_RUNTIME_DIR": filepath.Join(f.Dir, "run"),
	}
	c, err := caisson.Open(ctx, caisson.Config{KeepPool: true, File: &file, Getenv: func(name string) string {
		if v, ok := settings[name]; ok {
			return v
		}
		return os.Getenv(name)
	}})
	if err == nil {
		f.Defer(c.Close)
	}
	return c, err
}

// pooled runs `true` in a sandbox of the pool.
func (f *fixture) pooled(ctx context.Context) error {
	return rig.Succeeded(f.c.Run(ctx, sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}))
}

// docker does the same by the engine's own command.
func (f *fixture) docker(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "docker", "run", "--rm", "--network", "none", "--cpus", "0.5", f.image, "true").CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker run: %w: %s", err, out)
	}
	return nil
}

// filled waits until the pool is, and nothing is made or ended any more.
func (f *fixture) filled(ctx context.Context) error {
	for {
		list, err := f.c.PoolShelves(ctx)
		if err != nil || !slices.ContainsFunc(list, func(s sandbox.PoolShelf) bool { return s.Ready < s.Size || s.Making > 0 }) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tail asks for the slowest to be at most a factor of the peer's.
func tail(asked string, factor float64) *measure.Bar {
	return &measure.Bar{Asked: asked, Holds: func(own, peer measure.Stats) bool { return own.P99 <= factor*peer.P99 }}
}

const own, peer = "caisson, from the pool", "docker run --rm --network none"

// oneShot measures one run after the other.
func oneShot(ctx context.Context, s *measure.Suite, f *fixture) error {
	pooled := measure.Millis(f.pooled)
	return s.Measure(ctx, measure.Set{
		Name: "one-shot, one after the other", Unit: "ms", Rounds: 50, Warmup: 3,
		Subjects: []measure.Subject{
			{Name: own, CPUs: 0.5, Sample: func(ctx context.Context) (float64, error) {
				if err := f.filled(ctx); err != nil {
					return 0, err
				}
				return pooled(ctx)
			}},
			{Name: peer, CPUs: 0.5, Sample: measure.Millis(f.docker)},
		},
		Rows: []measure.Row{
			{Name: "pool/one-shot", Own: own, Peer: peer, Bar: measure.AtMost("p50 <= 0.1 x peer", 0.1)},
			{Name: "pool/one-shot/p99", Own: own, Peer: peer, Bar: tail("p99 <= 0.2 x peer", 0.2)},
		},
	})
}

// burst measures how long as many at once take as the pool has ready.
func burst(ctx context.Context, s *measure.Suite, f *fixture) error {
	all := func(one func(context.Context) error) func(context.Context) (float64, error) {
		at := measure.Millis(func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			for range size {
				g.Go(func() error { return one(ctx) })
			}
			return g.Wait()
		})
		return func(ctx context.Context) (float64, error) {
			if err := f.filled(ctx); err != nil {
				return 0, err
			}
			return at(ctx)
		}
	}
	return s.Measure(ctx, measure.Set{
		Name: "burst of 20", Unit: "ms", Rounds: 5, Warmup: 1,
		Subjects: []measure.Subject{{Name: own, CPUs: 0.5, Sample: all(f.pooled)}, {Name: peer, CPUs: 0.5, Sample: all(f.docker)}},
		Rows:     []measure.Row{{Name: "pool/burst", Own: own, Peer: peer, Bar: measure.AtMost("p50 <= 0.25 x peer", 0.25)}},
	})
}

// steady measures runs that come at a rate, whatever became of those before, first of
// the one and then of the other.
func steady(ctx context.Context, s *measure.Suite, f *fixture) error {
	const rate = 5
	set := measure.Set{
		Name: "5 a second", Unit: "ms", Subjects: []measure.Subject{{Name: own, CPUs: 0.5}, {Name: peer, CPUs: 0.5}},
		Rows: []measure.Row{{Name: "pool/steady", Own: own, Peer: peer, Bar: tail("p99 <= 0.33 x peer", 0.33)}},
	}
	if !s.Wants(set.Name) {
		return nil
	}
	n := 60 * rate
	if s.Smoke {
		n = 3
	}
	samples := map[string][]float64{}
	for name, one := range map[string]func(context.Context) error{own: f.pooled, peer: f.docker} {
		if err := f.filled(ctx); err != nil {
			return err
		}
		took := make([]float64, n)
		g, ctx := errgroup.WithContext(ctx)
		for i := range n {
			g.Go(func() (err error) { took[i], err = measure.Millis(one)(ctx); return err })
			time.Sleep(time.Second / rate)
		}
		if err := g.Wait(); err != nil {
			return err
		}
		samples[name] = took
	}
	return s.Report(set, samples)
}
