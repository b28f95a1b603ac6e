//go:build linux

package track

import (
	"errors"
	"hash/maphash"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// coarse is how long the clock of a file system may stand still: two writes in
// that time can leave the same times behind.
const coarse = 15 * time.Millisecond

// statMask is what is asked of the kernel.
const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME

// statAt looks at an entry without following it. name points at bytes that end
// with a NUL.
func statAt(dir int, name *byte, st *unix.Statx_t) error {
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(name)),
		unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, statMask, uintptr(unsafe.Pointer(st)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// mark is the part of an entry that tells whether it was touched.
type mark struct {
	ino, size           uint64
	mtime, ctime, btime int64
	mode                uint16
	links, uid          uint32
}

// sum is a mark in eight bytes, and 0 where the clock cannot tell this moment
// from the next: no entry is equal to that.
func (t *Tracker) sum(st *unix.Statx_t) uint64 {
	c := nanos(st.Ctime)
	if t.now-c < int64(coarse) {
		return 0
	}
	return max(maphash.Comparable(t.seed, mark{
		ino: st.Ino, size: st.Size, mtime: nanos(st.Mtime), ctime: c, btime: nanos(st.Btime), mode: st.Mode, links: st.Nlink, uid: st.Uid,
	}), 1)
}

// tick notes what time it is, before entries are looked at.
func (t *Tracker) tick() { t.now = time.Now().UnixNano() }

func kindOf(mode uint16) byte {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return wire.KindFile
	case unix.S_IFDIR:
		return wire.KindDir
	case unix.S_IFLNK:
		return wire.KindLink
	}
	return wire.KindOther
}

// describe makes an entry of what the kernel said.
func (t *Tracker) describe(dir int, name, path string, st *unix.Statx_t) wire.Entry {
	e := wire.Entry{
		Path: path, Kind: kindOf(st.Mode), Mode: uint32(st.Mode & 0o7777), Links: st.Nlink, MTime: nanos(st.Mtime),
		CTime: nanos(st.Ctime), BTime: nanos(st.Btime), Inode: st.Ino,
	}
	if t.now-e.CTime < int64(coarse) {
		e.CTime = -e.CTime
	}
	switch e.Kind {
	case wire.KindFile:
		e.Size = int64(min(st.Size, 1<<62))
	case wire.KindLink:
		e.Target = readlink(dir, name)
	case wire.KindOther:
		e.Target = otherKind(st.Mode)
	case wire.KindDir:
		e.Links = 0 // differs between file systems, and follows from what is in it
	}
	return e
}

// otherKind names what is neither file, folder nor link.
func otherKind(mode uint16) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

// readlink reads a link's target. It may be gone by now: the next look sees.
func readlink(dir int, name string) string {
	buf := make([]byte, 256)
	for {
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return ""
		}
		if n < len(buf) {
			return string(buf[:n])
		}
		buf = make([]byte, 2*len(buf))
	}
}

// gone reports whether an error says that nothing is there.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, errIrregular)
}
