//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/sandbox"
)

// Groups are where control groups are made: below a folder of ours, of the one
// hierarchy of version 2, or of each controller of version 1. The zero value makes
// none.
type Groups struct {
	v2    bool
	dirs  map[string]string // by controller; version 2 has one, ""
	works bool
}

// ours is the folder below which all groups are.
const ours = "caisson"

// controllers are those of version 1 that a sandbox needs.
var controllers = []string{"memory", "pids", "cpu", "cpuacct", "freezer"}

// FindGroups looks where groups can be made below root, the place of the control
// groups: of version 1 at its top, of version 2 in the topmost group that this
// process is in and may divide. For root that is the top; to an ordinary user systemd
// has given one, user@UID.service or a service with Delegate=yes.
func FindGroups(root string) Groups {
	self, _ := os.ReadFile("/proc/self/cgroup") // without it, it is the top
	return findGroups(root, string(self), func(path string) bool { return unix.Access(path, unix.W_OK) == nil })
}

func findGroups(root, self string, writable func(string) bool) Groups {
	if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
		at, found := topmost(root, self, writable)
		g := Groups{v2: true, dirs: map[string]string{"": filepath.Join(at, ours)}}
		g.works = found && g.delegate() == nil
		return g
	}
	g := Groups{dirs: map[string]string{}}
	for _, c := range controllers {
		if dir, err := filepath.EvalSymlinks(filepath.Join(root, c)); err == nil && writable(dir) {
			g.dirs[c] = filepath.Join(dir, ours)
		}
	}
	g.works = len(g.dirs) == len(controllers)
	return g
}

// topmost is the outermost of the groups around this process that it may write to.
func topmost(root, self string, writable func(string) bool) (string, bool) {
	dir := root
	at := "" // the group of this process
	for line := range strings.Lines(self) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
			at = rest
		}
	}
	for _, part := range append(strings.Split(at, "/"), "") {
		if writable(filepath.Join(dir, "cgroup.procs")) {
			return dir, true
		}
		dir = filepath.Join(dir, part)
	}
	return "", false
}

// Work reports whether groups with every limit can be made.
func (g Groups) Work() bool { return g.works }

// delegate has the folder of version 2 made, with the controllers for what is
// below it.
func (g Groups) delegate() error {
	dir := g.dirs[""]
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.WriteFile(filepath.Join(d, "cgroup.subtree_control"), []byte("+memory +pids +cpu"), 0); err != nil {
			return err
		}
	}
	return nil
}

// Group is the control group of one sandbox: a folder for each controller.
type Group struct {
	Groups
	id sandbox.ID
}

func (g Group) dir(controller string) string {
	if g.v2 {
		controller = ""
	}
	return filepath.Join(g.dirs[controller], string(g.id))
}

