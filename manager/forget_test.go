package manager_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// removedImage is seen present until it is forgotten.
type removedImage struct {
	noImages
	forgotten *atomic.Int32
}

func (r removedImage) Forget(sandbox.Image) { r.forgotten.Add(1) }

// withoutImage refuses to create as long as nobody has looked at the image again.
type withoutImage struct {
	runtimes.Runtime
	forgotten *atomic.Int32
}

func (w withoutImage) Create(ctx context.Context, id sandbox.ID, plan runtimes.Plan) (runtimes.Instance, error) {
	if w.forgotten.Load() == 0 {
		return nil, sandbox.Errorf(sandbox.NotFound, "no image")
	}
	return w.Runtime.Create(ctx, id, plan)
}

func (w withoutImage) Branch(_ context.Context, of runtimes.BranchOf) (kept, made sandbox.Workspace, how sandbox.CopiedBy, err error) {
	if w.forgotten.Load() == 0 {
		return kept, made, "", sandbox.Errorf(sandbox.NotFound, "no image")
	}
	return of.Workspace, sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}, sandbox.CopiedByBytes, nil
}

// TestRemovedImageIsMadeAgain: somebody removes an image that this process has
// seen, and whatever next needs it makes it again.
func TestRemovedImageIsMadeAgain(t *testing.T) {
	t.Parallel()
	var forgotten atomic.Int32
	m, _ := remembering(t, func(cfg *manager.Config, rt *runtimetest.Memory) {
		cfg.Images, cfg.Runtimes = removedImage{forgotten: &forgotten}, runtimes.Only(runtimetest.MemoryName, withoutImage{anyWorkspace{rt}, &forgotten})
	})
	ctx := t.Context()
	for name, kind := range map[string]sandbox.WorkspaceKind{"work": sandbox.WorkspaceTmpfs, "origin": sandbox.WorkspaceVolume} {
		if _, err := m.CreateSession(ctx, sandbox.SessionOptions{Name: name, Workspace: sandbox.Workspace{Kind: kind, Source: "theirs"}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, do := range map[string]func() error{
		"a run": func() error { _, err := m.Run(ctx, echo, sandbox.Streams{}); return err },
		"a session's sandbox": func() error {
			_, err := m.ExecIn(ctx, "work", echo, sandbox.Streams{})
			return err
		},
		"a fork": func() error { _, _, err := m.Fork(ctx, "origin", sandbox.ForkOptions{Name: "copy"}); return err },
	} {
		forgotten.Store(0)
		if err := do(); err != nil || forgotten.Load() != 1 {
			t.Errorf("%s: %v; forgotten %d times", name, err, forgotten.Load())
		}
	}
}

// anyWorkspace is a runtime that says of itself that it has volumes.
type anyWorkspace struct{ runtimes.Runtime }

func (a anyWorkspace) Capabilities(ctx context.Context) (runtimes.Capabilities, error) {
	caps, err := a.Runtime.Capabilities(ctx)
	caps.Workspaces = append(caps.Workspaces, string(sandbox.WorkspaceVolume))
	return caps, err
}
