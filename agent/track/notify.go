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

// Bounds of what is remembered between two observations. Beyond them the whole
// tree is walked.
const (
	maxPending = 32 << 10
	maxWatches = 64 << 10
)

// watchDir watches an open folder.
func (t *Tracker) watchDir(d *dir, fd int) {
	if t.inotify < 0 || d.wd != 0 {
		return
	}
	if len(t.wds) >= maxWatches {
		t.lame("there are too many folders to watch")
		return
	}
	// By the open folder and not by its path, which may lead elsewhere now.
	wd, err := unix.InotifyAddWatch(t.inotify, fmt.Sprintf("/proc/self/fd/%d", fd), watchMask)
	if err != nil {
		t.lame("the kernel refuses a watch: " + err.Error())
		return
	}
	d.wd = int32(wd)
	t.wds[d.wd] = d
}

// lame notes that watches do not see everything from now on.
func (t *Tracker) lame(why string) {
	if t.lameness == "" {
		t.lameness = why
	}
}

// drain reads what the watches saw and books it to those who live now.
func (t *Tracker) drain() {
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
		t.heard(t.buf[:n])
		if t.doubt != "" {
			t.flush()
			return
		}
	}
}

// flush throws away what the watches saw: the tree will be walked, which sees
// more.
func (t *Tracker) flush() {
	for range 64 {
		n, err := unix.Read(t.inotify, t.buf[:])
		if err != nil && !errors.Is(err, unix.EINTR) || n == 0 {
			return
		}
	}
}

func (t *Tracker) heard(buf []byte) {
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask := binary.NativeEndian.Uint32(buf[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		if end > len(buf) {
			return
		}
		name := string(bytes.TrimRight(buf[unix.SizeofInotifyEvent:end], "\x00"))
		buf = buf[end:]
		t.since |= t.live
		switch d := t.wds[wd]; {
		case mask&unix.IN_Q_OVERFLOW != 0:
			t.doubt = "more happened than the kernel remembers"
		case mask&unix.IN_IGNORED != 0:
			delete(t.wds, wd)
		case t.muted && mask&^(unix.IN_ISDIR) == unix.IN_ATTRIB:
			// This was the tracker itself.
		case d != nil:
			t.heardOf(d, mask, name)
		}
	}
}

func (t *Tracker) heardOf(d *dir, mask uint32, name string) {
	if name == "" {
		t.touch(d.path(), t.live)
		return
	}
	p := d.path()
	full := path.Join(p, name)
	t.touch(full, t.live)
	t.suspect(full, mask)
	const names = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	if mask&names == 0 {
		return
	}
	t.touch(p, t.live) // its time changed
	if mask&unix.IN_ISDIR == 0 {
		return
	}
	if sub := d.subs[name]; sub != nil {
		t.forgetDir(sub)
	}
	if mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
		t.fresh = append(t.fresh, full)
	}
}

// What is known of a name between two observations.
const (
	born  = 1 << iota // it appeared
	wrote             // and was changed
)

// suspect doubts where a name appeared, was changed, and is gone again: it may
// have been another name of a file that is still there, and nothing is heard of
// that one.
func (t *Tracker) suspect(p string, mask uint32) {
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

// touch notes that a path was touched by actors.
func (t *Tracker) touch(p string, actors uint64) {
	if _, known := t.pending[p]; !known && len(t.pending) >= maxPending {
		t.doubt = "more was touched than is remembered"
		return
	}
	t.pending[p] |= actors
	t.since |= actors
}
