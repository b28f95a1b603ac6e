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

	"github.com/caisson-dev/caisson/agent/wire"
)

// put unpacks a tar stream below the workspace with a role's rights. No entry
// can leave the workspace, whatever links are there: os.Root sees to it at each
// step.
func (a *Agent) put(req *wire.Put, r io.Reader) (files int, size int64, err error) {
	acting := a.as(req.Role, func() { files, size, err = unpack(req.Dir, r) })
	return files, size, errors.Join(err, acting)
}

func unpack(dir string, r io.Reader) (files int, size int64, err error) {
	root, err := os.OpenRoot(wire.WorkspaceDir)
	if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	dir = filepath.Clean(dir)
	if dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return 0, 0, err
		}
	}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, size, nil
		}
		if err != nil {
			return files, size, fmt.Errorf("read archive: %w", err)
		}
		n, err := unpackEntry(root, dir, h, tr)
		size += n
		if err != nil {
			return files, size, err
		}
		files++
	}
}

func unpackEntry(root *os.Root, dir string, h *tar.Header, r io.Reader) (int64, error) {
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
		return 0, root.Chmod(name, mode)
	case tar.TypeSymlink:
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		return 0, root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		// A link that stands in the file's place is replaced, not followed.
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return 0, err
		}
		n, err := io.Copy(f, r)
		err = errors.Join(err, f.Chmod(mode), f.Close())
		if err == nil && h.ModTime.Unix() != 0 {
			err = root.Chtimes(name, h.ModTime, h.ModTime) // of a link too that stands there by now: it leads nowhere else
		}
		return n, err
	case tar.TypeLink:
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		return 0, root.Link(path.Join(dir, h.Linkname), name)
	}
	return 0, fmt.Errorf("%s: an entry of type %q cannot be put", name, h.Typeflag)
}
