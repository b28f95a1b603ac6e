package testloop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/caisson-dev/caisson/sandbox"
)

// Judge runs tests on a solution: [Pytest] or [Cases] with all but that set.
type Judge func(ctx context.Context, solution []sandbox.File) (Result, error)

// Reviser makes a better solution. Errors are its own: they end the loop.
type Reviser interface {
	Revise(ctx context.Context, r Request) (Revision, error)
}

// ReviserFunc is a function that revises.
type ReviserFunc func(ctx context.Context, r Request) (Revision, error)

// Revise implements [Reviser].
func (f ReviserFunc) Revise(ctx context.Context, r Request) (Revision, error) { return f(ctx, r) }

// Request is what a reviser gets.
type Request struct {
	Task      string            `json:"task"`
	Iteration int               `json:"iteration"` // that is behind, from 1
	Solution  map[string]string `json:"solution"`  // file → text
	Failures  []Test            `json:"failures"`  // what did not pass
	Problems  []Problem         `json:"problems"`
}

// Revision is what a reviser answers: files to be written. A nil text removes one.
type Revision struct {
	Files map[string]*string `json:"files"`
	Note  string             `json:"note,omitempty"`
}

// Stop says why a loop ended.
type Stop string

// Why loops end.
const (
	StopPassed     Stop = "passed"
	StopIterations Stop = "iterations"  // there were as many as may be
	StopNoProgress Stop = "no_progress" // a solution came again, or the same failures did
	StopBudget     Stop = "budget"      // the time was over
)

// Iteration is one solution and what became of it.
type Iteration struct {
	Number int    `json:"iteration"` // from 1
	Diff   string `json:"diff"`      // from the solution before
	Note   string `json:"note,omitempty"`
	Result Result `json:"result"`
	// Refused says why policy did not let it run.
	Refused  string           `json:"refused,omitempty"`
	Duration sandbox.Duration `json:"duration_ms"` // with the revising
}

// Report is what came of a loop: the last iteration's Result, and all of them.
type Report struct {
	Result
	Iterations []Iteration       `json:"iterations"`
	Stopped    Stop              `json:"stopped"`
	Solution   map[string]string `json:"solution"` // the last one
}

// MarshalJSON writes the fields of the Result beside the others.
func (r Report) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		resultJSON
		Iterations []Iteration       `json:"iterations"`
		Stopped    Stop              `json:"stopped"`
		Solution   map[string]string `json:"solution"`
	}{r.json(), listed(r.Iterations), r.Stopped, r.Solution})
}

// Loop judges a solution, and has it revised while tests fail.
type Loop struct {
	Task     string
	Solution []sandbox.File
	Judge    Judge
	// Reviser is asked while tests fail. nil judges once.
	Reviser Reviser
	// MaxIterations bounds solutions, the first one included. 0 is 3.
	MaxIterations int
	// Timeout bounds all of it; what runs then is ended. 0 is an hour.
	Timeout time.Duration
	// Reset, where not nil, makes the workspace empty before an iteration but the
	// first.
	Reset func(ctx context.Context) error
}

