//go:build linux

package track

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// watchMask is what is heard of.
const watchMask = unix.IN_CREATE | unix.IN_CLOSE_WRITE | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_ATTRIB | unix.IN_ONLYDIR

// maxPending bounds the paths that are remembered between two observations.
// Beyond it the whole tree is walked.
const maxPending = 32 << 10

// listenLocked makes the watcher, and notes where there is none.
func (t *Tracker) listenLocked() {
	if t.inotify >= 0 {
		return
	}
	if !t.cfg.Watch {
		t.lameLocked("it is not watched")
		return
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.lameLocked("the kernel has no more watchers: " + err.Error())
		return
	}
	t.inotify = fd
}

// watchDir watches an open folder.
func (t *Tracker) watchDir(d *dir, fd int) {
	t.mu.Lock()
	defer t.mu.Unlock() // nobody hears of it before it is known
	if t.inotify < 0 || d.wd != 0 {
		return
	}
	if !t.cfg.Watches.Take() {
		t.lameLocked("there are too many folders to watch")
		return
	}
	// By the open folder and not by its path, which may lead elsewhere now.
	wd, err := unix.InotifyAddWatch(t.inotify, fmt.Sprintf("/proc/self/fd/%d", fd), watchMask)
	if err != nil {
		t.cfg.Watches.Give(1)
		t.lameLocked("the kernel refuses a watch: " + err.Error())
		return
	}
	d.wd = int32(wd)
	if t.wds[d.wd] != nil {
		t.cfg.Watches.Give(1) // the same folder, by a name that it had
	}
	t.wds[d.wd] = d
}

// unwatch gives a folder's watch back.
func (t *Tracker) unwatch(d *dir) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.wd != 0 && t.wds[d.wd] == d {
		_, _ = unix.InotifyRmWatch(t.inotify, uint32(d.wd)) // it may be gone with its folder
		t.dropLocked(d.wd)
	}
}

func (t *Tracker) dropLocked(wd int32) {
	if t.wds[wd] != nil {
		delete(t.wds, wd)
		t.cfg.Watches.Give(1)
	}
}

// lame notes that watches do not see everything from now on: the next
// observation walks the tree, and finds out whether that still holds.
func (t *Tracker) lame(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lameLocked(why)
}

func (t *Tracker) lameLocked(why string) {
	if t.lameness == "" {
		t.lameness = why
	}
}

// suspect notes that the tree must be walked.
func (t *Tracker) suspect(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubt = why
}

// drainLocked reads what the watches saw and books it to those who live now.
func (t *Tracker) drainLocked() {
	if t.inotify < 0 {
		return
	}
	for {
		n, err := unix.Read(t.inotify, t.buf[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n <= 0:
			return // EAGAIN: there is no more
		}
		t.heardLocked(t.buf[:n])
		if t.doubt != "" {
			t.flushLocked()
			return
		}
	}
}

// flushLocked throws away what the watches saw: the tree will be walked, which sees
// more.
func (t *Tracker) flushLocked() {
	for range 64 {
		n, err := unix.Read(t.inotify, t.buf[:])
		if err != nil && !errors.Is(err, unix.EINTR) || n == 0 {
			return
		}
	}
}

func (t *Tracker) heardLocked(buf []byte) {
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask := binary.NativeEndian.Uint32(buf[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		if end > len(buf) {
			return
		}
		name := string(bytes.TrimRight(buf[unix.SizeofInotifyEvent:end], "\x00"))
		buf = buf[end:]
		switch d := t.wds[wd]; {
		case mask&unix.IN_IGNORED != 0:
			t.dropLocked(wd)
			continue
		case t.muted && mask&^(unix.IN_ISDIR) == unix.IN_ATTRIB:
			continue // this was the tracker itself
		case mask&unix.IN_Q_OVERFLOW != 0:
			t.doubt = "more happened than the kernel remembers"
		case d != nil:
			t.heardOfLocked(d, mask, name)
		}
		t.since |= t.live
	}
}

func (t *Tracker) heardOfLocked(d *dir, mask uint32, name string) {
	if name == "" {
		t.touchLocked(d.path(), t.live)
		return
	}
	p := d.path()
	full := path.Join(p, name)
	t.touchLocked(full, t.live)
	t.suspectLocked(full, mask)
	const names = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	if mask&names == 0 {
		return
	}
	t.touchLocked(p, t.live) // its time changed
	if mask&unix.IN_ISDIR == 0 || t.doubt != "" {
		return
	}
	t.folders[full] = t.folders[full] || mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0
}

// What is known of a name between two observations.
const (
	born  = 1 << iota // it appeared
	wrote             // and was changed
)

// suspectLocked doubts where a name appeared, was changed, and is gone again: it may
// have been another name of a file that is still there, and nothing is heard of
// that one.
func (t *Tracker) suspectLocked(p string, mask uint32) {
	const changed = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB
	if t.doubt != "" {
		return
	}
	had := t.brief[p]
	switch {
	case mask&(unix.IN_DELETE|unix.IN_MOVED_TO) != 0 && (had == born|wrote || had&born != 0 && mask&unix.IN_ISDIR != 0):
		t.doubt = "a file was changed under a name that is gone"
	}
	switch {
	case mask&unix.IN_CREATE != 0:
		t.brief[p] = born
	case mask&unix.IN_MOVED_TO != 0:
		t.brief[p] = born | wrote
	case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
		delete(t.brief, p)
	case mask&changed != 0 && had&born != 0:
		t.brief[p] = born | wrote
	}
}

// touchLocked notes that a path was touched by actors.
func (t *Tracker) touchLocked(p string, actors uint64) {
	if _, known := t.pending[p]; !known && len(t.pending) >= maxPending {
		t.doubt = "more was touched than is remembered"
		return
	}
	t.pending[p] |= actors
	t.since |= actors
}
