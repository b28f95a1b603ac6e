package pool_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/manager/pool"
	"github.com/caisson-dev/caisson/sandbox"
)

// until waits for a state, for a minute.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// Another process takes from a pool. What it keeps is its own; what is over the pool
// destroys, also where its taker is gone without a word. Without the pool the taker
// is told to do so itself.
func TestShare(t *testing.T) {
	t.Parallel()
	m := &maker{}
	p, err := pool.New(pool.Config{Wants: []sandbox.PoolWant{{Language: "python", Runtime: "memory", Size: 1}}, Make: m.make, Calm: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	path := filepath.Join(t.TempDir(), "p.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- p.Share(ctx, ln) }()
	go func() { p.Run(ctx); ended <- nil }()

	theirs := &pool.Shared{Path: path}
	take := func() (r box.Ready) {
		t.Helper()
		until(t, "one is ready", func() bool { r = theirs.Take(t.Context(), "memory", "", python); return r != nil })
		return r
	}
	there := func(id sandbox.ID) bool {
		list, err := m.List(t.Context())
		if err != nil {
			t.Error(err)
		}
		for _, h := range list {
			if h.ID == id {
				return true
			}
		}
		return false
	}
	over := take()
	if err := over.Over(); err != nil {
		t.Error(err)
	}
	until(t, "what is over is gone", func() bool { return !there(over.Handle().ID) })
	kept := take()
	kept.Kept()

	// One who dies says nothing: its connection ends.
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "one is ready", func() bool { list, err := theirs.Shelves(t.Context()); return err == nil && list[0].Ready == 1 })
	before, err := m.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(`{"take":{"language":"python","runtime":"memory","image":"sha256:1","network":"none","workspace":"tmpfs","size":268435456,"tmp":67108864,"shm":67108864,"open_files":1024,"file_size":1073741824}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1000)); err != nil || n < 10 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "what its taker left is gone", func() bool {
		gone := 0
		for _, h := range before {
			if !there(h.ID) {
				gone++
			}
		}
		return gone == 1
	})

	last := take()
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := last.Over(); !errors.Is(err, sandbox.Unavailable) && err != nil {
		t.Errorf("over after the pool is gone: %v", err)
	}
	if theirs.Take(t.Context(), "memory", "", python) != nil {
		t.Error("taken from a pool that is gone")
	}
	if _, err := theirs.Shelves(t.Context()); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("what a pool has that is gone: %v", err)
	}
	if !there(kept.Handle().ID) {
		t.Error("what was kept is gone")
	}
}