// Run runs the loop. Errors: those of Judge, and of Reviser, beside the Report of
// what was done by then; a [sandbox.DeniedError] where the last solution was
// refused.
func (l Loop) Run(ctx context.Context) (Report, error) {
	limit, cancel := context.WithTimeout(ctx, cmp.Or(l.Timeout, time.Hour))
	defer cancel()
	most := 1
	if l.Reviser != nil {
		most = cmp.Or(l.MaxIterations, 3)
	}
	now, r := textsOf(l.Solution), Report{}
	seen := []map[string]string{}
	before, note := map[string]string{}, ""
	var refused error
	for n := 1; ; n++ {
		begun := time.Now()
		it := Iteration{Number: n, Diff: diffOf(before, now), Note: note}
		if n == 1 {
			it.Diff = ""
		}
		it.Result, refused = l.judge(limit, n, now)
		if denied, ok := errors.AsType[*sandbox.DeniedError](refused); ok {
			it.Result.Decision, it.Refused = denied.Decision, refused.Error()
			it.Result.Problems = []Problem{{Message: "policy refused it: " + refused.Error()}}
		} else if refused != nil {
			if limit.Err() == nil || ctx.Err() != nil {
				return r, refused
			}
			refused = nil
		}
		it.Duration = sandbox.Duration(time.Since(begun))
		same := len(r.Iterations) > 0 && sameFailures(r.Iterations[len(r.Iterations)-1].Result, it.Result)
		r.Iterations, r.Result, r.Solution = append(r.Iterations, it), it.Result, now
		switch {
		case it.Result.AllPassed:
			r.Stopped = StopPassed
		case limit.Err() != nil:
			r.Stopped = StopBudget
		case n >= most:
			r.Stopped = StopIterations
		case same:
			r.Stopped = StopNoProgress
		}
		if r.Stopped != "" {
			return r, refused
		}
		seen, before = append(seen, now), now
		rev, err := l.Reviser.Revise(limit, request(l.Task, n, now, it.Result))
		if err != nil {
			if limit.Err() != nil && ctx.Err() == nil {
				r.Stopped = StopBudget
				return r, refused
			}
			return r, fmt.Errorf("revise: %w", err)
		}
		if now, err = apply(now, rev); err != nil {
			return r, err
		}
		note = rev.Note
		if slices.ContainsFunc(seen, func(old map[string]string) bool { return maps.Equal(old, now) }) {
			r.Stopped = StopNoProgress
			return r, refused
		}
	}
}

func (l Loop) judge(ctx context.Context, n int, texts map[string]string) (Result, error) {
	if n > 1 && l.Reset != nil {
		if err := l.Reset(ctx); err != nil {
			return Result{}, fmt.Errorf("reset the workspace: %w", err)
		}
	}
	return l.Judge(ctx, filesOf(texts))
}

func request(task string, n int, texts map[string]string, res Result) Request {
	r := Request{Task: task, Iteration: n, Solution: texts, Failures: []Test{}, Problems: listed(res.Problems)}
	for _, t := range res.Tests {
		if t.Outcome.Bad() {
			r.Failures = append(r.Failures, t)
		}
	}
	return r
}

// apply writes a revision over a solution. Errors: Invalid.
func apply(texts map[string]string, rev Revision) (map[string]string, error) {
	next := maps.Clone(texts)
	for name, text := range rev.Files {
		if !inside(name) {
			return nil, sandbox.Errorf(sandbox.Invalid, "the reviser names a file %q", name).WithHint("it has to answer with paths inside the solution")
		}
		if text == nil {
			delete(next, name)
			continue
		}
		next[name] = *text
	}
	if len(next) == 0 {
		return nil, sandbox.Errorf(sandbox.Invalid, "the reviser left no file of the solution").WithHint("it has to answer with at least one")
	}
	return next, nil
}

// sameFailures reports whether two results fail alike. What passed does not count.
func sameFailures(a, b Result) bool {
	return slices.Equal(failuresOf(a), failuresOf(b))
}

func failuresOf(r Result) []string {
	var list []string
	for _, t := range r.Tests {
		if t.Outcome.Bad() {
			list = append(list, t.ID+"\x00"+string(t.Outcome)+"\x00"+t.Message)
		}
	}
	for _, p := range r.Problems {
		list = append(list, p.File+"\x00\x00"+p.Message)
	}
	return list
}

func textsOf(files []sandbox.File) map[string]string {
	m := map[string]string{}
	for _, f := range files {
		if !f.Dir {
			m[f.Path] = string(f.Data)
		}
	}
	return m
}

func filesOf(texts map[string]string) []sandbox.File {
	var list []sandbox.File
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		list = append(list, sandbox.File{Path: name, Data: []byte(texts[name]), Size: int64(len(texts[name]))})
	}
	return list
}

// diffOf is a unified diff of all files.
func diffOf(before, after map[string]string) string {
	names := maps.Clone(before)
	maps.Copy(names, after)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b.WriteString(udiff.Unified("a/"+name, "b/"+name, before[name], after[name]))
	}
	return b.String()
}
