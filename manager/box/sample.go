package box

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// samplePatience bounds how long an agent may take for a sample, before the
// engine is asked.
const samplePatience = time.Second

// Sample reads what the box uses. Its agent knows most; where it cannot tell, or
// is frozen, the engine is asked.
func (b *Box) Sample(ctx context.Context) (sandbox.Sample, error) {
	short, cancel := context.WithTimeout(ctx, samplePatience)
	s, err := b.Client.Sample(short)
	cancel()
	if err == nil && s.MemoryCached > 0 {
		return s, nil
	}
	engine, ok := b.Instance.(runtimes.Sampler)
	if !ok || ctx.Err() != nil {
		return s, err
	}
	e, failed := engine.Sample(ctx)
	if failed != nil {
		return s, errors.Join(err, failed)
	}
	e.CPUs = cmp.Or(e.CPUs, b.Plan.Spec.Limits.WithDefaults().CPUs)
	e.Workspace, e.WorkspaceSize, e.Tmp, e.TmpSize = s.Workspace, s.WorkspaceSize, s.Tmp, s.TmpSize
	return e, nil
}
