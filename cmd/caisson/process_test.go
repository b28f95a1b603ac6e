package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// process is a caisson of its own, as a user starts it.
type process struct {
	*exec.Cmd
	kit  *enginetest.Kit
	base string
	read *os.File
	out  *bufio.Reader
	errs *lockedText
}

// lockedText can be read while a process still writes to it.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// place gives a test the environment in which its processes live.
func place(t *testing.T) (*enginetest.Kit, string) {
	t.Helper()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	base, err := os.MkdirTemp("/tmp", "cais")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kit.RemoveSessions(t, base+"/state")
		_ = os.RemoveAll(base)
	})
	return kit, base
}

func start(t *testing.T, kit *enginetest.Kit, base string, args ...string) *process {
	t.Helper()
	return startWith(t, kit, base, nil, args...)
}

// startWith is start with variables beside.
func startWith(t *testing.T, kit *enginetest.Kit, base string, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(enginetest.Command(t), args...), kit: kit, base: base, errs: &lockedText{}}
	p.Env = append(os.Environ(), "CAISSON_AGENT="+kit.Agent, "CAISSON_SCAN="+enginetest.Scanner(t), "CAISSON_RUNTIME_DIR="+base+"/s", "CAISSON_STATE_DIR="+base+"/state")
	p.Env = append(p.Env, env...)
	p.Stderr = p.errs
	// Not StdoutPipe: Wait would close it under the reader.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout, p.read, p.out = w, r, bufio.NewReader(r)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	t.Cleanup(func() { _ = p.Process.Kill(); _ = r.Close() })
	return p
}

// await reads output up to a line.
func (p *process) await(t *testing.T, line string) {
	t.Helper()
	got, err := p.out.ReadString('\n')
	if err != nil || got != line+"\n" {
		t.Fatalf("read %q, %v, not %q; standard error: %s", got, err, line, p.errs)
	}
}

// said is what a command that succeeds puts out.
func said(t *testing.T, kit *enginetest.Kit, base string, args ...string) string {
	t.Helper()
	p := start(t, kit, base, args...)
	all, _ := io.ReadAll(p.out)
	if code := p.code(t); code != 0 {
		t.Fatalf("%q: code %d, %s%s", args, code, all, p.errs)
	}
	return strings.TrimSpace(string(all))
}

// collected has gc remove what there is to remove. Where another caisson is at the same
// object it says so, and the next one removes what is left.
func collected(t *testing.T, kit *enginetest.Kit, base string) {
	t.Helper()
	until(t, "gc removes all", func() bool { return start(t, kit, base, "gc").code(t) == 0 })
}

// code waits for the process's end.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// until tries until something holds.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("it did not come to pass: %s", what)
}