// folders are all of them, each once: controllers may share one.
func (g Group) folders() []string {
	var all []string
	for c := range g.dirs {
		if d := g.dir(c); !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// Make makes the group with its limits, or gives one that is there others. Who fails
// leaves the rest to remove.
func (g Group) Make(l Limits) error {
	for _, d := range g.folders() {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("make a control group: %w", err)
		}
	}
	memory := strconv.FormatInt(int64(l.Memory), 10)
	type setting struct {
		controller, name, value string
		may                     bool // it may be missing
	}
	list := []setting{
		{"memory", "memory.limit_in_bytes", memory, false}, {"memory", "memory.memsw.limit_in_bytes", memory, true}, {"memory", "memory.swappiness", "0", true},
		{"pids", "pids.max", strconv.Itoa(l.PIDs), false},
		{"cpu", "cpu.cfs_period_us", strconv.FormatInt(l.PeriodUS, 10), false}, {"cpu", "cpu.cfs_quota_us", strconv.FormatInt(l.QuotaUS, 10), false},
	}
	if g.v2 {
		list = []setting{
			{"", "memory.max", memory, false}, {"", "memory.swap.max", "0", true}, {"", "pids.max", strconv.Itoa(l.PIDs), false},
			{"", "cpu.max", fmt.Sprintf("%d %d", l.QuotaUS, l.PeriodUS), false},
		}
	}
	if !g.v2 { // version 1 takes no limit of memory above that of memory and swap: which comes first depends on the old ones
		_ = os.WriteFile(filepath.Join(g.dir("memory"), "memory.memsw.limit_in_bytes"), []byte(memory), 0)
	}
	for _, s := range list {
		err := os.WriteFile(filepath.Join(g.dir(s.controller), s.name), []byte(s.value), 0)
		if err != nil && (!s.may || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("limit a control group: %w", err)
		}
	}
	return nil
}

// Join takes the calling thread into the group, and with it what it starts. Of
// version 1 alone, which has groups of threads. The thread is named by 0: for any number
// the kernel waits some 10 ms until nobody starts a process anywhere.
func (g Group) Join() error {
	for _, d := range g.folders() {
		if err := os.WriteFile(filepath.Join(d, "tasks"), []byte("0"), 0); err != nil {
			return fmt.Errorf("enter a control group: %w", err)
		}
	}
	return nil
}

// Seen are where the sandbox sees its own counters.
func (g Group) Seen() (binds []Bind) {
	if g.v2 {
		return []Bind{{g.dir(""), "/sys/fs/cgroup"}}
	}
	for _, c := range controllers {
		binds = append(binds, Bind{g.dir(c), "/sys/fs/cgroup/" + c})
	}
	return binds
}

// freeze stops all processes, or lets them go on.
func (g Group) freeze(ctx context.Context, stop bool) error {
	file, value, want := filepath.Join(g.dir("freezer"), "freezer.state"), "THAWED", "THAWED"
	if stop {
		value, want = "FROZEN", "FROZEN"
	}
	state := file
	if g.v2 {
		file, value, want = filepath.Join(g.dir(""), "cgroup.freeze"), "0", "frozen 0"
		if stop {
			value, want = "1", "frozen 1"
		}
		state = filepath.Join(g.dir(""), "cgroup.events")
	}
	for {
		if err := os.WriteFile(file, []byte(value), 0); err != nil {
			return g.gone(err)
		}
		if b, err := os.ReadFile(state); err != nil {
			return g.gone(err)
		} else if strings.Contains(string(b), want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (g Group) gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return sandbox.Errorf(sandbox.NotFound, "sandbox %s has ended: %w", g.id.Short(), err)
	}
	return err
}

// processes are those in the group, each once, as this host counts.
func (g Group) processes() (pids []int) {
	for _, d := range g.folders() {
		b, err := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		if err != nil {
			continue // it is gone, and so are they
		}
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// remove kills what is in the group and removes it.
func (g Group) remove(ctx context.Context) error {
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		if pids := g.processes(); len(pids) > 0 {
			kill(pids, func() { _ = g.freeze(ctx, false) }) // what is frozen cannot die; where that fails, it is seen below
		}
		var left error
		for _, d := range g.folders() {
			if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) { // what has a process in it is busy
				left = errors.Join(left, err)
			}
		}
		if left == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return sandbox.Errorf(sandbox.TimedOut, "remove the control group of sandbox %s: %w: %w", g.id.Short(), left, ctx.Err()).WithHint("try again with: caisson gc")
		case <-time.After(pause):
		}
	}
}

// killPatience is how long, in ms, the end of one process is waited for.
const killPatience = 5

// kill kills processes, calls thaw, and waits a moment for their ends.
func kill(pids []int, thaw func()) {
	var ends []unix.PollFd
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			defer unix.Close(fd)
			ends = append(ends, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
		_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
	}
	thaw()
	for len(ends) > 0 {
		switch n, err := unix.Poll(ends[:1], killPatience); {
		case errors.Is(err, unix.EINTR):
		case n == 0:
			return // who removes the group looks again
		default:
			ends = ends[1:]
		}
	}
}

// sample reads the group's counters.
func (g Group) sample() (sandbox.Sample, error) {
	s := sandbox.Sample{Time: time.Now(), Cores: runtime.NumCPU()}
	number := func(controller, name string) int64 {
		b, _ := os.ReadFile(filepath.Join(g.dir(controller), name)) // what cannot be read is 0
		n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		return n
	}
	field := func(controller, name, key string) int64 {
		b, _ := os.ReadFile(filepath.Join(g.dir(controller), name)) // as above
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && k == key {
				n, _ := strconv.ParseInt(v, 10, 64)
				return n
			}
		}
		return 0
	}
	if _, err := os.Stat(g.dir("memory")); err != nil {
		return s, g.gone(err)
	}
	usage, limit, cached := "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"
	if g.v2 {
		usage, limit, cached = "memory.current", "memory.max", "inactive_file"
		s.CPU = sandbox.Duration(field("", "cpu.stat", "usage_usec")) * 1000
		s.Throttled = sandbox.Duration(field("", "cpu.stat", "throttled_usec")) * 1000
	} else {
		s.CPU = sandbox.Duration(number("cpuacct", "cpuacct.usage"))
		s.Throttled = sandbox.Duration(field("cpu", "cpu.stat", "throttled_time"))
	}
	s.MemoryCached, s.MemoryLimit = sandbox.Bytes(number("memory", usage)), sandbox.Bytes(number("memory", limit))
	s.Memory = max(0, s.MemoryCached-sandbox.Bytes(field("memory", "memory.stat", cached)))
	s.Processes, s.ProcessLimit = int(number("pids", "pids.current")), int(min(number("pids", "pids.max"), math.MaxInt32))
	return s, nil
}
