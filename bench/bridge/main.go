//go:build linux

// Command bridge measures what it costs to know what every exec changed:
//
//	go run ./bench/bridge            tables, and exit code 1 where a bar does not hold
//	go run ./bench/bridge -json      one object a line
//	go run ./bench/bridge -smoke     a few samples, to see that all of it works
//
// It needs a Docker Engine on this host, git, the docker command, and Go to build
// caisson. Its sessions and containers are removed at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/bench/rig/judge"
	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

func main() { os.Exit(measure.Main("bridge", run)) }

// fixture is caisson as a library, on a state of its own.
type fixture struct {
	*rig.Rig
	manager *manager.Manager
	judges  *judge.Switch
	round   int
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f := &fixture{Rig: r}
	if err := f.open(ctx); err != nil {
		return err
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{empty, small, large, pullSmall, pullLarge, forks} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) open(ctx context.Context) error {
	cfg, err := f.Durable(ctx, f.Config())
	if err != nil {
		return err
	}
	books, err := bridge.New(bridge.Config{Dir: filepath.Join(f.Dir, "changes"),
		Open: func(ctx context.Context, path string) (bridge.Ledger, error) { return sqlite.OpenLedger(ctx, path) }})
	if err != nil {
		return err
	}
	f.Defer(books.Close)
	cfg.Recorder = books
	store, ok := cfg.Store.(approval.Store)
	if !ok {
		return errors.New("the store keeps no approvals")
	}
	g, err := judge.Lazy(f.Dir, f.Program("caisson-scan"), store, f.Defer)
	if err != nil {
		return err
	}
	f.judges = judge.NewSwitch(g)
	cfg.Gate = f.judges.Judge
	f.manager, err = f.Manager(cfg)
	return err
}

// session makes a session with a tree of folders of a hundred files each.
func (f *fixture) session(ctx context.Context, name string, folders int) error {
	limits := sandbox.Limits{CPUs: float64(runtime.NumCPU())}
	if err := f.Session(ctx, f.manager, sandbox.SessionOptions{Name: name, Limits: limits}); err != nil {
		return err
	}
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do mkdir d$i; j=0; while [ $j -lt 100 ]; do echo $i $j > d$i/f$j; j=$((j+1)); done; i=$((i+1)); done", folders)
	return rig.Succeeded(f.manager.ExecIn(ctx, name, sandbox.Run{Command: []string{"sh", "-c", script}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}}, sandbox.Streams{}))
}

// The subjects' names.
const (
	off, fast, exact = "not recorded", "fast", "exact"
	judged           = "judged, audited, recorded"
	walk, git        = "Go walk with lstat", "git status"
)

func (f *fixture) exec(session, script string, mode sandbox.ChangeMode, changes int) func(context.Context) (float64, error) {
	return measure.Millis(func(ctx context.Context) error {
		f.round++
		run := sandbox.Run{Command: []string{"sh", "-c", script, "sh", fmt.Sprint(f.round)}, Track: mode}
		if script == "" {
			run.Command = []string{"true"}
		}
		res, err := f.manager.ExecIn(ctx, session, run, sandbox.Streams{})
		if err == nil && mode != sandbox.ModeOff && len(res.Changes) != changes {
			err = fmt.Errorf("%d changes, not %d", len(res.Changes), changes)
		}
		return rig.Succeeded(res, err)
	})
}

func adds(own string, ms float64) measure.Row {
	return measure.Row{Name: own, Own: own, Peer: off, Bar: &measure.Bar{
		Asked: fmt.Sprintf("p50 <= peer + %g ms", ms), Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+ms },
	}}
}

// empty measures a warm `true` where there is nothing to record.
func empty(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "warm true, empty workspace"
	if !s.Wants(name) {
		return nil
	}
	if err := f.session(ctx, "empty", 0); err != nil {
		return err
	}
	row := adds(fast, 0.3)
	row.Name = "bridge/true/fast"
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 500, Warmup: 20,
		Subjects: []measure.Subject{
			{Name: off, Sample: f.exec("empty", "", sandbox.ModeOff, 0)},
			{Name: fast, Sample: f.exec("empty", "", sandbox.ModeFast, 0)},
			{Name: judged, Sample: f.judged(f.exec("empty", "", sandbox.ModeFast, 0))},
		},
		Rows: []measure.Row{row, {Name: "bridge/true/whole", Own: judged, Peer: off, Bar: &measure.Bar{
			Asked: "p50 <= 5 ms", Holds: func(own, _ measure.Stats) bool { return own.P50 <= 5 },
		}}},
	})
}

