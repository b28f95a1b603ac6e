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

// openDir opens a folder by its name in another. It follows no link.
func openDir(parent int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, name, flags, 0)
	if errors.Is(err, unix.EACCES) {
		return opened(parent, name, unix.S_IFDIR, 0o500, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	return fd, err
}

// openFile opens a regular file by its name in a folder, and never anything
// else: to open a FIFO or a device is an act.
func openFile(parent int, name string) (int, error) {
	return opened(parent, name, unix.S_IFREG, 0o400, unix.O_RDONLY)
}

// opened gets hold of an entry without opening it, sees that it is of the kind
// that is meant, and opens that very entry. One that its owner has closed to
// himself is opened for a moment, as he could.
func opened(parent int, name string, kind, need uint32, flags int) (int, error) {
	path, err := unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if err := unix.Fstat(path, &st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT != kind {
		return -1, errIrregular
	}
	self := fmt.Sprintf("/proc/self/fd/%d", path)
	flags |= unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	fd, err := unix.Open(self, flags, 0)
	if !errors.Is(err, unix.EACCES) || st.Mode&need == need {
		return fd, err
	}
	if unix.Chmod(self, st.Mode&0o7777|need) != nil {
		return -1, err
	}
	fd, err = unix.Open(self, flags, 0)
	return fd, errors.Join(err, unix.Chmod(self, st.Mode&0o7777))
}

// parentOf opens the folder that holds a path's last name, name by name. The
// caller closes fd.
func (t *Tracker) parentOf(path string) (fd int, name string, err error) {
	fd, err = t.openRoot()
	if err != nil {
		return -1, "", err
	}
	if path == "." {
		return fd, ".", nil
	}
	for {
		first, rest, more := strings.Cut(path, "/")
		if first == "" || first == "." || first == ".." {
			return -1, "", errors.Join(fmt.Errorf("%q is not a path below the workspace", path), unix.Close(fd))
		}
		if !more {
			return fd, first, nil
		}
		next, err := openDir(fd, first)
		_ = unix.Close(fd) // only read from
		if err != nil {
			return -1, "", err
		}
		fd, path = next, rest
	}
}

// Open opens a regular file of the tree for reading. Errors: those of the
// system, and one for what is no regular file. The caller closes it.
func (t *Tracker) Open(path string) (f *os.File, err error) {
	acting := t.as(func() {
		var dir, fd int
		var name string
		if dir, name, err = t.parentOf(path); err != nil {
			return
		}
		defer unix.Close(dir)
		if fd, err = openFile(dir, name); err != nil {
			err = &fs.PathError{Op: "open", Path: path, Err: err}
			return
		}
		f = os.NewFile(uintptr(fd), path)
	})
	return f, errors.Join(err, acting)
}
