//go:build linux

package track

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Restorer makes entries as they are described. It follows no link on the way:
// where one stands in a path, that entry is an error. Folders get their modes
// and times at the end, by [Restorer.Finish], when nothing changes in them any
// more. It is used from one goroutine.
type Restorer struct {
	t    *Tracker
	dirs []wire.Entry
	shut []shut // folders that were opened to be written in
}

type shut struct {
	path string
	mode uint32
}

// Restorer returns a restorer of the tracked folder.
func (t *Tracker) Restorer() *Restorer {
	return &Restorer{t: &Tracker{cfg: t.cfg, inotify: -1, unheard: true}}
}

// Make makes one entry. content is a file's, and nil for anything else. A file
// with a Target is made another name of that path.
func (r *Restorer) Make(e wire.Entry, content io.Reader) error {
	var err error
	acting := r.t.as(func() {
		if err = r.make(e, content); errors.Is(err, unix.EACCES) && r.openUp(parentPath(e.Path)) {
			err = r.make(e, content)
		}
	})
	if err != nil {
		err = &fs.PathError{Op: "restore", Path: e.Path, Err: err}
	}
	return errors.Join(err, acting)
}

// openUp lets a folder be written by its owner, until the end.
func (r *Restorer) openUp(path string) bool {
	dir, name, err := r.t.parentOf(path)
	if err != nil {
		return false
	}
	defer dir.close()
	fd, mode, err := opened(dir.fd, name, unix.S_IFDIR)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if mode&0o300 == 0o300 || unix.Chmod(procPath(fd), mode|0o700) != nil {
		return false
	}
	r.shut = append(r.shut, shut{path, mode})
	return true
}

func (r *Restorer) make(e wire.Entry, content io.Reader) error {
	dir, name, err := r.t.parentOf(e.Path)
	if e.Kind == wire.KindGone && gone(err) {
		return nil // its folder is gone too, or is none any more
	}
	if err != nil {
		return err
	}
	defer dir.close()
	switch e.Kind {
	case wire.KindGone:
		return r.t.removeAt(dir.fd, name)
	case wire.KindDir:
		r.dirs = append(r.dirs, e)
		return r.t.makeDir(dir.fd, name)
	case wire.KindLink:
		if err := r.t.removeAt(dir.fd, name); err != nil {
			return err
		}
		if err := unix.Symlinkat(e.Target, dir.fd, name); err != nil {
			return err
		}
		return setTime(dir.fd, name, e.MTime)
	case wire.KindFile:
		return r.makeFile(dir.fd, name, e, content)
	}
	if e.Kind == wire.KindOther && e.Target == "fifo" {
		return r.makeFIFO(dir.fd, name, e)
	}
	return errors.New("what was there cannot be made again")
}

func (r *Restorer) makeFile(dir int, name string, e wire.Entry, content io.Reader) error {
	switch {
	case e.Keep:
		fd, _, err := opened(dir, name, unix.S_IFREG)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return errors.Join(unix.Chmod(procPath(fd), e.Mode&0o7777), setTime(dir, name, e.MTime))
	case e.Target != "":
		from, other, err := r.t.parentOf(e.Target)
		if err != nil {
			return err
		}
		defer from.close()
		if err := r.t.removeAt(dir, name); err != nil {
			return err
		}
		return unix.Linkat(from.fd, other, dir, name, 0)
	}
	temp := tempName()
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), temp)
	_, err = io.Copy(f, content)
	if err == nil {
		err = unix.Fchmod(fd, e.Mode&0o7777)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = setTime(dir, temp, e.MTime)
	}
	if err == nil {
		err = unix.Renameat(dir, temp, dir, name)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			if err = r.t.removeAt(dir, name); err == nil {
				err = unix.Renameat(dir, temp, dir, name)
			}
		}
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(dir, temp, 0))
	}
	return nil
}

func (r *Restorer) makeFIFO(dir int, name string, e wire.Entry) error {
	if err := r.t.removeAt(dir, name); err != nil {
		return err
	}
	if err := unix.Mkfifoat(dir, name, 0o600); err != nil {
		return err
	}
	fd, _, err := opened(dir, name, unix.S_IFIFO)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return errors.Join(unix.Chmod(procPath(fd), e.Mode&0o7777), setTime(dir, name, e.MTime))
}

func tempName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails: it ends the process instead
	return ".caisson-" + hex.EncodeToString(b[:])
}

func setTime(dir int, name string, mtime int64) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
	return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// makeDir makes a folder, open to its owner until [Restorer.Finish].
func (t *Tracker) makeDir(dir int, name string) error {
	err := unix.Mkdirat(dir, name, 0o700)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil
	}
	if err := t.removeAt(dir, name); err != nil {
		return err
	}
	return unix.Mkdirat(dir, name, 0o700)
}

// removeAt removes an entry, a folder with all that is in it. One that is not
// there is fine.
func (t *Tracker) removeAt(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return err
	}
	path, mode, err := opened(dir, name, unix.S_IFDIR)
	if err != nil {
		return err
	}
	if mode&0o700 != 0o700 {
		err = unix.Chmod(procPath(path), 0o700)
	}
	if err = errors.Join(err, unix.Close(path)); err != nil {
		return err
	}
	f, err := t.openDir(dir, name)
	if err != nil {
		return err
	}
	for _, n := range namesOf(f.fd) {
		if err = t.removeAt(f.fd, n); err != nil {
			break
		}
	}
	f.close()
	if err != nil {
		return err
	}
	err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// Finish gives folders their modes and times, the deepest first.
func (r *Restorer) Finish() error {
	var err error
	acting := r.t.as(func() {
		for i := len(r.shut) - 1; i >= 0; i-- {
			no := r.setDir(wire.Entry{Path: r.shut[i].path, Mode: r.shut[i].mode}, false)
			if !errors.Is(no, unix.ENOENT) { // it may have been removed itself
				err = errors.Join(err, no)
			}
		}
		for depth := maxDepth + 1; depth >= 0; depth-- {
			for _, d := range r.dirs {
				if d.Path == "." && depth == 0 || d.Path != "." && strings.Count(d.Path, "/")+1 == depth {
					err = errors.Join(err, r.setDir(d, true))
				}
			}
		}
	})
	return errors.Join(err, acting)
}

func (r *Restorer) setDir(e wire.Entry, time bool) error {
	dir, name, err := r.t.parentOf(e.Path)
	if err != nil {
		return &fs.PathError{Op: "restore", Path: e.Path, Err: err}
	}
	defer dir.close()
	fd, _, err := opened(dir.fd, name, unix.S_IFDIR)
	if err != nil {
		return &fs.PathError{Op: "restore", Path: e.Path, Err: err}
	}
	defer unix.Close(fd)
	err = unix.Chmod(procPath(fd), e.Mode&0o7777)
	if time && err == nil {
		err = setTime(dir.fd, name, e.MTime)
	}
	if err != nil {
		return &fs.PathError{Op: "restore", Path: e.Path, Err: err}
	}
	return nil
}
