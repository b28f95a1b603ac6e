//go:build linux

package bubblewrap_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// place is where a test's sandboxes are.
type place struct{ base, state, agent string }

func newPlace(t testing.TB) place {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cais") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return place{filepath.Join(dir, "s"), filepath.Join(dir, "state"), enginetest.Agent(t)}
}

// runtime returns the runtime of a place, with a program in bwrap's stead where
// one is named. It skips where none can work.
func (p place) runtime(t testing.TB, program, agent string) *bubblewrap.Runtime {
	t.Helper()
	enginetest.Bubblewrap(t)
	rt, err := bubblewrap.New(bubblewrap.Config{Program: program, Agent: agent, Base: p.base, State: p.state})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// left names what there is in the place.
func (p place) left(testing.TB) []string {
	var all []string
	for _, pattern := range []string{p.base + "/*", p.state + "/volumes/*"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		all = append(all, found...)
	}
	return all
}

func spec(kind sandbox.WorkspaceKind) sandbox.Spec {
	return sandbox.Spec{
		Language: "shell", Session: "suite", Image: sandbox.Image{Ref: "host"}, Holder: "suite", Identity: sandbox.IdentityFor("suite"),
		Workspace: sandbox.Workspace{Kind: kind}, Labels: map[string]string{"test": "conformance"},
	}
}

func TestConformance(t *testing.T) {
	for _, kind := range []sandbox.WorkspaceKind{sandbox.WorkspaceTmpfs, sandbox.WorkspaceVolume} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			rt := p.runtime(t, "", p.agent)
			runtimetest.Run(t, runtimetest.Subject{
				New:  func(testing.TB) runtimes.Runtime { return rt },
				Spec: func(testing.TB) sandbox.Spec { return spec(kind) },
				Faults: []runtimetest.Fault{
					{Name: "an agent that ends at once", Want: sandbox.Unavailable, New: func(t testing.TB) runtimes.Runtime { return p.runtime(t, "", "/bin/false") }},
					{Name: "no bwrap", Want: sandbox.Unavailable, New: func(t testing.TB) runtimes.Runtime { return p.runtime(t, "/nonexistent", p.agent) }},
					{Name: "bwrap fails", Want: sandbox.Unavailable, New: func(t testing.TB) runtimes.Runtime { return p.runtime(t, "/bin/false", p.agent) }},
					{Name: "no filter", Want: sandbox.Conflict, New: func(t testing.TB) runtimes.Runtime { return p.without(t, "--seccomp", "5") }},
					{Name: "more capabilities", Want: sandbox.Conflict, New: func(t testing.TB) runtimes.Runtime { return p.without(t, "--cap-drop", "ALL") }},
					{Name: "the host's network", Want: sandbox.Conflict, New: func(t testing.TB) runtimes.Runtime { return p.without(t, "--unshare-net", "") }},
				},
				Leftovers: p.left,
			})
		})
	}
}

// without is a runtime whose bwrap leaves out an argument, with its value where
// that is given.
func (p place) without(t testing.TB, argument, value string) runtimes.Runtime {
	t.Helper()
	shift := ""
	if value != "" {
		shift = "shift; "
	}
	script := "#!/bin/bash\nargs=()\nwhile [ $# -gt 0 ]; do\n\tif [ \"$1\" = " + argument + " ]; then " + shift + ":; else args+=(\"$1\"); fi\n\tshift\ndone\nexec bwrap \"${args[@]}\"\n"
	name := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(name, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return p.runtime(t, name, p.agent)
}
