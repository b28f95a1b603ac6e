package manager_test

import (
	"context"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// Policy hears whether what is started in a sandbox will be seen, before that is made.
func TestPlanSaysWhetherStartsAreSeen(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	for _, mode := range []sandbox.StartsMode{sandbox.StartsOff, sandbox.StartsJudge} {
		var seen []bool
		gate := func(ctx context.Context, q manager.Question) (manager.Answer, error) {
			if q.Plan != nil {
				seen = append(seen, q.Plan.Starts)
			}
			return manager.Unjudged(ctx, q)
		}
		m, err := manager.New(manager.Config{
			Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: gate, Holder: kit.Holder, Patience: enginetest.Patience, Starts: sandbox.StartsRule{Mode: mode},
		})
		if err != nil {
			t.Fatal(err)
		}
		mustRun(t, m, shell("true"))
		if len(seen) != 1 || seen[0] != (mode == sandbox.StartsJudge) {
			t.Errorf("%q: policy was told %v", mode, seen)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
