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

// TestRemovedImageIsMadeAgain: somebody removes an image that this process has
// seen, and the next run makes it again.
func TestRemovedImageIsMadeAgain(t *testing.T) {
	t.Parallel()
	var forgotten atomic.Int32
	m, _ := light(t, func(cfg *manager.Config, rt *runtimetest.Memory) {
		cfg.Images, cfg.Runtime = removedImage{forgotten: &forgotten}, withoutImage{rt, &forgotten}
	})
	if res, err := m.Run(t.Context(), echo, sandbox.Streams{}); err != nil || res.Code != 0 || forgotten.Load() != 1 {
		t.Errorf("%+v, %v; forgotten %d times", res, err, forgotten.Load())
	}
}
