//go:build linux

package process_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/sandbox"
)

// What the runtime says of starts is what agents do: as root they see them. One that
// is one user with what it runs does not: who has to see them runs nothing, and others
// are told; policy hears of it before.
func TestStartsAreSeenAsSaid(t *testing.T) {
	t.Parallel()
	both(t, startsAreSeenAsSaid)
}

func startsAreSeenAsSaid(t *testing.T) {
	rt := newPlace(t).runtime(t, enginetest.Agent(t))
	caps, err := rt.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := caps.Starts == runtimes.Enforced
	if alone := os.Geteuid() != 0; alone == said {
		t.Errorf("as user %d starts are %q", os.Geteuid(), caps.Starts)
	}
	for _, required := range []bool{false, true} {
		var asked atomic.Bool // a sandbox and its exec are judged beside each other
		gate := func(ctx context.Context, q manager.Question) (manager.Answer, error) {
			if q.Plan != nil && q.Plan.Starts == said {
				asked.Store(true)
			}
			return manager.Unjudged(ctx, q)
		}
		m, err := manager.New(manager.Config{
			Runtimes: runtimes.Only(process.Name, rt), Images: hostLanguages{}, Gate: gate, Patience: enginetest.Patience,
			Holder: "suite", Alive: func(string) bool { return true }, Starts: sandbox.StartsRule{Mode: sandbox.StartsTell, Required: required},
		})
		if err != nil {
			t.Fatal(err)
		}
		res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "/bin/true; :"}}, sandbox.Streams{})
		refused := required && !said
		if refused != errors.Is(err, sandbox.Unsupported) || !asked.Load() {
			t.Errorf("required %v: %v, policy was asked %v", required, err, asked.Load())
		}
		if !refused && (err != nil || said != (len(res.Starts) == 1) || said == slices.Contains(res.NotEnforced, runtimes.Starts)) {
			t.Errorf("required %v: %v, started %+v, not enforced %q", required, err, res.Starts, res.NotEnforced)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