// sandboxes are the ids below the private folder: each names a container, and
// perhaps a volume.
func sandboxes(base string) []string {
	folders, _ := filepath.Glob(base + "/s/*")
	for i, f := range folders {
		folders[i] = strings.TrimSuffix(filepath.Base(f), ".owner")
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// state is that of a sandbox's container: "running", "exited", or "gone".
func state(t *testing.T, kit *enginetest.Kit, id string) string {
	t.Helper()
	got, err := kit.API.ContainerInspect(context.Background(), "caisson-"+id)
	if errdefs.IsNotFound(err) {
		return "gone"
	}
	if err != nil {
		t.Fatal(err)
	}
	return got.State.Status
}

func volumeExists(kit *enginetest.Kit, id string) bool {
	_, err := kit.API.VolumeInspect(context.Background(), "caisson-"+id)
	return err == nil
}

// Ctrl-C, Ctrl-\, a terminal that is closed, and what a service manager sends, cancel the run and leave nothing.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) { // as nohup or a script's & has it, which what is started inherits unless it is heard here
			heard := make(chan os.Signal, 1)
			signal.Notify(heard, sig)
			t.Cleanup(func() { signal.Stop(heard) })
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			kit, base := place(t)
			p := start(t, kit, base, "run", "--workspace", "volume", "--timeout", "5m", "--", "sh", "-c", "trap '' INT TERM; echo begun; sleep 600 & sleep 600")
			p.await(t, "begun")
			ids := sandboxes(base)
			if err := p.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := p.code(t); code != 130 {
				t.Errorf("exit code %d; %s", code, p.errs)
			}
			if got := p.errs.String(); got != "caisson: canceled\n" {
				t.Errorf("standard error %q", got)
			}
			if len(ids) != 1 || len(sandboxes(base)) != 0 || state(t, kit, ids[0]) != "gone" || volumeExists(kit, ids[0]) {
				t.Errorf("of %v there is left: folders %v, volume %v", ids, sandboxes(base), volumeExists(kit, ids[0]))
			}
		})
	}
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		kit, base := place(t)
		for _, pause := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
			p := start(t, kit, base, "run", "--workspace", "volume", "--timeout", "5m", "--", "sh", "-c", "trap '' INT TERM; echo begun; sleep 600 & sleep 600")
			p.await(t, "begun")
			ids := sandboxes(base)
			_ = p.Process.Signal(syscall.SIGTERM)
			time.Sleep(pause)
			_ = p.Process.Signal(syscall.SIGTERM) // it may have ended by then
			if code := p.code(t); code != 130 && code != 125 {
				t.Errorf("exit code %d; %s", code, p.errs)
			}
			if len(ids) != 1 || len(sandboxes(base)) != 0 || state(t, kit, ids[0]) != "gone" || volumeExists(kit, ids[0]) {
				t.Errorf("of %v there is left: folders %v, volume %v", ids, sandboxes(base), volumeExists(kit, ids[0]))
			}
		}
	})
	// Before the program runs, too.
	t.Run("early", func(t *testing.T) {
		t.Parallel()
		kit, base := place(t)
		handled := 0 // on a busy machine it may take longer until one is
		for wait := time.Duration(0); wait < 400*time.Millisecond || handled == 0 && wait < 5*time.Second; wait += 40 * time.Millisecond {
			p := start(t, kit, base, "run", "--", "sleep", "60")
			time.Sleep(wait)
			began := len(sandboxes(base)) > 0
			_ = p.Process.Signal(syscall.SIGINT)
			err := p.Wait()
			exit, ok := errors.AsType[*exec.ExitError](err)
			// In its first moments, which a busy machine draws out, a process has not
			// yet asked for the signal; nor has it made anything.
			byDefault := ok && exit.Sys().(syscall.WaitStatus).Signaled() && !began
			if !byDefault && (!ok || exit.ExitCode() != 130) {
				t.Errorf("after %v: %v, %s", wait, err, p.errs)
			}
			if !byDefault {
				handled++
			}
			if left := sandboxes(base); len(left) > 0 {
				t.Errorf("after %v: left %v", wait, left)
			}
		}
		if handled == 0 {
			t.Error("every process ended by the signal itself")
		}
	})
}

