package transfer

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// unpack reads a stream to the end of its archive.
func (p *pull) unpack(r io.Reader) error {
	tr := tar.NewReader(bufio.NewReaderSize(r, 256<<10))
	buf := make([]byte, 256<<10)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, r)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil // the pipe's end
			}
			return err
		}
		if err != nil {
			return forged("a broken archive: %w", err)
		}
		if err := p.entry(h, tr, buf); err != nil {
			return err
		}
	}
}

// checkName refuses names that lead out, and those of our own.
func checkName(name string) (string, error) {
	name = path.Clean(name)
	if !filepath.IsLocal(name) || strings.Contains(name, "\x00") {
		return "", forged("the name %q", name)
	}
	return name, nil
}

// checkSparse refuses files with holes, which the archive's reader would fill: a
// few bytes would become a disk full of zeros. Our agent sends none.
func checkSparse(h *tar.Header) error {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse") {
			return forged("a file with holes")
		}
	}
	return nil
}

func (p *pull) entry(h *tar.Header, r io.Reader, buf []byte) error {
	if err := checkSparse(h); err != nil {
		return err
	}
	name, err := checkName(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		return nil
	}
	dir, err := p.folder(path.Dir(name))
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "%s: %w", path.Dir(name), err).WithHint("what stands there is in the way: pull into another folder")
	}
	base := path.Base(name)
	switch h.Typeflag {
	case tar.TypeDir:
		if st, err := dir.Lstat(base); err == nil && !st.IsDir() {
			if err := dir.Remove(base); err != nil {
				return refused(name, err)
			}
		}
		if err := dir.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return refused(name, err)
		}
		kept := *h
		kept.Name = name
		p.dirs = append(p.dirs, kept)
	case tar.TypeReg:
		return p.file(dir, base, name, h, r, buf)
	case tar.TypeSymlink:
		return p.link(dir, base, name, h)
	case tar.TypeLink:
		to, err := checkName(h.Linkname)
		if err != nil {
			return err
		}
		// A link under another name would lead elsewhere.
		if st, err := p.root.Lstat(to); err != nil || !st.Mode().IsRegular() {
			return forged("%q as another name of %q, which is no file", name, to)
		}
		if err := remove(dir, base); err != nil {
			return refused(name, err)
		}
		if err := p.root.Link(to, name); err != nil {
			return refused(name, err)
		}
	default:
		return forged("an entry of type %q", h.Typeflag)
	}
	p.moved.Files++
	return nil
}

func refused(name string, err error) error {
	return sandbox.Errorf(sandbox.Invalid, "%s: %w", name, err).WithHint("choose another destination")
}

// folder opens a folder of the destination, and makes it. The last one stays
// open: files come folder by folder.
func (p *pull) folder(name string) (*os.Root, error) {
	if name == "." {
		return p.root, nil
	}
	if p.dir != nil && p.at == name {
		return p.dir, nil
	}
	p.leave()
	if err := p.root.MkdirAll(name, 0o755); err != nil {
		return nil, err
	}
	dir, err := p.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	p.at, p.dir = name, dir
	return dir, nil
}

func (p *pull) leave() {
	if p.dir != nil {
		_ = p.dir.Close() // nothing was written through it that is not closed
		p.dir = nil
	}
}

// remove makes room for a file or a link. A folder stays, and is in the way.
func remove(dir *os.Root, base string) error {
	err := dir.Remove(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (p *pull) file(dir *os.Root, base, name string, h *tar.Header, r io.Reader, buf []byte) error {
	temp := base
	if h.Size >= resumable {
		temp = path.Base(partName(name, h.Size, h.ModTime))
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		// Never into what stands there, which may have another name elsewhere.
		if err := remove(dir, temp); err != nil {
			return refused(name, err)
		}
		f, err = dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return refused(name, err)
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, countingReader{r, &p.count}, buf)
	p.moved.Bytes += n
	mode := fs.FileMode(h.Mode) & 0o777
	if temp != base {
		if err = errors.Join(err, f.Close()); err != nil {
			return err // the part stays, to go on with
		}
		p.moved.Files++
		return p.settle(dir, temp, base, mode, h.ModTime)
	}
	if mode != 0o600 {
		err = errors.Join(err, f.Chmod(mode))
	}
	if err = errors.Join(err, setTime(f, h.ModTime), f.Close()); err != nil {
		return errors.Join(err, dir.Remove(base))
	}
	p.moved.Files++
	return nil
}

// settle gives a file that is whole its mode, time and name.
func (p *pull) settle(dir *os.Root, temp, name string, mode fs.FileMode, mtime time.Time) error {
	err := dir.Chmod(temp, mode&0o777)
	if err == nil {
		err = dir.Chtimes(temp, mtime, mtime)
	}
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		return refused(name, err)
	}
	return nil
}

// link makes a link that stays below the destination, and leaves out others:
// who follows one later would not know whose word he takes.
func (p *pull) link(dir *os.Root, base, name string, h *tar.Header) error {
	if leadsOut(path.Dir(name), h.Linkname) {
		p.skip(name, "it is a link that leads out, to "+fmt.Sprintf("%q", h.Linkname))
		return nil
	}
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if st, err := p.root.Lstat(up); err != nil || !st.IsDir() {
			p.skip(name, fmt.Sprintf("it is a link below %q, which is one: it may lead out", up))
			return nil
		}
	}
	if err := remove(dir, base); err != nil {
		return refused(name, err)
	}
	if err := dir.Symlink(h.Linkname, base); err != nil {
		return refused(name, err)
	}
	p.moved.Files++
	return nil
}

// leadsOut reports whether a link of a folder may lead out of all that is above.
// Up it goes from where it stands alone: behind another name, which may be a link
// itself, nobody knows where that is.
func leadsOut(dir, target string) bool {
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(dir, target)) {
		return true
	}
	down := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && down {
			return true
		}
		down = down || part != ".." && part != "." && part != ""
	}
	return false
}

// finish gives folders their modes and times, the deepest first.
func (p *pull) finish() error {
	p.leave()
	slices.SortFunc(p.dirs, func(a, b tar.Header) int { return strings.Count(b.Name, "/") - strings.Count(a.Name, "/") })
	var errs []error
	for _, d := range p.dirs {
		if st, err := p.root.Lstat(d.Name); err != nil || !st.IsDir() {
			continue // it was replaced by a later entry
		}
		errs = append(errs, p.root.Chmod(d.Name, dirMode(d.Mode)), p.root.Chtimes(d.Name, d.ModTime, d.ModTime))
	}
	return errors.Join(errs...)
}

// dirMode is the mode of a folder here: its own, and who pulled can go in.
func dirMode(mode int64) fs.FileMode { return fs.FileMode(mode)&0o777 | 0o700 }
