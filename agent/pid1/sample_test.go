//go:build linux

package pid1

import (
	"os"
	"path/filepath"
	"testing"
)

// tree makes a folder of files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCgroupVersions(t *testing.T) {
	t.Parallel()
	type figures struct{ cpu, throttled, milli, memory, cached, limit, ooms, tasks, most, hits, read, written int64 }
	limited := figures{5_000_000, 250_000, 500, 9000, 1000, 1 << 29, 3, 7, 124, 2, 4096 + 512, 8192}
	for name, c := range map[string]struct {
		files map[string]string
		want  figures
	}{
		"version 1": {map[string]string{
			"cpuacct/cpuacct.usage": "5000000000\n", "cpu/cpu.stat": "nr_periods 9\nnr_throttled 5\nthrottled_time 250000000\n",
			"cpu/cpu.cfs_quota_us": "10000\n", "cpu/cpu.cfs_period_us": "20000\n",
			"memory/memory.usage_in_bytes": "9000\n", "memory/memory.limit_in_bytes": "536870912\n",
			"memory/memory.stat":        "cache 1500\ninactive_file 1\ntotal_inactive_file 1000\n",
			"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
			"pids/pids.current":         "7\n", "pids/pids.max": "124\n", "pids/pids.events": "max 2\n",
			"blkio/blkio.throttle.io_service_bytes": "8:0 Read 4096\n8:0 Write 8192\n8:0 Total 12288\n8:16 Read 512\nTotal 12800\n",
		}, limited},
		"version 1 without limits": {map[string]string{
			"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n",
			"memory/memory.limit_in_bytes": "9223372036854771712\n", "pids/pids.max": "max\n",
		}, figures{}},
		"version 2": {map[string]string{
			"cgroup.controllers": "", "cpu.stat": "usage_usec 5000000\nuser_usec 1\nthrottled_usec 250000\n", "cpu.max": "10000 20000\n",
			"memory.current": "9000\n", "memory.max": "536870912\n", "memory.stat": "anon 4\ninactive_file 1000\n", "memory.events": "oom 4\noom_kill 3\n",
			"pids.current": "7\n", "pids.max": "124\n", "pids.events": "max 2\n",
			"io.stat": "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n8:16 rbytes=512 wbytes=0 rios=1\n",
		}, limited},
		"version 2 without limits": {map[string]string{
			"cgroup.controllers": "", "cpu.max": "max 100000\n", "memory.max": "max\n", "pids.max": "max\n",
		}, figures{}},
		"nothing": {nil, figures{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openCgroup(tree(t, c.files))
			got := figures{
				cpu: g.cpuUS(), throttled: g.throttledUS(), milli: g.milliCPUs(), memory: g.memory(), cached: g.inactiveFile(), limit: g.memoryLimit(),
				ooms: g.oomKills(), tasks: int64(g.tasks()), most: g.number("pidslimit"), hits: g.pidsHits(),
			}
			got.read, got.written = g.blockIO()
			if got != c.want {
				t.Errorf("read %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestCountCores(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{"0\n": 1, "0-1\n": 2, "0-3,6,8-9\n": 7, "": 0} {
		if got := countCores(list); got != want {
			t.Errorf("%q: %d cores, want %d", list, got, want)
		}
	}
}
