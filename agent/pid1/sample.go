//go:build linux

package pid1

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// sample reads what the sandbox uses now.
func (a *Agent) sample() *wire.Sample {
	s := &wire.Sample{
		CPUUS: a.cgroup.cpuUS(), ThrottledUS: a.cgroup.throttledUS(), MilliCPUs: a.cgroup.milliCPUs(), Cores: a.cores,
		MemoryBytes: a.cgroup.memory(), CachedBytes: a.cgroup.inactiveFile(), MemoryLimit: a.cgroup.memoryLimit(), OOMKills: a.cgroup.oomKills(),
		Processes: a.cgroup.tasks(), ProcessLimit: int(a.cgroup.number("pidslimit")), PIDsMax: a.cgroup.pidsHits(),
		AgentBytes: ownResident(), AgentTasks: ownTasks(),
	}
	_ = a.scan(func(p procInfo) { // an unreadable /proc shows no zombies
		if p.dead() {
			s.Zombies++
		}
	})
	s.ReceivedBytes, s.SentBytes = traffic()
	s.ReadBytes, s.WrittenBytes = a.cgroup.blockIO()
	s.WorkspaceBytes, s.WorkspaceSize = a.workspaceHolds()
	s.TmpBytes, s.TmpSize = tmpHolds()
	return s
}

// workspaceHolds is what the workspace holds and may hold; 0 for what nobody
// bounds.
func (a *Agent) workspaceHolds() (held, size int64) {
	fs, ok := holds(wire.WorkspaceDir)
	if ok && fs.memory {
		return fs.used, fs.size
	}
	most, watched := a.room.size()
	if !watched || !ok {
		return 0, 0 // a folder of the host: its file system is not the sandbox's
	}
	if _, bounded := a.room.free(); bounded {
		return fs.used, fs.size
	}
	a.room.mu.Lock()
	defer a.room.mu.Unlock()
	return a.room.last.held.bytes, most.bytes
}

// fileSystem is what the one at a place says of itself, in bytes.
type fileSystem struct {
	used, size int64
	memory     bool // a tmpfs
}

func holds(dir string) (fileSystem, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return fileSystem{}, false
	}
	unit := int64(st.Frsize)
	if unit == 0 {
		unit = int64(st.Bsize)
	}
	return fileSystem{used: int64(st.Blocks-st.Bfree) * unit, size: int64(st.Blocks) * unit, memory: int64(st.Type) == unix.TMPFS_MAGIC}, true
}

// tmpHolds adds up the file systems in memory that users may write to, but for
// the workspace. Several places can be one file system.
func tmpHolds() (held, size int64) {
	seen := map[uint64]bool{}
	for _, dir := range writable {
		var st unix.Stat_t
		fs, ok := holds(dir)
		if dir == wire.WorkspaceDir || !ok || !fs.memory || unix.Stat(dir, &st) != nil || seen[st.Dev] {
			continue
		}
		seen[st.Dev] = true
		held, size = held+fs.used, size+fs.size
	}
	return held, size
}

// traffic adds up what the network devices of the sandbox have moved, but for
// the loopback device.
func traffic() (received, sent int64) {
	b, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(b) {
		name, counts, ok := bytes.Cut(line, []byte{':'})
		f := bytes.Fields(counts)
		if !ok || len(f) < 9 || string(bytes.TrimSpace(name)) == "lo" {
			continue
		}
		received, sent = received+parseInt(f[0]), sent+parseInt(f[8])
	}
	return received, sent
}

// countCores counts the processors of the machine in a list such as "0-3,6". It
// is 0 where that cannot be read.
func countCores(list string) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, span := strings.Cut(part, "-")
		if part == "" {
			continue
		}
		if !span {
			last = first
		}
		n += int(parseInt([]byte(last))-parseInt([]byte(first))) + 1
	}
	return n
}

// machineCores is how many processors the machine has that are in use.
func machineCores() int {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return 0
	}
	return countCores(string(b))
}