// A caisson that is killed cannot clean up. Its sandbox ends by itself, and the
// next command, or gc, removes what is left of it.
// This test is not parallel: the commands of others would remove it early.
func TestKilled(t *testing.T) {
	for name, next := range map[string][]string{"gc": {"gc"}, "next run": {"run", "--", "true"}} {
		t.Run(name, func(t *testing.T) {
			kit, base := place(t)
			p := start(t, kit, base, "run", "--workspace", "volume", "--timeout", "5m", "--", "sh", "-c", "echo begun; (setsid sleep 300 &); sleep 300")
			p.await(t, "begun")
			ids := sandboxes(base)
			if len(ids) != 1 || state(t, kit, ids[0]) != "running" || !volumeExists(kit, ids[0]) {
				t.Fatalf("sandboxes %v", ids)
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = p.Wait()
			until(t, "its container ends", func() bool { return state(t, kit, ids[0]) != "running" })
			q := start(t, kit, base, next...)
			if code := q.code(t); code != 0 {
				t.Errorf("%v: code %d, %s", next, code, q.errs)
			}
			if got := state(t, kit, ids[0]); got != "gone" || volumeExists(kit, ids[0]) || len(sandboxes(base)) > 0 {
				t.Errorf("afterwards: container %s, volume %v, folders %v", got, volumeExists(kit, ids[0]), sandboxes(base))
			}
		})
	}
}

// Who kills caisson at any moment of making a sandbox leaves nothing that gc
// does not find.
func TestKilledWhileMaking(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	for wait := 20 * time.Millisecond; wait < 500*time.Millisecond; wait += 60 * time.Millisecond {
		p := start(t, kit, base, "run", "--workspace", "volume", "--", "sleep", "300")
		time.Sleep(wait)
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	ids := sandboxes(base)
	// The engine may be at work for a request whose asker is gone, and another
	// caisson's sweep at the same object: what is left then is for the next gc.
	until(t, "gc leaves nothing", func() bool {
		q := start(t, kit, base, "gc", "--json")
		all, _ := io.ReadAll(q.out)
		if code := q.code(t); code != 0 && !strings.Contains(string(all), `"error":`) || !json.Valid(all) {
			t.Fatalf("gc: code %d, %s%s", code, all, q.errs)
		}
		return len(sandboxes(base)) == 0 && !slices.ContainsFunc(ids, func(id string) bool {
			return state(t, kit, id) != "gone" || volumeExists(kit, id)
		})
	})
	list, err := kit.API.ContainerList(context.Background(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "dev.caisson.id"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		for _, m := range c.Mounts {
			if strings.HasPrefix(m.Source, base) {
				t.Errorf("container %v is left", c.Names)
			}
		}
	}
}

// A reader that has enough ends the run without a word; nothing is left behind.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	p := start(t, kit, base, "run", "--", "seq", "100000000")
	p.await(t, "1")
	_ = p.read.Close()
	if code := p.code(t); code != 130 || p.errs.String() != "" {
		t.Errorf("code %d, %s", code, p.errs)
	}
	if left := sandboxes(base); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// Whoever reads the logs of an exec may stop to, by any means: it goes on.
func TestLogsReader(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	ok := func(args ...string) string { t.Helper(); return said(t, kit, base, args...) }
	ok("session", "create", "work")
	defer ok("session", "rm", "work", "--force")
	id := ok("exec", "work", "--detach", "--", "sh", "-c", "echo line; while :; do sleep 0.01; echo line; done")
	for name, stop := range map[string]func(*process) error{
		"Ctrl-C":        func(p *process) error { return p.Process.Signal(syscall.SIGINT) },
		"SIGTERM":       func(p *process) error { return p.Process.Signal(syscall.SIGTERM) },
		"a closed pipe": func(p *process) error { return p.read.Close() },
	} {
		p := start(t, kit, base, "logs", "--follow", "work", id)
		p.await(t, "line")
		if err := stop(p); err != nil {
			t.Fatal(err)
		}
		p.code(t)
		if ps := ok("ps", "work"); !strings.Contains(ps, "running") {
			t.Errorf("after %s: %s", name, ps)
		}
	}
}

// A caisson that is killed while it copies a workspace leaves containers that hold
// it. They go with the session, or with the next gc.
func TestKilledWhileCopying(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	ok := func(args ...string) string { t.Helper(); return said(t, kit, base, args...) }
	ok("session", "create", "a", "--workspace-size", "1g")
	// A file with two names that is written on an overlay makes the next a copy.
	ok("exec", "a", "--", "sh", "-c", "head -c 300000000 /dev/zero > big; echo a > one; ln one two")
	ok("session", "fork", "a", "b")
	ok("exec", "b", "--", "sh", "-c", "echo b > one")
	var b sandbox.SessionView
	if err := json.Unmarshal([]byte(ok("session", "show", "b", "--json")), &b); err != nil {
		t.Fatal(err)
	}
	holders := func() []container.Summary {
		list, err := kit.API.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(
			filters.Arg("volume", b.Workspace.Source), filters.Arg("label", "dev.caisson.agent=helper"))})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	kill := func() {
		p := start(t, kit, base, "session", "fork", "b", "c")
		for begun := time.Now(); len(holders()) == 0; time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("it was not seen to copy: %s", p.errs)
			}
		}
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	kill()
	if len(holders()) == 0 {
		t.Fatal("nothing is left of it")
	}
	until(t, "gc leaves nothing", func() bool { // the engine may be at work for a request whose asker is gone
		collected(t, kit, base)
		return len(holders()) == 0
	})
	kill()
	own, err := kit.API.VolumeInspect(t.Context(), b.Workspace.Source)
	if err != nil {
		t.Fatal(err)
	}
	ok("session", "rm", "b")
	ok("session", "rm", "a")
	collected(t, kit, base)
	owned := filters.NewArgs(filters.Arg("label", "dev.caisson.session=b"), filters.Arg("label", "dev.caisson.owner="+own.Labels["dev.caisson.owner"]))
	volumes, err := kit.API.VolumeList(t.Context(), volume.ListOptions{Filters: owned})
	if err != nil || len(volumes.Volumes) > 0 {
		t.Errorf("left: %+v, %v", volumes.Volumes, err)
	}
}
