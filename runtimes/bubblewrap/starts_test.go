//go:build linux

package bubblewrap_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
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
	p := newPlace(t)
	rt := p.runtime(t, "", p.agent)
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
			Runtimes: runtimes.Only(bubblewrap.Name, rt), Images: hostLanguages{}, Gate: gate, Patience: enginetest.Patience,
			Holder: "suite", Starts: sandbox.StartsRule{Mode: sandbox.StartsTell, Required: required},
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

// A run starts one bwrap, the one that makes its sandbox: what the machine can is known
// without.
func TestRunStartsOneBwrap(t *testing.T) {
	t.Parallel()
	both(t, runStartsOneBwrap)
}

func runStartsOneBwrap(t *testing.T) {
	p := newPlace(t)
	started := filepath.Join(t.TempDir(), "started")
	name := filepath.Join(t.TempDir(), "bwrap")
	if err := enginetest.WriteProgram(name, []byte("#!/bin/sh\necho $$ >>"+started+"\nexec bwrap \"$@\"\n")); err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(manager.Config{
		Runtimes: runtimes.Only(bubblewrap.Name, p.runtime(t, name, p.agent)), Images: hostLanguages{}, Gate: manager.Unjudged, Patience: enginetest.Patience,
		Holder: "suite", Starts: sandbox.StartsRule{Mode: sandbox.StartsJudge},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"true"}}, sandbox.Streams{}); err != nil || res.Code != 0 {
		t.Fatalf("%v, %+v", err, res.Exit)
	}
	if b, err := os.ReadFile(started); err != nil || bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("%v, started by one run:\n%s", err, b)
	}
}
