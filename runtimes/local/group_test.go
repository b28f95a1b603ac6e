//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
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

// A sandbox is held to its limits by the files of either version of control groups, and
// what it uses is read from them.
func TestGroupLimits(t *testing.T) {
	t.Parallel()
	limits := Limits{Memory: 64 * sandbox.MiB, PeriodUS: 20_000, QuotaUS: 10_000, PIDs: 30}
	for name, tt := range map[string]struct {
		there []string // what the kernel has at the top
		want  map[string]string
		told  map[string]string // by the kernel, afterwards
	}{
		"version 1": {
			[]string{"memory/", "pids/", "cpu/", "cpuacct/", "freezer/"},
			map[string]string{
				"memory/caisson/1/memory.limit_in_bytes": "67108864", "memory/caisson/1/memory.memsw.limit_in_bytes": "67108864", "memory/caisson/1/memory.swappiness": "0",
				"pids/caisson/1/pids.max": "30", "cpu/caisson/1/cpu.cfs_quota_us": "10000", "cpu/caisson/1/cpu.cfs_period_us": "20000",
			},
			map[string]string{
				"memory/caisson/1/memory.usage_in_bytes": "3000", "memory/caisson/1/memory.stat": "cache 9\ntotal_inactive_file 1000\n",
				"pids/caisson/1/pids.current": "4", "cpuacct/caisson/1/cpuacct.usage": "5000", "cpu/caisson/1/cpu.stat": "nr_throttled 1\nthrottled_time 6000\n",
			},
		},
		"version 2": {
			[]string{"cgroup.controllers"},
			map[string]string{"caisson/1/memory.max": "67108864", "caisson/1/memory.swap.max": "0", "caisson/1/pids.max": "30", "caisson/1/cpu.max": "10000 20000"},
			map[string]string{
				"caisson/1/memory.current": "3000", "caisson/1/memory.stat": "file 9\ninactive_file 1000\n",
				"caisson/1/pids.current": "4", "caisson/1/cpu.stat": "usage_usec 5\nthrottled_usec 6\n",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				if strings.HasSuffix(name, "/") {
					name += ".there"
				}
				if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range tt.there {
				write(name, "")
			}
			g := Group{findGroups(root, "0::/\n", func(string) bool { return true }), "1"}
			if err := g.Make(limits); err != nil || !g.Work() {
				t.Fatalf("%v, works %v", err, g.Work())
			}
			for name, want := range tt.want {
				if b, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(b) != want {
					t.Errorf("%s: %v, %q, want %q", name, err, b, want)
				}
			}
			for name, text := range tt.told {
				write(name, text)
			}
			s, err := g.sample()
			if err != nil || s.Memory != 2000 || s.MemoryLimit != 64*sandbox.MiB || s.Processes != 4 || s.ProcessLimit != 30 || s.CPU != 5000 || s.Throttled != 6000 {
				t.Errorf("%v, %+v", err, s)
			}
		})
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
