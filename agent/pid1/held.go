//go:build linux

package pid1

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// counter counts what a workspace holds, with its user's rights. What it may not
// read it does not see.
type counter struct {
	held
	stop    func() bool
	stopped bool
	dev     uint64
	seen    map[uint64]bool // by nameless
}

// deepest bounds how many folders are open at once.
const deepest = 200

// workspace counts all files.
func (c *counter) workspace() {
	fd, err := unix.Open(wire.WorkspaceDir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return
	}
	c.dev = st.Dev
	c.folder(fd, 0)
}

// folder counts what is below an open one. A file with several names counts once
// in all.
func (c *counter) folder(fd, depth int) {
	buf := make([]byte, 8<<10)
	var names []string
	for !c.stopped {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return
		}
		c.stopped = c.stop()
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != c.dev {
				continue
			}
			c.entries++
			if st.Mode&unix.S_IFMT != unix.S_IFDIR {
				c.bytes += st.Blocks * 512 / max(1, int64(st.Nlink))
				continue
			}
			c.bytes += st.Blocks * 512
			if depth == deepest || c.stopped {
				continue
			}
			if sub, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				c.folder(sub, depth+1)
				_ = unix.Close(sub) // it was read alone
			}
		}
	}
}

// nameless counts files that were removed and that processes still have open, among those
// whose files the caller may see.
func (c *counter) nameless() {
	_ = scanAll(func(p procInfo) { // without /proc there is nothing to see
		dir := "/proc/" + strconv.Itoa(p.pid) + "/fd"
		names, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, n := range names {
			var st unix.Stat_t
			if unix.Stat(dir+"/"+n.Name(), &st) == nil && st.Nlink == 0 && st.Dev == c.dev && st.Mode&unix.S_IFMT == unix.S_IFREG && !c.seen[st.Ino] {
				c.seen[st.Ino] = true
				c.bytes += st.Blocks * 512
			}
		}
	})
}
