//go:build linux

package pid1

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

// procInfo is what /proc says of one process.
type procInfo struct {
	pid     int
	group   int // of threads: the process's own number, where pid is a thread's
	parent  int
	uid     int    // the effective one
	state   byte   // of its main thread
	threads int    // its main thread among them, also one that has ended
	groups  []byte // the Groups line's value, as it stands
}

// dead reports whether nothing of the process runs any more: it waits to be
// reaped. One whose main thread has ended lives as long as its other threads.
func (p procInfo) dead() bool { return (p.state == 'Z' || p.state == 'X') && p.threads <= 1 }

// inGroup reports whether the process carries the supplementary group gid.
func (p procInfo) inGroup(gid int) bool {
	var buf [12]byte
	want := strconv.AppendInt(buf[:0], int64(gid), 10)
	rest := p.groups
	for len(rest) > 0 {
		var word []byte
		word, rest, _ = bytes.Cut(rest, []byte{' '})
		if bytes.Equal(word, want) {
			return true
		}
	}
	return false
}

// execGroup returns the exec group that the process carries, or 0.
func (p procInfo) execGroup() int {
	for w := range bytes.FieldsSeq(p.groups) {
		if n := parseInt(w); n >= firstGroup && n < firstGroup+groupCount {
			return int(n)
		}
	}
	return 0
}

// scan calls visit for every process of the sandbox but the agent's own, with the
// group of its exec.
func (a *Agent) scan(visit func(procInfo)) error {
	if a.cfg.Alone != nil {
		return a.nested(visit)
	}
	return scanAll(visit)
}

// scanAll calls visit for every process of the sandbox but the agent. The info's
// groups are valid during the call only. A process that goes meanwhile is left
// out.
func scanAll(visit func(procInfo)) error {
	dir, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	self := unix.Getpid()
	var names []string
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil {
			return err
		}
		if n <= 0 {
			return nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil || pid == self {
				continue
			}
			if info, ok := readProc(pid); ok {
				visit(info)
			}
		}
	}
}

// readProc reads a process's state, threads and groups.
func readProc(pid int) (procInfo, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return procInfo{}, false
	}
	defer unix.Close(fd)
	var buf [2048]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil || n <= 0 {
		return procInfo{}, false
	}
	info := procInfo{pid: pid}
	rest := buf[:n]
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		if v, ok := bytes.CutPrefix(line, []byte("State:\t")); ok && len(v) > 0 {
			info.state = v[0]
		}
		if v, ok := bytes.CutPrefix(line, []byte("Tgid:\t")); ok {
			info.group = int(parseInt(v))
		}
		if v, ok := bytes.CutPrefix(line, []byte("PPid:\t")); ok {
			info.parent = int(parseInt(v))
		}
		if v, ok := bytes.CutPrefix(line, []byte("Uid:\t")); ok {
			_, v, _ = bytes.Cut(v, []byte{'\t'})
			v, _, _ = bytes.Cut(v, []byte{'\t'})
			info.uid = int(parseInt(v))
		}
		if v, ok := bytes.CutPrefix(line, []byte("Groups:\t")); ok {
			info.groups = bytes.TrimSpace(v)
		}
		if v, ok := bytes.CutPrefix(line, []byte("Threads:\t")); ok {
			info.threads = int(parseInt(v))
			break // what is of interest came before it
		}
	}
	return info, true
}
