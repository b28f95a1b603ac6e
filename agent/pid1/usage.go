//go:build linux

package pid1

import (
	"bytes"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// counters are what the kernel counts for the whole sandbox.
type counters struct {
	oomKills, pidsHits int64
	tasksPeak          int
}

func (a *Agent) counters() counters {
	return counters{oomKills: a.cgroup.oomKills(), pidsHits: a.cgroup.pidsHits(), tasksPeak: a.cgroup.tasksPeak()}
}

// lastCounters are those that were read while the sandbox had no process but
// the agent, and the count of spawned processes then. While that stands, nobody
// was there to raise them.
type lastCounters struct {
	counters
	spawned uint64
	known   bool
}

// countersBefore are the counters as they stand before an exec.
func (a *Agent) countersBefore() counters {
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()
	if last.known && last.spawned == a.reaper.spawned.Load() {
		return last.counters
	}
	return a.counters()
}

// countersAfter are the counters as they stand now. empty says that no process
// was left when the count of spawned ones was taken.
func (a *Agent) countersAfter(empty bool, spawned uint64) counters {
	c := a.counters()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = lastCounters{counters: c, spawned: spawned, known: empty}
	return c
}

// leastMemory is what a shell and a small program take: where less is left and
// nobody runs who could give something back, files fill the memory, and whatever
// is to remove them is killed in its turn.
const leastMemory = 2 << 20

// account fills an end's use and events.
func (a *Agent) account(ex *exec, end *wire.End, st exitStatus, before counters, seen watch, wall time.Duration) {
	spawned := a.reaper.spawned.Load() // before the look: who comes later is counted
	alone := childless()
	after := a.countersAfter(alone, spawned)
	end.Shared = seen.shared
	if after.oomKills > before.oomKills {
		end.Events = append(end.Events, "oom")
		end.Exhausted = a.childless() && a.cgroup.memoryLeft() < leastMemory
	}
	if after.pidsHits > before.pidsHits {
		end.Events = append(end.Events, "pids")
	}
	if a.metFull(ex.req, &seen.disks) {
		end.Events = append(end.Events, "disk")
	}

	ex.mu.Lock()
	orphans, rss := ex.orphans, ex.maxRSS
	ex.mu.Unlock()
	if ex.nest != nil {
		cpu, peak := ex.nest.rest(&st.usage)
		orphans, rss = orphans+cpu, max(rss, peak)
	}
	u := &end.Usage
	u.WallUS = wall.Microseconds()
	u.CPUUS = (cpuTime(&st.usage) + orphans).Microseconds()
	u.CPUMethod = "rusage of all its processes"

	u.MemoryBytes, u.MemoryMethod = max(rss, st.usage.Maxrss<<10), "rusage of its largest process"
	if floor := ownPeak(); u.MemoryBytes <= floor {
		// A child is born with its parent's peak.
		u.MemoryMethod = "rusage, at most: no larger than the agent"
	}
	if !seen.shared && seen.memory > u.MemoryBytes {
		u.MemoryBytes, u.MemoryMethod = seen.memory, "cgroup, all its processes, sampled"
	}

	standing := a.warm.processes()
	u.Processes, u.ProcessesMethod = max(1, seen.tasks-standing), "cgroup, sampled"
	if !seen.shared && a.cgroup.has("pidspeak") && after.tasksPeak > before.tasksPeak {
		u.Processes, u.ProcessesMethod = max(1, after.tasksPeak-ownTasks()-standing), "cgroup peak"
	}
}

// bookOrphan books a process that nobody waited for to its exec.
func (a *Agent) bookOrphan(group int, st exitStatus) {
	a.mu.Lock()
	ex := a.groups[group]
	a.mu.Unlock()
	if ex == nil {
		return
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.orphans += cpuTime(&st.usage)
	ex.maxRSS = max(ex.maxRSS, st.usage.Maxrss<<10)
}

func cpuTime(ru *unix.Rusage) time.Duration {
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// ownPeak is the agent's own largest resident size, in bytes.
func ownPeak() int64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return ru.Maxrss << 10
}

// ownTasks is how many threads the agent has: each has a folder.
func ownTasks() int {
	var st unix.Stat_t
	if unix.Stat("/proc/self/task", &st) != nil {
		return 0
	}
	return int(st.Nlink) - 2
}

// sampler looks at the sandbox while execs run, for what the kernel keeps no
// peak of.
type sampler struct {
	cgroup *cgroup

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	timer    *time.Timer
	pause    time.Duration
}

// watch is what was seen while one exec ran.
type watch struct {
	shared bool
	disks  disks
	tasks  int
	memory int64
}

type watcher struct {
	s    *sampler
	seen watch
}

// Between two looks: close together while an exec is young, since most are
// short, and rarely later.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 160 * time.Millisecond
)

func newSampler(c *cgroup) *sampler {
	return &sampler{cgroup: c, watchers: map[*watcher]struct{}{}}
}

// watch begins to look on behalf of an exec. before is what was seen before it.
func (s *sampler) watch(before disks) *watcher {
	w := &watcher{s: s, seen: watch{disks: before}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[w] = struct{}{}
	if len(s.watchers) > 1 {
		for other := range s.watchers {
			other.seen.shared = true
		}
	}
	s.pause = firstPause
	if s.timer == nil {
		s.timer = time.AfterFunc(s.pause, s.look)
	} else {
		s.timer.Reset(s.pause)
	}
	return w
}

// stop ends the looking and returns what was seen.
func (w *watcher) stop() watch {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.watchers, w)
	return w.seen
}

func (s *sampler) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) == 0 {
		return
	}
	full, tasks, memory := lookFull(), s.cgroup.tasks()-ownTasks(), s.cgroup.anonymous()
	for w := range s.watchers {
		w.seen.disks.look(full)
		w.seen.tasks = max(w.seen.tasks, tasks)
		w.seen.memory = max(w.seen.memory, memory)
	}
	s.pause = min(2*s.pause, lastPause)
	s.timer.Reset(s.pause)
}

// ownResident is the agent's resident size now, in bytes.
func ownResident() int64 {
	var buf [128]byte
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return 0
	}
	defer f.Close()
	n, err := f.Read(buf[:])
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(buf[:n], []byte{' '})
	resident, _, _ := bytes.Cut(rest, []byte{' '})
	return parseInt(resident) * int64(os.Getpagesize())
}
