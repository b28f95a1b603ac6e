//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/runtimes"
)

// Groups of version 2 are made in the topmost one that this process may divide.
func TestFindGroups(t *testing.T) {
	t.Parallel()
	const service = "user.slice/user-1000.slice/user@1000.service"
	self := "0::/" + service + "/app.slice/caisson.service\n"
	for name, tt := range map[string]struct {
		writable string // this and what is below it
		want     string // "" where none can be made
	}{
		"root":               {"", "caisson"},
		"delegated":          {service, service + "/caisson"},
		"the service's own":  {service + "/app.slice/caisson.service", service + "/app.slice/caisson.service/caisson"},
		"nothing is its own": {"elsewhere", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for dir := filepath.Join(root, service, "app.slice/caisson.service"); ; dir = filepath.Dir(dir) {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(dir+"/cgroup.controllers", nil, 0o644); err != nil {
					t.Fatal(err)
				}
				if dir == root {
					break
				}
			}
			may := filepath.Join(root, tt.writable)
			g := findGroups(root, self, func(path string) bool { return strings.HasPrefix(path, may+"/") })
			if tt.want == "" {
				if _, err := os.Stat(filepath.Join(root, service, "cgroup.subtree_control")); err == nil {
					t.Error("a group that is not its own was divided")
				}
				return
			}
			if !g.Work() || g.dirs[""] != filepath.Join(root, tt.want) {
				t.Errorf("works %v, at %s", g.Work(), g.dirs[""])
			}
			b, err := os.ReadFile(filepath.Join(root, filepath.Dir(tt.want), "cgroup.subtree_control"))
			if err != nil || string(b) != "+memory +pids +cpu" {
				t.Errorf("%v, %q", err, b)
			}
		})
	}
	if g := findGroups(t.TempDir(), self, func(string) bool { return true }); g.Work() {
		t.Error("groups where there are none")
	}
}

func TestProcessLimit(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]runtimes.Level{
		"5.13.19": runtimes.NotEnforced, "5.14.0-generic": runtimes.Enforced, "6.1.0-13-amd64": runtimes.Enforced, "4.19": runtimes.NotEnforced, "odd": runtimes.NotEnforced,
	} {
		if got := limitOf(release); got != want {
			t.Errorf("%s: %q", release, got)
		}
	}
}