// tenChanged changes ten files in ten folders.
const tenChanged = `for i in 0 1 2 3 4 5 6 7 8 9; do echo "$1" > d$i/f50; done`

// small measures ten changed files of ten thousand.
func small(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "10 of 10,000 files"
	if !s.Wants(name) {
		return nil
	}
	if err := f.session(ctx, "small", 100); err != nil {
		return err
	}
	tree, err := f.tree(ctx, 100)
	if err != nil {
		return err
	}
	quick, whole := adds(fast, 3), adds(exact, 25)
	quick.Name, whole.Name = "bridge/10000/fast", "bridge/10000/exact"
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 100, Warmup: 5,
		Subjects: []measure.Subject{
			// What an exec that is not recorded touched is recorded by the
			// next: so each but the first follows a look.
			{Name: off, Sample: f.after("small", f.exec("small", tenChanged, sandbox.ModeOff, 10))},
			{Name: fast, Sample: f.after("small", f.exec("small", tenChanged, sandbox.ModeFast, 10))},
			{Name: exact, Sample: f.after("small", f.exec("small", tenChanged, sandbox.ModeExact, 10))},
			{Name: walk, Every: 4, Sample: measure.Millis(func(context.Context) error { return lstatAll(tree, 100) })},
			{Name: git, Every: 4, Sample: measure.Millis(func(ctx context.Context) error { return gitStatus(ctx, tree) })},
		},
		Rows: []measure.Row{quick, whole},
	})
}

// large measures ten changed files of a hundred thousand.
func large(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "10 of 100,000 files"
	if !s.Wants(name) {
		return nil
	}
	if err := f.session(ctx, "large", fewer(s, 1000)); err != nil {
		return err
	}
	row := adds(fast, 5)
	row.Name = "bridge/100000/fast"
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 100, Warmup: 5,
		Subjects: []measure.Subject{
			{Name: off, Sample: f.after("large", f.exec("large", tenChanged, sandbox.ModeOff, 10))},
			{Name: fast, Sample: f.after("large", f.exec("large", tenChanged, sandbox.ModeFast, 10))},
			{Name: exact, Every: 10, Sample: f.after("large", f.exec("large", tenChanged, sandbox.ModeExact, 10))},
		},
		Rows: []measure.Row{row},
	})
}

// judged takes a sample with caisson's own gate.
func (f *fixture) judged(sample func(context.Context) (float64, error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		f.judges.Set(true)
		defer f.judges.Set(false)
		return sample(ctx)
	}
}

// fewer is a size, or a part of it for a smoke run.
func fewer(s *measure.Suite, n int) int {
	if s.Smoke {
		return n / 10
	}
	return n
}

// after takes a sample in a session whose touched files are all recorded.
func (f *fixture) after(session string, sample func(context.Context) (float64, error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		if err := f.manager.RecordSession(ctx, session, false); err != nil {
			return 0, err
		}
		return sample(ctx)
	}
}

// tree makes the same tree on this host, in a git repository.
func (f *fixture) tree(ctx context.Context, folders int) (string, error) {
	dir := filepath.Join(f.Dir, "tree")
	for i := range folders {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprintf("d%d", i)), 0o755); err != nil {
			return "", err
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("d%d/f%d", i, j)), fmt.Appendf(nil, "%d %d\n", i, j), 0o600); err != nil {
				return "", err
			}
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "all"}} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return dir, nil
}

func lstatAll(dir string, folders int) error {
	n := 0
	for i := range folders {
		err := filepath.WalkDir(filepath.Join(dir, fmt.Sprintf("d%d", i)), func(_ string, d fs.DirEntry, err error) error {
			if err == nil {
				_, err = d.Info()
			}
			n++
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func gitStatus(ctx context.Context, dir string) error {
	return exec.CommandContext(ctx, "git", "-C", dir, "status", "--porcelain").Run()
}
