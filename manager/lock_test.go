package manager_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestUnknownNames calls whatever takes a session's name with names that nobody
// has: each is not found, and makes no file.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, _ := remembering(t, func(c *manager.Config, _ *runtimetest.Memory) { c.LockDir = filepath.Join(dir, "state", "locks") })
	ctx := t.Context()
	for _, name := range []string{"mistyped", "", "../../x", "../../deep/er/x", "/etc/x", "a\x00b"} {
		for what, do := range map[string]func() error{
			"remove":          func() error { return m.RemoveSession(ctx, name, true) },
			"pause":           func() error { return m.PauseSession(ctx, name) },
			"resume":          func() error { return m.ResumeSession(ctx, name) },
			"renew":           func() error { return m.RenewSession(ctx, name, new(sandbox.Duration), nil) },
			"snapshot":        func() error { _, err := m.Snapshot(ctx, name, ""); return err },
			"restore":         func() error { _, err := m.Restore(ctx, name, "x"); return err },
			"remove snapshot": func() error { return m.RemoveSnapshot(ctx, name, "x") },
			"fork":            func() error { _, _, err := m.Fork(ctx, name, sandbox.ForkOptions{}); return err },
			"fork a snapshot": func() error { _, _, err := m.Fork(ctx, name, sandbox.ForkOptions{Snapshot: "x"}); return err },
			"exec":            func() error { _, err := m.ExecIn(ctx, name, echo, sandbox.Streams{}); return err },
			"files":           func() error { _, err := m.Files(ctx, name); return err },
		} {
			if err := do(); !errors.Is(err, sandbox.NotFound) {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() || path != dir {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) > 0 {
		t.Errorf("made: %q, %v", found, err)
	}
	if _, err := os.Stat("/etc/x"); err == nil {
		t.Error("made /etc/x")
	}
}

// lookedUp is a store that tells when a session was looked up.
type lookedUp struct {
	manager.Store
	told chan struct{}
}

func (l lookedUp) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	v, err := l.Store.Sessions(ctx, f)
	select {
	case l.told <- struct{}{}:
	default:
	}
	return v, err
}

// TestLockOfRemoved waits for the lock of a session that is removed meanwhile: no
// file is left of it.
func TestLockOfRemoved(t *testing.T) {
	t.Parallel()
	dir, told := t.TempDir(), make(chan struct{}, 1)
	var store manager.Store
	m, _ := remembering(t, func(c *manager.Config, _ *runtimetest.Memory) {
		store = c.Store
		c.LockDir, c.Store = dir, lookedUp{store, told}
	})
	if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "session-work")
	unlock, err := filelock.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	renewed := make(chan error, 1)
	go func() { renewed <- m.RenewSession(t.Context(), "work", new(sandbox.Duration), nil) }()
	await(t, told)
	if err := errors.Join(store.Apply(t.Context(), sandbox.Transaction{DeleteSession: "work"}), filelock.Remove(path)); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-renewed; !errors.Is(err, sandbox.NotFound) {
		t.Errorf("renewed: %v", err)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
