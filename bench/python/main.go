//go:build linux

// Command python measures calls of the Python package's functions, beside what
// Python programmers have without it:
//
//	go run ./bench/python          tables, and exit code 1 where a bar does not hold
//	go run ./bench/python -json    one object a line
//	go run ./bench/python -smoke   a few samples, to see that all of it works
//
// It needs a Docker Engine, python3, and Go to build caisson; where a Python has numpy,
// large arrays are measured too. samples.py takes the samples, since what is measured
// is what a Python program sees.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
)

func main() { os.Exit(measure.Main("python", run)) }

// What samples.py knows how to measure.
const (
	call   = "call of an empty function"
	bare   = "python3 -c pass"
	spawn  = "multiprocessing, spawn"
	array  = "16 MiB returned"
	huge   = "1 GiB returned"
	copied = "1 GiB copied"
	many   = "map of 1,000 calls"
	// Python 3.11's ProcessPoolExecutor can hang with many tasks (python/cpython#105829);
	// multiprocessing's own pool does not.
	pool = "map of 1,000 by multiprocessing's Pool, forkserver, one task a process"
)

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	p, err := start(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	subject := func(name string) measure.Subject {
		return measure.Subject{Name: name, Sample: func(context.Context) (float64, error) { return p.sample(name) }}
	}
	returned := subject(array)
	returned.Every = 5
	if err := s.Measure(ctx, measure.Set{
		Name: "call", Unit: "ms", Rounds: 50, Warmup: 3,
		Subjects: []measure.Subject{subject(call), subject(bare), subject(spawn), returned},
		Rows: []measure.Row{
			{Name: "python/call", Own: call, Peer: bare, Bar: measure.AtMost("p50 <= peer / 2", 0.5)},
			{Name: "python/16 MiB returned", Own: array, Peer: call},
			{Name: "python/call beside spawn", Own: call, Peer: spawn, Bar: measure.AtMost("p50 <= peer / 3", 1.0/3)},
		},
	}); err != nil {
		return err
	}
	if p.numpy {
		if err := s.Measure(ctx, measure.Set{
			Name: "large", Unit: "ms", Rounds: 5, Warmup: 1,
			Subjects: []measure.Subject{subject(huge), subject(copied)},
			Rows:     []measure.Row{{Name: "python/1 GiB returned", Own: huge, Peer: copied, Bar: measure.AtMost("p50 <= 3 * peer", 3)}},
		}); err != nil {
			return err
		}
	} else {
		s.Note("no Python of this host has numpy: no large array is measured")
	}
	return s.Measure(ctx, measure.Set{
		Name: "many", Unit: "ms", Rounds: 1,
		Subjects: []measure.Subject{subject(many), subject(pool)},
		Rows:     []measure.Row{{Name: "python/map", Own: many, Peer: pool, Bar: measure.AtMost("p50 <= 2 * peer", 2)}},
	})
}

// sampler is the running samples.py: each line that it is given names what to
// measure, and it answers with milliseconds, or with what went wrong.
type sampler struct {
	cmd   *exec.Cmd
	in    *bufio.Writer
	out   *bufio.Reader
	eof   func() error
	numpy bool // whether this Python has it
}

func start(ctx context.Context, r *rig.Rig) (*sampler, error) {
	python, numpy := "python3", false
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, p, "-c", "import numpy").Run() == nil {
			python, numpy = p, true
			break
		}
	}
	cmd := exec.CommandContext(ctx, python, "bench/python/samples.py")
	cmd.Env = append(r.Environ(), "CAISSON_BIN="+r.Program("caisson"), "PYTHONPATH=sdk/python", "PYTHONDONTWRITEBYTECODE=1", "XDG_RUNTIME_DIR="+r.Dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &sampler{cmd, bufio.NewWriter(in), bufio.NewReader(out), in.Close, numpy}, cmd.Start()
}

func (p *sampler) sample(name string) (ms float64, err error) {
	fmt.Fprintln(p.in, name)
	if err := p.in.Flush(); err != nil {
		return 0, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("samples.py: %w", err)
	}
	if ms, err = strconv.ParseFloat(strings.TrimSpace(line), 64); err != nil {
		return 0, fmt.Errorf("samples.py: %s", strings.TrimSpace(line))
	}
	return ms, nil
}

func (p *sampler) end() error {
	return errors.Join(p.eof(), p.cmd.Wait())
}
