package manager_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// boasting is a runtime that says that starts are seen, whose agents cannot.
type boasting struct{ *runtimetest.Memory }

func (b boasting) Capabilities(ctx context.Context) (runtimes.Capabilities, error) {
	caps, err := b.Memory.Capabilities(ctx)
	caps.Starts = runtimes.Enforced
	return caps, err
}

// An exec that was let run since its starts would be judged does not where they cannot be.
func TestCountedOnStarts(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{true, false} {
		m, _ := light(t, func(cfg *manager.Config, rt *runtimetest.Memory) {
			cfg.Runtimes = runtimes.Only(runtimetest.MemoryName, boasting{rt})
			cfg.Starts = sandbox.StartsRule{Mode: sandbox.StartsJudge}
			cfg.Gate = func(ctx context.Context, q manager.Question) (manager.Answer, error) {
				if q.Exec != nil && asks {
					if judged, err := q.Exec.JudgesStarts(ctx); err != nil || !judged {
						t.Errorf("the gate is told %v, %v", judged, err)
					}
				}
				return manager.Unjudged(ctx, q)
			}
		})
		res, err := m.Run(t.Context(), echo, sandbox.Streams{})
		if asks && (!errors.Is(err, sandbox.Unsupported) || len(res.Stdout) > 0) {
			t.Errorf("it ran: %v %+v", err, res)
		}
		if !asks && (err != nil || res.Code != 0 || len(res.NotEnforced) == 0) {
			t.Errorf("nobody counted on it: %v %+v", err, res)
		}
	}
}
