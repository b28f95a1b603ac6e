// Command reflection mends broken programs until their tests pass: each problem
// below problems/ has a task, a solution that is wrong, its tests, and what a
// reviser answers round by round. A model would answer in its place; all else is
// as it would be there.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

//go:embed problems
var problems embed.FS

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "reflection:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	c, err := caisson.Open(ctx, caisson.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	dirs, err := fs.ReadDir(problems, "problems")
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if err := solve(ctx, c, d.Name()); err != nil {
			return fmt.Errorf("%s: %w", d.Name(), err)
		}
	}
	return nil
}

// solve has one problem revised until it is solved, in a session of its own.
func solve(ctx context.Context, c *caisson.Caisson, name string) (err error) {
	s, err := c.CreateSession(ctx, api.SessionOptions{
		Language: "python", Limits: sandbox.Limits{CPUs: 1}, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}, Idle: sandbox.Duration(10 * time.Minute),
	}, sandbox.Local{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.RemoveSession(context.WithoutCancel(ctx), s.Name, true)) }()
	task, broken, tests := text(name, "task.txt"), text(name, "0.py"), text(name, "test_solution.py")
	loop := testloop.Loop{
		Task: task, Solution: []sandbox.File{file("solution.py", broken)}, MaxIterations: 5, Reviser: reviser(name),
		Judge: func(ctx context.Context, solution []sandbox.File) (testloop.Result, error) {
			return testloop.Pytest(ctx, func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
				return c.Exec(ctx, s.Name, run, streams)
			}, testloop.Suite{Solution: solution, Tests: []sandbox.File{file("test_solution.py", tests)}, TestTimeout: 5 * time.Second})
		},
	}
	report, err := loop.Run(ctx)
	if err != nil {
		return err
	}
	show(name, task, report)
	return nil
}

// reviser answers with the solutions that lie beside the problem, in their order.
func reviser(name string) testloop.Reviser {
	return testloop.ReviserFunc(func(_ context.Context, r testloop.Request) (testloop.Revision, error) {
		better := text(name, fmt.Sprintf("%d.py", r.Iteration))
		note, _, _ := strings.Cut(strings.TrimPrefix(better, "# "), "\n")
		return testloop.Revision{Files: map[string]*string{"solution.py": &better}, Note: note}, nil
	})
}

// show tells what became of a problem, round by round.
func show(name, task string, r testloop.Report) {
	fmt.Printf("%s: %s", name, task)
	for _, it := range r.Iterations {
		n := it.Result.Totals
		fmt.Printf("  round %d: %d of %d passed", it.Number, n.Passed, n.Tests)
		if it.Note != "" {
			fmt.Printf(" (%s)", it.Note)
		}
		fmt.Println()
		for _, t := range it.Result.Tests {
			if t.Outcome.Bad() {
				said, _, _ := strings.Cut(t.Message, "\n")
				_, test, _ := strings.Cut(t.ID, "::")
				fmt.Printf("    %s %s: %s\n", t.Outcome, test, said)
			}
		}
		for _, p := range it.Result.Problems {
			if it.Refused != "" {
				fmt.Printf("    refused by policy: %s\n", it.Result.Decision.Findings[0].Message)
				continue
			}
			fmt.Printf("    %s at %s:%d\n", p.Type, p.Place, p.Line)
		}
	}
	fmt.Printf("  stopped: %s\n", r.Stopped)
}

// text is a file of a problem, "" where there is none.
func text(problem, name string) string {
	b, _ := fs.ReadFile(problems, path.Join("problems", problem, name))
	return string(b)
}

func file(name, text string) sandbox.File {
	return sandbox.File{Path: name, Data: []byte(text), Size: int64(len(text))}
}
