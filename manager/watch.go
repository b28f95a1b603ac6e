package manager

import (
	"context"
	"crypto/sha256"
	"errors"
	"path"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// errSwapped is why a run was ended: what it loads is not what was judged.
type errSwapped struct{ name string }

func (e *errSwapped) Error() string {
	return e.name + ", which was judged with it, was changed by something else"
}

// verify compares the watched files with what was judged. Error: Conflict.
func (m *Manager) verify(ctx context.Context, b *box.Box, r *resolved) error {
	if r.program == nil {
		return nil
	}
	for name, want := range r.program.Watched {
		if !same(ctx, b.Client, r.run.Role, name, want) {
			return sandbox.Errorf(sandbox.Conflict, "%w before it began", &errSwapped{name}).WithHint("run it again: it is judged anew")
		}
	}
	return nil
}

// watchedMost bounds what is read again: more was never judged.
const watchedMost = 4 << 20

func same(ctx context.Context, c *client.Client, role sandbox.Role, name string, want [sha256.Size]byte) bool {
	b, err := readFile(ctx, c, role, name, watchedMost)
	return err == nil && sha256.Sum256(b) == want
}

// guard ends a run once a file that was judged with it is another. It comes
// late where the change is used at once: see docs/policy.md.
type guard struct {
	cancel context.CancelCauseFunc
	ctx    context.Context
	tasks  sync.WaitGroup
}

// watch begins to guard an exec; the context that it returns ends with a change.
func (m *Manager) watch(ctx context.Context, b *box.Box, r *resolved) (context.Context, *guard, error) {
	g := &guard{ctx: ctx, cancel: func(error) {}}
	if r.program == nil || len(r.program.Watched) == 0 {
		return ctx, g, nil
	}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	if err := g.start(b.Client, r); err != nil {
		g.stop()
		return ctx, nil, err
	}
	// What was changed before the watch began shows now, the rest from there.
	if err := m.verify(ctx, b, r); err != nil {
		g.stop()
		return ctx, nil, err
	}
	return g.ctx, g, nil
}

// start watches the folders of all files, and those above them, and returns
// once nothing is missed any more.
func (g *guard) start(c *client.Client, r *resolved) error {
	folders := map[string]bool{}
	for name := range r.program.Watched {
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			folders[dir] = true
			if dir == "." {
				break
			}
		}
	}
	ready := make(chan error, len(folders))
	for dir := range folders {
		g.tasks.Go(func() { g.follow(c, r, dir, ready) })
	}
	for range folders {
		if err := <-ready; err != nil {
			return err
		}
	}
	return nil
}

func (g *guard) follow(c *client.Client, r *resolved, dir string, ready chan<- error) {
	told := false
	tell := func(err error) {
		if !told {
			told = true
			ready <- err
		}
	}
	for e, err := range c.Watch(g.ctx, r.run.Role, dir, false) {
		if err != nil {
			tell(err)
			g.cancel(sandbox.Errorf(sandbox.Unavailable, "what it loads cannot be watched any more: %w", err))
			return
		}
		if e.Op == "ready" {
			tell(nil)
			continue
		}
		for name, want := range r.program.Watched {
			touched := e.Op == "overflow" || e.Path == name || strings.HasPrefix(name, e.Path+"/")
			if touched && !same(g.ctx, c, r.run.Role, name, want) && g.ctx.Err() == nil {
				g.cancel(&errSwapped{name})
				return
			}
		}
	}
	tell(sandbox.Errorf(sandbox.Unavailable, "watch %s: it ended at once", dir))
}

// stop ends the watching and waits for that. It is idempotent.
func (g *guard) stop() {
	g.cancel(nil)
	g.tasks.Wait()
}

// explain says in an outcome that it was the guard that ended it.
func (g *guard) explain(out *client.Outcome) {
	if swapped, ok := errors.AsType[*errSwapped](context.Cause(g.ctx)); ok && out.Reason == sandbox.ReasonCanceled {
		out.Cause = swapped.Error()
	}
}
