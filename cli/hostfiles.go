package cli

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// contents are files of this host that a request refers to: nothing else of the
// host is opened for it, and no path of it travels.
type contents struct{ paths []string }

// add returns the reference of a file.
func (c *contents) add(name string) string {
	c.paths = append(c.paths, name)
	return strconv.Itoa(len(c.paths) - 1)
}

// open opens a file by its reference.
func (c *contents) open(ref string) (io.ReadCloser, error) {
	i, err := strconv.Atoi(ref)
	if err != nil || i < 0 || i >= len(c.paths) {
		return nil, sandbox.Errorf(sandbox.NotFound, "no content %q was handed over", ref)
	}
	return os.Open(c.paths[i])
}

// files reads SRC[:DST]: a file, or a folder with all that is in it.
func (c *contents) files(spec string) ([]sandbox.File, error) {
	src, dst, _ := strings.Cut(spec, ":")
	if src == "" {
		return nil, sandbox.Errorf(sandbox.Invalid, "--file %q names no source", spec).WithHint("write --file SRC or --file SRC:DST")
	}
	st, err := os.Stat(src)
	if err != nil {
		return nil, missing(src, err)
	}
	dst = strings.TrimPrefix(dst, sandbox.WorkspaceDir+"/")
	switch {
	case dst == "":
		abs, err := filepath.Abs(src)
		if err != nil {
			return nil, missing(src, err)
		}
		dst = filepath.Base(abs)
	case strings.HasSuffix(dst, "/"):
		dst = path.Join(dst, filepath.Base(src))
	}
	if !st.IsDir() {
		f, err := c.file(src, path.Clean(dst), st)
		return []sandbox.File{f}, err
	}
	var files []sandbox.File
	err = filepath.WalkDir(src, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return missing(p, err)
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if p == src {
			info, err = os.Stat(src) // a link to a folder stands for the folder
		}
		if err != nil {
			return missing(p, err)
		}
		f, err := c.file(p, path.Join(dst, filepath.ToSlash(rel)), info)
		files = append(files, f)
		return err
	})
	return files, err
}

// file describes one entry. Anything but files, folders and links is
// refused: opening a FIFO or a device can block or act.
func (c *contents) file(src, dst string, info os.FileInfo) (sandbox.File, error) {
	f := sandbox.File{Path: dst, Mode: uint32(info.Mode().Perm())}
	switch {
	case info.IsDir():
		f.Dir = true
	case info.Mode().IsRegular():
		f.Ref, f.Size = c.add(src), info.Size()
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(src)
		if err != nil {
			return f, missing(src, err)
		}
		f.Link = target
	default:
		return f, sandbox.Errorf(sandbox.Invalid, "%s is neither a file nor a folder nor a link", src).WithHint("leave it out of --file")
	}
	return f, nil
}
