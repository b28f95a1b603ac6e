package manager_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestMany makes and removes many sessions, a few at a time. What it took
// returns to where it started.
func TestMany(t *testing.T) {
	total, atOnce := 100, 10
	if enginetest.Soaking() {
		total, atOnce = 500, 20
	}
	p := newPlace(t)
	one := func(i int) {
		name := fmt.Sprintf("s%d", i)
		if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: name}); err != nil {
			t.Errorf("create: %v", err)
			return
		}
		res, err := p.ExecIn(t.Context(), name, sandbox.Run{Command: []string{"sh", "-c", "echo x > f; sleep 1000 & cat f"}}, sandbox.Streams{})
		if err != nil || string(res.Stdout) != "x\n" {
			t.Errorf("exec: %+v, %v", res, err)
		}
		if err := p.RemoveSession(t.Context(), name, true); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	one(-1) // what is made once for a process is made
	type use struct {
		descriptors, goroutines int
		heap                    uint64
	}
	now := func() use {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return use{len(fds), runtime.NumGoroutine(), m.HeapAlloc}
	}
	before := now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(total); i = next.Add(1) {
				one(int(i))
			}
		})
	}
	wg.Wait()
	var after use
	until(t, "descriptors and goroutines are back", func() bool {
		after = now()
		// The engine's client and the database keep a few idle connections, each
		// with two goroutines; they do not grow with the sessions.
		return after.descriptors <= before.descriptors+2*atOnce && after.goroutines <= before.goroutines+4*atOnce
	})
	t.Logf("before %+v, after %+v", before, after)
	if after.heap > before.heap+16<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before.heap, after.heap)
	}
	if left := p.held(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	for _, dir := range []string{p.kit.Base, p.dir + "/locks"} {
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("%s has %v, %v", dir, list, err)
		}
	}
}

// failingStore fails once it is told to.
type failingStore struct {
	manager.Store
	fail atomic.Bool
}

var errStore = sandbox.Errorf(sandbox.Exhausted, "the disk is full")

func (f *failingStore) Apply(ctx context.Context, c sandbox.Transaction) error {
	if f.fail.Load() {
		return errStore
	}
	return f.Store.Apply(ctx, c)
}

// TestNoRecordNoRun checks that nothing starts that could not be written down.
func TestNoRecordNoRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := &failingStore{Store: p.store}
	m, err := manager.New(manager.Config{
		Patience: enginetest.Patience, Runtimes: p.kit.Runtimes(t), Images: p.kit.Images, Gate: manager.Unjudged, Store: s, StateID: p.store.ID(), LockDir: p.dir + "/locks",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p.create(t, sandbox.SessionOptions{Name: "work"})
	p.create(t, sandbox.SessionOptions{Name: "unused"})
	sh(t, m, "work", "true")
	s.fail.Store(true)
	touch := sandbox.Run{Command: []string{"touch", "/workspace/ran"}, Language: "shell"}
	for what, try := range map[string]func() error{
		"exec":       func() error { return second(m.ExecIn(t.Context(), "work", touch, sandbox.Streams{})) },
		"background": func() error { return second(m.StartIn(t.Context(), "work", touch, sandbox.Local{})) },
		"first use":  func() error { return second(m.ExecIn(t.Context(), "unused", touch, sandbox.Streams{})) },
		"one-shot":   func() error { return second(m.Run(t.Context(), touch, sandbox.Streams{})) },
		"create":     func() error { return second(m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "more"})) },
	} {
		if err := try(); !errors.Is(err, sandbox.Exhausted) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.fail.Store(false)
	if held := p.held(t); len(held) != 2 {
		t.Errorf("the engine holds %q", held)
	}
	sh(t, m, "work", "test ! -e ran")
}

// TestLostUnder removes a sandbox under a running exec.
func TestLostUnder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	id := sh(t, p.Manager, "work", "true").Sandbox
	begun, done := make(chan struct{}), make(chan sandbox.Result, 1)
	go func() {
		w := &signalWriter{first: func() { close(begun) }}
		res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"sh", "-c", "echo begun; sleep 1000"}}, sandbox.Streams{Stdout: w})
		if err != nil {
			t.Errorf("exec: %v", err)
		}
		done <- res
	}()
	await(t, begun)
	if err := p.kit.API.ContainerRemove(t.Context(), enginetest.ContainerName(id), container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if res := <-done; res.Reason != sandbox.ReasonInfra || res.Cause == "" || string(res.Stdout) != "begun\n" {
		t.Errorf("reason %s (%s), stdout %q", res.Reason, res.Cause, res.Stdout)
	}
	if res := sh(t, p.Manager, "work", "true"); !res.Replaced {
		t.Error("nothing says that the sandbox was replaced")
	}
}
