//go:build linux

package process_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// place is where a test's sandboxes are.
type place struct{ base, state string }

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
	return place{filepath.Join(dir, "s"), filepath.Join(dir, "state")}
}

func (p place) runtime(t testing.TB, agent string) *process.Runtime {
	t.Helper()
	rt, err := process.New(process.Config{Agent: agent, Base: p.base, State: p.state})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func (p place) left(testing.TB) []string {
	var all []string
	for _, pattern := range []string{p.base + "/*", p.state + "/volumes/*"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		all = append(all, found...)
	}
	return all
}

// both runs a test as root and as an ordinary user.
func both(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Run("root", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		test(t)
	})
	t.Run("user", func(t *testing.T) {
		if enginetest.AsUser(t) {
			test(t)
		}
	})
}

func TestConformance(t *testing.T) {
	both(t, func(t *testing.T) {
		for _, kind := range []sandbox.WorkspaceKind{sandbox.WorkspaceTmpfs, sandbox.WorkspaceVolume} {
			t.Run(string(kind), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				rt := p.runtime(t, enginetest.Agent(t))
				subject := runtimetest.Subject{
					New: func(testing.TB) runtimes.Runtime { return rt },
					Spec: func(testing.TB) sandbox.Spec {
						return sandbox.Spec{
							Language: "shell", Session: "suite", Image: sandbox.Image{Ref: "host"}, Holder: "suite", Identity: sandbox.IdentityFor("suite"),
							Workspace: sandbox.Workspace{Kind: kind},
						}
					},
					Faults: []runtimetest.Fault{
						{Name: "an agent that ends at once", Want: sandbox.Unavailable, New: func(t testing.TB) runtimes.Runtime { return p.runtime(t, "/bin/false") }},
						{Name: "no agent", Want: sandbox.Unavailable, New: func(t testing.TB) runtimes.Runtime { return p.runtime(t, "/nonexistent") }},
					},
					Leftovers: p.left,
				}
				runtimetest.Run(t, subject)
				t.Run("ends", func(t *testing.T) { runtimetest.Ends(t, subject) })
			})
		}
	})
}

// hostLanguages knows one language, and no image.
type hostLanguages struct{}

func (hostLanguages) Language(string) (sandbox.Language, error) {
	return sandbox.Language{Name: "shell", Suffixes: []string{".sh"}, Image: "none", RunCode: []string{"bash", "{file}"}, RunFile: []string{"bash", "{file}"}}, nil
}

func (hostLanguages) Ensure(context.Context, string) (sandbox.Image, error) {
	return sandbox.Image{}, sandbox.Errorf(sandbox.Internal, "an engine was asked for an image")
}

func (hostLanguages) Forget(sandbox.Image) {}

// What a program is not kept from it can do, and the result says so; what it leaves
// behind ends, and the host is as it was.
func TestNoIsolation(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T) {
		p := newPlace(t)
		m, err := manager.New(manager.Config{
			Runtimes: runtimes.Only(process.Name, p.runtime(t, enginetest.Agent(t))), Images: hostLanguages{}, Gate: manager.Unjudged, Patience: enginetest.Patience,
			Holder: "suite", Alive: func(string) bool { return true },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			if left := p.left(t); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		mark := string(sandbox.NewID())
		port := ln.Addr().(*net.TCPAddr).Port
		res, err := m.Run(t.Context(), sandbox.Run{
			Language: "shell",
			Code:     fmt.Sprintf("set -e\npwd\nwhoami\necho $HOME\n: > a; : > /tmp/%[1]s\nls -d /var/lib\nexec 3<>/dev/tcp/127.0.0.1/%[2]d && echo connected\n(setsid bash -c 'exec -a %[1]s sleep 600' >/dev/null 2>&1 &)\n", mark, port),
		}, sandbox.Streams{})
		want := "/workspace\nsandbox\n" + sandbox.HomeDir + "\n/var/lib\nconnected\n"
		if err != nil || res.Code != 0 || string(res.Stdout) != want {
			t.Errorf("%v, %+v\n%s%s", err, res.Exit, res.Stdout, res.Stderr)
		}
		for _, what := range []string{"isolation", "network", "read_only_root", "seccomp"} {
			if !slices.Contains(res.NotEnforced, what) {
				t.Errorf("not enforced, by the result: %q", res.NotEnforced)
			}
		}
		if _, err := os.Stat("/tmp/" + mark); err == nil {
			t.Error("its files for a moment stay on the host")
		}
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			if b, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(b), mark) {
				t.Errorf("%s still runs", name)
			}
		}
	})
}
