//go:build linux

package pid1

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/agent/wire"
)

// put unpacks a tar stream below the workspace with a role's rights. No entry
// can leave the workspace, whatever links are there: os.Root sees to it at each
// step.
func (a *Agent) put(req *wire.Put, r io.Reader) (files int, size int64, err error) {
	defer a.room.stale()
	acting := a.as(req.Role, func() { files, size, err = unpack(string(req.Dir), r) })
	return files, size, errors.Join(err, acting)
}

// unpacker makes entries below a folder of the workspace.
type unpacker struct {
	root *os.Root
	dir  string
	dirs []folderMode
}

// folderMode is a folder that gets its mode when nothing more comes into it.
type folderMode struct {
	name string
	mode fs.FileMode
}

func unpack(dir string, r io.Reader) (files int, size int64, err error) {
	root, err := os.OpenRoot(wire.WorkspaceDir)
	if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	u := &unpacker{root: root, dir: filepath.Clean(dir)}
	if u.dir != "." {
		if err := root.MkdirAll(u.dir, 0o755); err != nil {
			return 0, 0, err
		}
	}
	files, size, err = u.all(tar.NewReader(r))
	return files, size, errors.Join(err, u.finish())
}

func (u *unpacker) all(tr *tar.Reader) (files int, size int64, err error) {
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, size, nil
		}
		if err != nil {
			return files, size, fmt.Errorf("read archive: %w", err)
		}
		n, err := u.entry(h, tr)
		if n == 0 && errors.Is(err, fs.ErrPermission) && u.openUp(path.Dir(path.Join(u.dir, h.Name))) {
			n, err = u.entry(h, tr)
		}
		size += n
		if err != nil {
			return files, size, err
		}
		files++
	}
}

// openUp lets a folder that is closed to its owner be written by him, until the
// end.
func (u *unpacker) openUp(name string) bool {
	st, err := u.root.Lstat(name)
	if err != nil || !st.IsDir() || st.Mode()&0o300 == 0o300 || u.root.Chmod(name, st.Mode().Perm()|0o700) != nil {
		return false
	}
	u.dirs = append(u.dirs, folderMode{name, st.Mode().Perm()})
	return true
}

// finish gives folders their modes, the deepest first.
func (u *unpacker) finish() error {
	slices.SortStableFunc(u.dirs, func(a, b folderMode) int { return strings.Count(b.name, "/") - strings.Count(a.name, "/") })
	var errs []error
	for _, d := range u.dirs {
		if err := u.root.Chmod(d.name, d.mode); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (u *unpacker) entry(h *tar.Header, r io.Reader) (int64, error) {
	root, dir := u.root, u.dir
	name := path.Join(dir, h.Name)
	mode := fs.FileMode(h.Mode) & 0o777
	if parent := path.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return 0, err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, 0o755); err != nil {
			return 0, err
		}
		u.dirs = append(u.dirs, folderMode{name, mode})
		return 0, root.Chmod(name, mode|0o700)
	case tar.TypeSymlink:
		return 0, u.replace(name, func(name string) error { return root.Symlink(h.Linkname, name) })
	case tar.TypeReg:
		var n int64
		err := u.replace(name, func(name string) error {
			f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
			if err != nil {
				return err
			}
			n, err = io.Copy(f, r)
			err = errors.Join(err, f.Chmod(mode), f.Close())
			if err == nil && h.ModTime.Unix() != 0 {
				err = root.Chtimes(name, h.ModTime, h.ModTime) // of a link too that stands there by now: it leads nowhere else
			}
			if err != nil {
				err = errors.Join(err, root.Remove(name)) // nobody is to take a part for the whole
			}
			return err
		})
		return n, err
	case tar.TypeLink:
		return 0, u.replace(name, func(name string) error { return root.Link(path.Join(dir, h.Linkname), name) })
	}
	return 0, fmt.Errorf("%s: an entry of type %q cannot be put", name, h.Typeflag)
}

// replace has an entry made in the place of what is there: a link is replaced, not
// followed. What is there stays until the whole of it has been made beside it; a
// folder that is empty makes way.
func (u *unpacker) replace(name string, made func(name string) error) error {
	err := made(name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	beside := path.Join(path.Dir(name), ".caisson-"+randomName())
	if err := made(beside); err != nil {
		return err
	}
	if err = u.root.Rename(beside, name); err != nil {
		if err = u.root.Remove(name); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = u.root.Rename(beside, name)
		}
	}
	// It is still there where both were links to one file.
	if gone := u.root.Remove(beside); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
