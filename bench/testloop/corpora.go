//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
)

// problem is a solution and its tests, as lines of a batch are.
type problem struct {
	ID       string `json:"id"`
	Solution string `json:"solution"`
	Tests    string `json:"tests"`
}

// row is a line of a corpus: HumanEval's has a test and an entry point, MBPP's
// assertions.
type row struct {
	ID    json.RawMessage `json:"id"`
	Code  string          `json:"code"`
	Test  string          `json:"test"`
	Entry string          `json:"entry_point"`
	Tests []string        `json:"tests"`
	Setup string          `json:"setup"`
}

// corpus reads a file of CORPUS, nil where there is none.
func corpus(name string) (rows []row, err error) {
	dir := os.Getenv("CORPUS")
	if dir == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, r)
	}
	return rows, err
}

// taken gives tests the names of a solution, those with a low line too, as in one
// file.
const taken = "import solution\nglobals().update({k: v for k, v in vars(solution).items() if not k.startswith('__')})\n"

// problem joins a row's solution and tests.
func (r row) problem() problem {
	p := problem{ID: strings.Trim(string(r.ID), `"`), Solution: r.Code, Tests: taken}
	if r.Entry != "" {
		p.Tests += r.Test + "\n\ndef test_all():\n    check(" + r.Entry + ")\n"
		return p
	}
	p.Tests += r.Setup + "\n\ndef test_all():\n"
	for _, assert := range r.Tests {
		p.Tests += "    " + strings.ReplaceAll(strings.TrimSpace(assert), "\n", "\n    ") + "\n"
	}
	return p
}

// wrong is a problem whose solution is not one.
func (r row) wrong() problem {
	p := r.problem()
	p.Solution += "\n\ndef " + r.Entry + "(*args, **kwargs):\n    return 'wrong'\n"
	return p
}

// batch measures many problems, two at once, beside as many processes of pytest.
func batch(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, own, native = "batch of HumanEval", "caisson test --batch", "pytest in as many processes"
	rows, err := corpus("humaneval.jsonl")
	if err != nil || !s.Wants(name) || f.python == "" {
		return err
	}
	if rows == nil {
		s.Note("%s: no humaneval.jsonl in CORPUS", name)
		return nil
	}
	n, workers := len(rows), runtime.NumCPU()
	if s.Smoke {
		n = 4
	}
	var problems []problem
	for _, r := range rows[:n] {
		problems = append(problems, r.problem())
	}
	perSecond := func(do func(context.Context) error) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			started := time.Now()
			err := do(ctx)
			return float64(n) / time.Since(started).Seconds(), err
		}
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "problems/s", Rounds: 3,
		Subjects: []measure.Subject{
			{Name: own, CPUs: 1, Sample: perSecond(func(ctx context.Context) error {
				bad, err := f.judged(ctx, problems, workers)
				if err == nil && len(bad) > 0 {
					err = fmt.Errorf("these did not pass: %v", bad)
				}
				return err
			})},
			{Name: native, Sample: perSecond(func(ctx context.Context) error { return f.natively(ctx, problems, workers) })},
		},
		Rows: []measure.Row{{Name: "testloop/batch", Own: own, Peer: native, Bar: measure.AtLeast("p50 >= 0.9 * peer", 0.9)}},
	})
}

// judged runs a batch and returns which problems did not pass.
func (f *fixture) judged(ctx context.Context, problems []problem, workers int) (bad []string, err error) {
	var in, out bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, p := range problems {
		if err := enc.Encode(p); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, f.Program("caisson"), "test", "--batch", "-", "--workers", strconv.Itoa(workers), "--cpus", "1", "--approve", "always", "--test-timeout", "1m")
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = f.Environ(), &in, &out, os.Stderr, 10*time.Second
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 1) {
		return nil, fmt.Errorf("caisson test --batch: %w", err)
	}
	seen := 0
	for lines := bufio.NewReader(&out); ; seen++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r struct {
			ID     string `json:"id"`
			Passed bool   `json:"all_passed"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		if !r.Passed {
			bad = append(bad, r.ID)
		}
	}
	if seen != len(problems) {
		return nil, fmt.Errorf("%d results of %d problems", seen, len(problems))
	}
	slices.Sort(bad)
	return bad, nil
}

// natively runs pytest on each problem in a process of its own.
func (f *fixture) natively(ctx context.Context, problems []problem, workers int) error {
	var group sync.WaitGroup
	var next atomic.Int64
	failed := make(chan error, workers)
	for range workers {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(problems)); i = next.Add(1) - 1 {
				dir := filepath.Join(f.Dir, "native", strconv.FormatInt(i, 10))
				err := written(dir, map[string]string{"solution.py": problems[i].Solution, "test_solution.py": problems[i].Tests})
				if err == nil {
					_, err = process(dir, f.python, "-m", "pytest", "-q", "-p", "no:cacheprovider")(ctx)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

// truth holds results against what the corpora say of themselves.
func truth(ctx context.Context, s *measure.Suite, f *fixture) error {
	for _, set := range []struct {
		name, file string
		make       func(row) problem
		pass       bool
	}{
		{"HumanEval, canonical", "humaneval.jsonl", row.problem, true},
		{"HumanEval, made wrong", "humaneval.jsonl", row.wrong, false},
		{"MBPP, reference", "mbpp.jsonl", row.problem, true},
	} {
		rows, err := corpus(set.file)
		if err != nil || !s.Wants(set.name) {
			if err != nil {
				return err
			}
			continue
		}
		if rows == nil {
			s.Note("%s: no %s in CORPUS", set.name, set.file)
			continue
		}
		if s.Smoke {
			rows = rows[:4]
		}
		var problems []problem
		for _, r := range rows {
			problems = append(problems, set.make(r))
		}
		bad, err := f.judged(ctx, problems, runtime.NumCPU())
		if err != nil {
			return err
		}
		right := len(bad)
		if set.pass {
			right = len(rows) - len(bad)
			s.Note("%s: these did not pass: %v", set.name, bad)
		}
		const own, all = "as they should", "all"
		if err := s.Report(measure.Set{
			Name: set.name, Unit: "problems", Subjects: []measure.Subject{{Name: own, CPUs: 1}, {Name: all}},
			Rows: []measure.Row{{Name: "testloop/" + set.name, Own: own, Peer: all, Bar: measure.AtLeast("every one", 1)}},
		}, map[string][]float64{own: {float64(right)}, all: {float64(len(rows))}}); err != nil {
			return err
		}
	}
	return nil
}
