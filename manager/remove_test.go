package manager_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// heldVolumes is a runtime whose volumes somebody holds.
type heldVolumes struct{ runtimes.Runtime }

func (h heldVolumes) Attach(ctx context.Context, of runtimes.Handle) (runtimes.Instance, error) {
	if of.Kind == runtimes.KindVolume {
		return nil, sandbox.Errorf(sandbox.Conflict, "the volume is in use")
	}
	return h.Runtime.Attach(ctx, of)
}

// books counts the sessions that were forgotten. Its record fails with what fails
// returns.
type books struct {
	manager.Recorder
	forgotten map[sandbox.ID]int
	fails     func() error
}

func (b books) Record(context.Context, sandbox.ID, sandbox.Tree, sandbox.RecordOptions) ([]sandbox.ChangeRecord, []sandbox.FileChange, error) {
	return nil, nil, b.fails()
}

func (books) Open(context.Context, sandbox.ID) error { return nil }

func (b books) Forget(session sandbox.ID) error { b.forgotten[session]++; return nil }

// TestRemoveGoesOn removes a session whose volume cannot be: the rest of it goes
// all the same, and it is said what to do.
func TestRemoveGoesOn(t *testing.T) {
	t.Parallel()
	dir, forgotten := t.TempDir(), map[sandbox.ID]int{}
	m, _ := remembering(t, func(c *manager.Config, rt *runtimetest.Memory) {
		c.Runtimes, c.LockDir, c.Recorder = runtimes.Only(runtimetest.MemoryName, heldVolumes{anyWorkspace{rt}}), dir, books{forgotten: forgotten}
	})
	v, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work"})
	if err != nil {
		t.Fatal(err)
	}
	err = m.RemoveSession(t.Context(), "work", false)
	if !errors.Is(err, sandbox.Conflict) || sandbox.HintOf(err) != "remove the rest with: caisson gc" {
		t.Errorf("%v; hint %q", err, sandbox.HintOf(err))
	}
	if _, err := m.Session(t.Context(), "work"); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("the session: %v", err)
	}
	left, _ := filepath.Glob(dir + "/*")
	if forgotten[v.ID] != 1 || len(left) > 0 {
		t.Errorf("its changes were forgotten %d times, locks left: %q", forgotten[v.ID], left)
	}
}

// TestRemovedWhileRecorded removes a session just as something of it is recorded:
// nothing of the record is left.
func TestRemovedWhileRecorded(t *testing.T) {
	t.Parallel()
	forgotten := map[sandbox.ID]int{}
	var remove func() error
	m, _ := remembering(t, func(c *manager.Config, _ *runtimetest.Memory) {
		store := c.Store
		c.Recorder = books{forgotten: forgotten, fails: func() error { return remove() }}
		remove = func() error {
			views, err := store.Sessions(context.Background(), sandbox.SessionFilter{})
			if err != nil || len(views) != 1 {
				return err
			}
			change := sandbox.Transaction{DeleteSession: "work"}
			for _, b := range views[0].Sandboxes {
				change.DeleteSandboxes = append(change.DeleteSandboxes, b.ID)
			}
			return errors.Join(store.Apply(context.Background(), change), sandbox.Errorf(sandbox.Unavailable, "its sandbox is gone"))
		}
	})
	v, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ExecIn(t.Context(), "work", echo, sandbox.Streams{}); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("exec: %v", err)
	}
	if forgotten[v.ID] != 1 {
		t.Errorf("forgotten %d times", forgotten[v.ID])
	}
}
