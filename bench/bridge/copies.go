//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/bridge/transfer"
	"github.com/caisson-dev/caisson/sandbox"
)

// The subjects' names.
const (
	pull, dockerCopy = "files pull", "docker cp"
	fork, copyAll    = "session fork", "cp -a"
	forkAndRun       = "session fork and a first exec"
)

// script runs one in a session, unrecorded and unjudged: it only sets up.
func (f *fixture) script(ctx context.Context, session, text string) error {
	run := sandbox.Run{Command: []string{"sh", "-c", text}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}, Track: sandbox.ModeOff}
	res, err := f.manager.ExecIn(ctx, session, run, sandbox.Streams{})
	res.Replaced = false // of a fork it is the first sandbox
	return rig.Succeeded(res, err)
}

// memory is a folder in memory, or "" where there is none.
func memory() string {
	const shm = "/dev/shm"
	if st, err := os.Stat(shm); err != nil || !st.IsDir() {
		return ""
	}
	return shm
}

// into gives a sample a new folder below base, which is removed after it was
// timed.
func (f *fixture) into(base string, do func(ctx context.Context, dst string) error) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		dst := filepath.Join(base, "caisson-bench-out")
		ms, err := measure.Millis(func(ctx context.Context) error { return do(ctx, dst) })(ctx)
		if err != nil {
			return ms, err
		}
		return ms, os.RemoveAll(dst)
	}
}

// copyOut measures a folder of a session, out of its sandbox.
func (f *fixture) copyOut(ctx context.Context, s *measure.Suite, set measure.Set, row, session, dir, base string) error {
	v, err := f.manager.Session(ctx, session)
	if err != nil {
		return err
	}
	container := "caisson-" + string(v.Sandboxes[0].ID)
	own := func(ctx context.Context, dst string) error {
		files, err := f.manager.Files(ctx, session)
		if err != nil {
			return err
		}
		_, err = transfer.Pull(ctx, files, dir, dst, transfer.PullOptions{})
		return err
	}
	theirs := func(ctx context.Context, dst string) error {
		out, err := exec.CommandContext(ctx, "docker", "cp", "-q", container+":"+filepath.Join(sandbox.WorkspaceDir, dir), dst).CombinedOutput()
		if err != nil {
			return fmt.Errorf("docker cp: %w: %s", err, out)
		}
		return nil
	}
	set.Unit = "ms"
	set.Subjects = []measure.Subject{{Name: pull, Sample: f.into(base, own)}, {Name: dockerCopy, Sample: f.into(base, theirs)}}
	set.Rows = []measure.Row{{Name: row, Own: pull, Peer: dockerCopy, Bar: measure.AtMost("p50 <= peer", 1)}}
	return s.Measure(ctx, set)
}

func pullSmall(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "pull of 5,000 small files"
	if !s.Wants(name) {
		return nil
	}
	if err := f.session(ctx, "files", 50); err != nil {
		return err
	}
	// In memory: to make a file takes a disk longer than either of the two, and the
	// same for both.
	return f.copyOut(ctx, s, measure.Set{Name: name, Rounds: 20, Warmup: 2}, "bridge/pull/5000", "files", ".", cmp.Or(memory(), f.Dir))
}

func pullLarge(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "pull of a file of 1 GiB"
	if !s.Wants(name) {
		return nil
	}
	if err := f.session(ctx, "big", 0); err != nil {
		return err
	}
	// Not zeros: a file system may know better than to write those.
	fill := fmt.Sprintf("mkdir big; head -c 16777216 /dev/urandom > part; i=0; while [ $i -lt %d ]; do cat part; i=$((i+1)); done > big/file; rm part", fewer(s, 64))
	if err := f.script(ctx, "big", fill); err != nil {
		return err
	}
	return f.copyOut(ctx, s, measure.Set{Name: name, Rounds: 8, Warmup: 1}, "bridge/pull/1GiB", "big", "big", f.Dir)
}

// forks measures a copy of a workspace of 1 GiB in 20,000 files, beside a copy of
// the same tree by cp on this host.
func forks(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "fork of 1 GiB in 20,000 files"
	if !s.Wants(name) {
		return nil
	}
	if err := f.session(ctx, "origin", 0); err != nil {
		return err
	}
	fill := fmt.Sprintf(`head -c 53687 /dev/urandom > part; i=0; while [ $i -lt %d ]; do mkdir d$i; j=0
while [ $j -lt 100 ]; do cat part > d$i/f$j; j=$((j+1)); done; i=$((i+1)); done; rm part`, fewer(s, 200))
	if err := f.script(ctx, "origin", fill); err != nil {
		return err
	}
	if err := f.manager.RecordSession(ctx, "origin", false); err != nil {
		return err
	}
	tree := filepath.Join(f.Dir, "origin")
	files, err := f.manager.Files(ctx, "origin")
	if err != nil {
		return err
	}
	if _, err := transfer.Pull(ctx, files, ".", tree, transfer.PullOptions{}); err != nil {
		return err
	}
	forked := func(use bool) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			f.round++
			to := fmt.Sprintf("fork-%d", f.round)
			// A live origin: its sandbox is ended by the fork.
			if err := f.script(ctx, "origin", "true"); err != nil {
				return 0, err
			}
			ms, err := measure.Millis(func(ctx context.Context) error {
				_, how, err := f.manager.Fork(ctx, "origin", sandbox.ForkOptions{Name: to})
				if err == nil && how != sandbox.CopiedByOverlay {
					err = fmt.Errorf("it was copied by %s", how)
				}
				if err == nil && use {
					err = f.script(ctx, to, "test -s d19/f99")
				}
				return err
			})(ctx)
			if err != nil {
				return ms, err
			}
			return ms, f.manager.RemoveSession(ctx, to, true)
		}
	}
	copied := f.into(f.Dir, func(ctx context.Context, dst string) error {
		return exec.CommandContext(ctx, "cp", "-a", tree, dst).Run()
	})
	bar := func(row, own string) measure.Row {
		return measure.Row{Name: row, Own: own, Peer: copyAll, Bar: measure.AtMost("p50 <= peer / 20", 1./20)}
	}
	use := bar("bridge/fork/use", forkAndRun)
	use.Bar = nil // it has a sandbox to make, as any first exec
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 5, Warmup: 1,
		Subjects: []measure.Subject{
			{Name: fork, Sample: forked(false)}, {Name: forkAndRun, Sample: forked(true)}, {Name: copyAll, Sample: copied},
		},
		Rows: []measure.Row{bar("bridge/fork/20000", fork), use},
	})
}
