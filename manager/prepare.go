package manager

import (
	"context"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Pool has sandboxes that were made before anybody asked: pool.Pool, or that of
// another process.
type Pool interface {
	// Take returns one that can become what a runtime would make of a spec, with its
	// image, and that its taker alone has; nil where none is ready. named is an image in
	// place of the language's, or "".
	Take(ctx context.Context, runtime, named string, spec sandbox.Spec) box.Ready
	// Shelves says what there is. Errors: NotFound where there is no pool.
	Shelves(ctx context.Context) ([]sandbox.PoolShelf, error)
}

// ready is how a box of a runtime is taken from the pool, nil where there is none.
func (m *Manager) ready(runtime, image string) func(context.Context, sandbox.Spec) box.Ready {
	if m.cfg.Pool == nil {
		return nil
	}
	return func(ctx context.Context, spec sandbox.Spec) box.Ready {
		return m.cfg.Pool.Take(ctx, runtime, image, spec)
	}
}

// readyFor is how a session's sandbox is taken from the pool: as an empty one, into
// which the session's user and workspace come when it is claimed.
func (m *Manager) readyFor(rt runtimes.Runtime, v sandbox.Session, image string) func(context.Context, sandbox.Spec) box.Ready {
	take := m.ready(m.nameOf(v), image)
	adopter, ok := rt.(runtimes.Adopter)
	if take == nil || !ok || !adopter.Adopts(v.Workspace) {
		return nil
	}
	return func(ctx context.Context, spec sandbox.Spec) box.Ready {
		if spec.Workspace.Kind != sandbox.WorkspaceTmpfs {
			spec.Workspace, spec.Limits.Workspace = sandbox.Workspace{}, 0
		}
		return take(ctx, spec)
	}
}

// Prepare makes a sandbox that nobody has asked for yet, for a pool. Nobody is asked
// about it either: what the rules do not allow by themselves is not made. It is
// judged again when it is claimed. image is in place of the language's, which may be
// none then. Errors: those of [Manager.Open].
func (m *Manager) Prepare(ctx context.Context, runtime, image string, spec sandbox.Spec) (_ runtimes.Instance, _ sandbox.Image, err error) {
	var lang sandbox.Language
	if spec.Language != "" {
		if lang, err = m.cfg.Images.Language(spec.Language); err != nil {
			return nil, sandbox.Image{}, err
		}
	}
	rt, err := m.runtimeOf(runtime)
	if err != nil {
		return nil, sandbox.Image{}, err
	}
	caps, err := rt.Capabilities(ctx)
	if err != nil {
		return nil, sandbox.Image{}, err
	}
	if !caps.Claim {
		return nil, sandbox.Image{}, sandbox.Errorf(sandbox.Unsupported, "the %s runtime cannot hand over a sandbox that is made already", runtime).
			WithHint("take it out of pool: in caisson.yaml")
	}
	return m.maker.Prepare(ctx, box.Order{Runtime: rt, Language: lang, Image: image, Judge: m.judgePlan(asker{approve: sandbox.ApproveNever}), Spec: spec})
}

// Shelves says what the pool has. Errors: NotFound where there is none.
func (m *Manager) Shelves(ctx context.Context) ([]sandbox.PoolShelf, error) {
	if m.cfg.Pool == nil {
		return nil, sandbox.Errorf(sandbox.NotFound, "this manager has no pool").WithHint("write pool: into caisson.yaml")
	}
	return m.cfg.Pool.Shelves(ctx)
}
