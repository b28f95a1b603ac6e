//go:build linux

package track

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// errIrregular says that an entry is no regular file.
var errIrregular = errors.New("not a regular file")

// openRoot opens the tracked folder itself.
func (t *Tracker) openRoot() (int, error) {
	fd, err := unix.Open(t.cfg.Root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", t.cfg.Root, err)
	}
	return fd, nil
}

// folder is a folder that is open. One that its owner has closed to himself was
// opened to him, until it is closed again.
type folder struct {
	t    *Tracker
	fd   int
	ajar bool
	mode uint32 // of one that is ajar
}

func (f folder) close() {
	if f.ajar {
		_ = f.t.quietly(func() error { return unix.Fchmod(f.fd, f.mode) }) // its owner may: it has just been done
	}
	_ = unix.Close(f.fd) // only read from
}

// quietly does what the watches would tell of, and does not hear that. What a
// process does to a mode in the same moment is not heard of either.
func (t *Tracker) quietly(do func() error) error {
	if t.unheard {
		return do()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drainLocked()
	err := do()
	t.muted = true
	t.drainLocked()
	t.muted = false
	return err
}

// openDir opens a folder by its name in another. It follows no link.
func (t *Tracker) openDir(parent int, name string) (folder, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	f := folder{t: t}
	var err error
	f.fd, err = unix.Openat(parent, name, flags, 0)
	var st unix.Stat_t
	switch {
	case err == nil && !t.mighty() && unix.Fstat(f.fd, &st) == nil && st.Mode&0o100 == 0:
		// It can be listed and not passed through.
		f.mode = st.Mode & 0o7777
		f.ajar = t.quietly(func() error { return unix.Fchmod(f.fd, f.mode|0o500) }) == nil
	case errors.Is(err, unix.EACCES):
		f.fd, f.mode, err = t.unlocked(parent, name, unix.S_IFDIR, 0o500, unix.O_RDONLY|unix.O_DIRECTORY, true)
		f.ajar = err == nil && f.mode&0o500 != 0o500
	}
	return f, err
}

// mighty reports whether modes do not bind who looks: root outside a sandbox.
func (t *Tracker) mighty() bool { return t.cfg.As == nil && unix.Geteuid() == 0 }

// openFile opens a regular file by its name in a folder, and never anything
// else: to open a FIFO or a device is an act.
func (t *Tracker) openFile(parent int, name string) (int, error) {
	fd, _, err := t.unlocked(parent, name, unix.S_IFREG, 0o400, unix.O_RDONLY, false)
	return fd, err
}

// opened gets hold of an entry without opening it, and sees that it is of the
// kind that is meant.
func opened(parent int, name string, kind uint32) (fd int, mode uint32, err error) {
	fd, err = unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != kind {
		err = errIrregular
	}
	if err != nil {
		return -1, 0, errors.Join(err, unix.Close(fd))
	}
	return fd, st.Mode & 0o7777, nil
}

func procPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// unlocked opens the very entry that it has got hold of. One that its owner has
// closed to himself is opened for the moment, as he could, or with leave until
// its folder is closed.
func (t *Tracker) unlocked(parent int, name string, kind, need uint32, flags int, leave bool) (int, uint32, error) {
	path, mode, err := opened(parent, name, kind)
	if err != nil {
		return -1, 0, err
	}
	defer unix.Close(path)
	flags |= unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	fd, err := unix.Open(procPath(path), flags, 0)
	if !errors.Is(err, unix.EACCES) || mode&need == need {
		return fd, mode, err
	}
	err = t.quietly(func() error {
		if err := unix.Chmod(procPath(path), mode|need); err != nil {
			return err
		}
		if fd, err = unix.Open(procPath(path), flags, 0); err == nil && leave {
			return nil
		}
		return errors.Join(err, unix.Chmod(procPath(path), mode))
	})
	return fd, mode, err
}

// parentOf opens the folder that holds a path's last name, name by name. The
// caller closes it.
func (t *Tracker) parentOf(path string) (folder, string, error) {
	fd, err := t.openRoot()
	f := folder{t: t, fd: fd}
	if err != nil {
		return f, "", err
	}
	if path == "." {
		return f, ".", nil
	}
	for {
		first, rest, more := strings.Cut(path, "/")
		if first == "" || first == "." || first == ".." {
			f.close()
			return f, "", fmt.Errorf("%q is not a path below the workspace", path)
		}
		if !more {
			return f, first, nil
		}
		next, err := t.openDir(f.fd, first)
		f.close()
		if err != nil {
			return f, "", err
		}
		f, path = next, rest
	}
}

// Open opens a regular file of the tree for reading. Errors: those of the
// system, and one for what is no regular file. The caller closes it.
func (t *Tracker) Open(path string) (f *os.File, err error) {
	t.walking.Lock()
	defer t.walking.Unlock()
	acting := t.as(func() {
		dir, name, no := t.parentOf(path)
		if err = no; err != nil {
			return
		}
		defer dir.close()
		var fd int
		if fd, err = t.openFile(dir.fd, name); err != nil {
			err = &fs.PathError{Op: "open", Path: path, Err: err}
			return
		}
		f = os.NewFile(uintptr(fd), path)
	})
	return f, errors.Join(err, acting)
}
