//go:build linux

package bubblewrap_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// left names what there is in the place. Processes have a while to end.
func (p place) left(testing.TB) []string {
	var all []string
	for _, pattern := range []string{p.base + "/*", p.state + "/volumes/*"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		all = append(all, found...)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if running := p.bwraps(); len(running) == 0 || time.Now().After(end) {
			return append(all, running...)
		}
	}
}

// bwraps are the processes that have the place among their arguments.
func (p place) bwraps() (all []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well formed
	for _, name := range lines {
		if line, err := os.ReadFile(name); err == nil && bytes.Contains(line, []byte(filepath.Dir(p.state)+"/")) { // it may have ended
			all = append(all, name)
		}
	}
	return all
}

func spec(kind sandbox.WorkspaceKind) sandbox.Spec {
	return sandbox.Spec{
		Language: "shell", Session: "suite", Image: sandbox.Image{Ref: "host"}, Holder: "suite", Identity: sandbox.IdentityFor("suite"),
		Workspace: sandbox.Workspace{Kind: kind}, Labels: map[string]string{"test": "conformance"},
	}
}

// The contract holds for root, and for an ordinary user who has one uid.
func TestConformance(t *testing.T) { both(t, conform) }

func conform(t *testing.T) {
	for _, kind := range []sandbox.WorkspaceKind{sandbox.WorkspaceTmpfs, sandbox.WorkspaceVolume} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			rt := p.runtime(t, "", p.agent)
			subject := runtimetest.Subject{
				New:       func(testing.TB) runtimes.Runtime { return rt },
				Spec:      func(testing.TB) sandbox.Spec { return spec(kind) },
				Faults:    p.faults(),
				Leftovers: p.left,
			}
			runtimetest.Run(t, subject)
			t.Run("ends", func(t *testing.T) { runtimetest.Ends(t, subject) })
		})
	}
}

// faults are those of bwrap, each a step of Create.
func (p place) faults() []runtimetest.Fault {
	program := func(name string) func(testing.TB) runtimes.Runtime {
		return func(t testing.TB) runtimes.Runtime { return p.runtime(t, name, p.agent) }
	}
	faults := []runtimetest.Fault{
		{Name: "an agent that ends at once", Want: sandbox.Unavailable, New: func(t testing.TB) runtimes.Runtime { return p.runtime(t, "", "/bin/false") }},
		{Name: "no bwrap", Want: sandbox.Unavailable, New: program("/nonexistent")},
		{Name: "bwrap fails", Want: sandbox.Unavailable, New: program("/bin/false")},
		{Name: "the host's network", Want: sandbox.Conflict, New: p.bwrap(`--unshare-net) ;;`)},
		{Name: "the host's shared memory", Want: sandbox.Conflict, New: p.bwrap("--unshare-ipc) ;;\n--mqueue) shift ;;")},
	}
	if os.Geteuid() == 0 {
		return append(faults,
			runtimetest.Fault{Name: "no filter", Want: sandbox.Conflict, New: p.bwrap(`--seccomp) shift ;;`)},
			runtimetest.Fault{Name: "more capabilities", Want: sandbox.Conflict, New: p.bwrap(`--cap-drop) shift ;;`)})
	}
	return append(faults,
		runtimetest.Fault{Name: "no filter", Want: sandbox.Unavailable, New: p.bwrap(`--ro-bind-data) shift; shift ;;`)},
		runtimetest.Fault{Name: "more capabilities", Want: sandbox.Conflict, New: p.bwrap(`--cap-drop) args+=("$1" ALL --cap-add CAP_SYS_CHROOT); shift ;;`)})
}

// bwrap is a runtime whose bwrap treats one argument in its own way, by an arm of a
// shell's case.
func (p place) bwrap(arm string) func(testing.TB) runtimes.Runtime {
	return func(t testing.TB) runtimes.Runtime {
		t.Helper()
		script := "#!/bin/bash\nargs=()\nwhile [ $# -gt 0 ]; do\n\tcase \"$1\" in\n" + arm + "\n*) args+=(\"$1\") ;;\nesac\n\tshift\ndone\nexec bwrap \"${args[@]}\"\n"
		name := filepath.Join(t.TempDir(), "bwrap")
		if err := enginetest.WriteProgram(name, []byte(script)); err != nil {
			t.Fatal(err)
		}
		return p.runtime(t, name, p.agent)
	}
}
