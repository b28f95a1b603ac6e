//go:build linux

// Command testloop measures test loops, and holds their results against corpora:
//
//	CORPUS=DIR go run ./bench/testloop    tables, and exit code 1 where a bar does not hold
//	go run ./bench/testloop -json         one object a line
//	go run ./bench/testloop -smoke        a few samples, to see that all of it works
//
// It needs a Docker Engine on this host, Go to build caisson, and for its yardstick
// a Python with pytest. CORPUS is a folder with humaneval.jsonl and mbpp.jsonl; what
// needs it is left out without. Its containers are removed at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/bench/rig/judge"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/testloop"
)

func main() { os.Exit(measure.Main("testloop", run)) }

// fixture is what all sets use.
type fixture struct {
	*rig.Rig
	python string // with pytest; "" is none
	image  string // the one of Python
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f := &fixture{Rig: r}
	if f.image, err = r.Image(ctx, "python"); err != nil {
		return err
	}
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, python, "-c", "import pytest").Run() == nil {
			f.python = python
			break
		}
	}
	if f.python == "" {
		s.Note("no Python of this host has pytest: nothing to measure beside")
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{iteration, batch, truth} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

const (
	small = "def add(a, b):\n    return a + b\n"
	tests = "import pytest\nfrom solution import add\n\n@pytest.mark.parametrize('n', range(5))\ndef test_add(n):\n    assert add(n, 1) == n + 1\n"
)

// iteration measures one round of a small file in a warm session.
func iteration(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, own, native, container = "an iteration of a small file", "caisson, warm session", "pytest", "docker run --rm, pytest"
	if !s.Wants(name) || f.python == "" {
		return nil
	}
	exec, err := f.session(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(f.Dir, "small")
	if err := written(dir, map[string]string{"solution.py": small, "test_small.py": tests}); err != nil {
		return err
	}
	cpus := float64(runtime.NumCPU())
	suite := testloop.Suite{Run: sandbox.Run{Warm: true}, Solution: []sandbox.File{file("solution.py", small)}, Tests: []sandbox.File{file("test_small.py", tests)}}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 30, Warmup: 3,
		Subjects: []measure.Subject{
			{Name: own, CPUs: cpus, Sample: measure.Millis(func(ctx context.Context) error {
				return allPassed(testloop.Pytest(ctx, exec, suite))
			})},
			{Name: native, Sample: process(dir, f.python, "-m", "pytest", "-q", "-p", "no:cacheprovider")},
			{Name: container, CPUs: cpus, Sample: process(dir, "docker", "run", "--rm", "--network=none", fmt.Sprintf("--cpus=%g", cpus),
				"-v", dir+":/workspace:ro", "-w", "/workspace", f.image, "python3", "-m", "pytest", "-q", "-p", "no:cacheprovider")},
		},
		Rows: []measure.Row{
			{Name: "testloop/iteration", Own: own, Peer: native, Bar: measure.AtMost("p50 <= 1.3 * peer", 1.3)},
			{Name: "testloop/iteration/container", Own: own, Peer: container, Bar: measure.AtMost("p50 <= 0.25 * peer", 0.25)},
		},
	})
}

// session is a way to run in a session of two processors or more, judged and
// audited as caisson does.
func (f *fixture) session(ctx context.Context) (testloop.Exec, error) {
	cfg, err := f.Durable(ctx, f.Config())
	if err != nil {
		return nil, err
	}
	g, err := judge.Lazy(f.Dir, f.Program("caisson-scan"), cfg.Store.(*sqlite.Store), f.Defer)
	if err != nil {
		return nil, err
	}
	cfg.Gate = g.Judge
	m, err := f.Manager(cfg)
	if err != nil {
		return nil, err
	}
	const name = "loop"
	if err := f.Session(ctx, m, sandbox.SessionOptions{Name: name, Language: "python", Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())}}); err != nil {
		return nil, err
	}
	return func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		return m.ExecIn(ctx, name, run, streams)
	}, nil
}

func file(name, text string) sandbox.File {
	return sandbox.File{Path: name, Data: []byte(text), Size: int64(len(text))}
}

// written puts texts into a folder that it makes.
func written(dir string, texts map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// process samples a program, in milliseconds, which has to end well.
func process(dir, name string, args ...string) func(context.Context) (float64, error) {
	return measure.Millis(func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	})
}

func allPassed(r testloop.Result, err error) error {
	if err == nil && !r.AllPassed {
		err = fmt.Errorf("not all passed: %+v, %+v", r.Totals, r.Problems)
	}
	return err
}
