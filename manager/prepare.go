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
	// image, and that its taker alone has; nil where none is ready.
	Take(ctx context.Context, runtime string, spec sandbox.Spec) box.Ready
	// Shelves says what there is. Errors: NotFound where there is no pool.
	Shelves(ctx context.Context) ([]sandbox.PoolShelf, error)
}

// ready is how a box of a runtime is taken from the pool, nil where there is none. An
// image that somebody named is not what a pool has.
func (m *Manager) ready(runtime, image string) func(context.Context, sandbox.Spec) box.Ready {
	if m.cfg.Pool == nil || image != "" {
		return nil
	}
	return func(ctx context.Context, spec sandbox.Spec) box.Ready { return m.cfg.Pool.Take(ctx, runtime, spec) }
}

// Prepare makes a sandbox that nobody has asked for yet, for a pool. Nobody is asked
// about it either: what the rules do not allow by themselves is not made. It is
// judged again when it is claimed. Errors: those of [Manager.Open].
func (m *Manager) Prepare(ctx context.Context, runtime string, spec sandbox.Spec) (runtimes.Instance, sandbox.Image, error) {
	lang, err := m.cfg.Images.Language(spec.Language)
	if err != nil {
		return nil, sandbox.Image{}, err
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
	return m.maker.Prepare(ctx, box.Order{Runtime: rt, Language: lang, Judge: m.judgePlan(asker{approve: sandbox.ApproveNever}), Spec: spec})
}

// Shelves says what the pool has. Errors: NotFound where there is none.
func (m *Manager) Shelves(ctx context.Context) ([]sandbox.PoolShelf, error) {
	if m.cfg.Pool == nil {
		return nil, sandbox.Errorf(sandbox.NotFound, "this manager has no pool").WithHint("write pool: into caisson.yaml")
	}
	return m.cfg.Pool.Shelves(ctx)
}
