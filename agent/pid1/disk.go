//go:build linux

package pid1

import (
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// writable are the file systems that users may write to.
var writable = [...]string{wire.WorkspaceDir, "/tmp", "/var/tmp", wire.HomeDir, "/dev/shm"}

// fullness says which of [writable] have no room.
type fullness [len(writable)]bool

func lookFull() (f fullness) {
	for i, dir := range writable {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) != nil || st.Blocks == 0 || st.Flags&unix.ST_RDONLY != 0 {
			continue
		}
		f[i] = st.Bavail == 0 || st.Files > 0 && st.Ffree == 0
	}
	return f
}

// disks tell whether an exec met a file system without room. The kernel counts
// no such errors: what it can be told by is that one became full while the exec
// ran, or was full all the time and something in it changed. What is full for a
// moment only, such as a file that is removed as soon as it cannot grow, leaves
// no sign.
type disks struct {
	spared fullness              // had room when it was looked at
	was    [len(writable)]uint64 // marks of those that had none at the start
	met    bool
}

// look notes one look while it runs.
func (d *disks) look(now fullness) {
	for i, full := range now {
		if full {
			d.met = d.met || d.spared[i]
		} else {
			d.spared[i] = true
		}
	}
}

// diskTick is how long the clock that stamps files may stand still.
const diskTick = 15 * time.Millisecond

// disksBefore looks before an exec begins.
func (a *Agent) disksBefore(req *wire.Exec) (d disks) {
	now := lookFull()
	d.look(now)
	if now != (fullness{}) {
		time.Sleep(diskTick) //nolint:forbidigo // what is changed from now on has another time than what is there
	}
	for i, full := range now {
		if full {
			d.was[i] = a.markOf(req, writable[i])
		}
	}
	return d
}

// metFull has the last look, and reports whether the exec met a full file system.
func (a *Agent) metFull(req *wire.Exec, d *disks) bool {
	now := lookFull()
	d.look(now)
	for i, full := range now {
		d.met = d.met || full && a.markOf(req, writable[i]) != d.was[i]
	}
	return d.met
}

// mostMarked bounds the entries that go into a mark.
const mostMarked = 10_000

// diskSeed is of all marks.
var diskSeed = maphash.MakeSeed()

// markOf is made of the names below a folder and when each entry was last
// changed: a write that finds no room changes that too, and nobody can set it.
func (a *Agent) markOf(req *wire.Exec, dir string) (mark uint64) {
	left := mostMarked
	_ = a.as(req.Role, func() { // without that user's rights it marks what all may see
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			var st unix.Stat_t
			if err == nil && unix.Lstat(path, &st) == nil {
				mark += maphash.Comparable(diskSeed, struct {
					path    string
					changed unix.Timespec
				}{path, st.Ctim})
			}
			return nil // what is closed to who looks, or gone, is left out
		})
	})
	return mark
}
