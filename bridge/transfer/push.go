package transfer

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/caisson-dev/caisson/sandbox"
)

// Push copies a file or a folder of this host to a path of the workspace.
// Errors: Invalid for a source that cannot be read, and those of the workspace.
func Push(ctx context.Context, space Space, src, dst string, opts Options) (sandbox.Moved, error) {
	p := &push{opts: opts, dst: path.Clean(dst), there: map[string]sandbox.FileInfo{}}
	if err := p.plan(src); err != nil {
		return p.moved, err
	}
	defer p.root.Close()
	if !opts.All || !opts.Force {
		if err := p.look(ctx, space); err != nil {
			return p.moved, err
		}
	}
	p.choose()
	if opts.DryRun || len(p.entries) == 0 {
		return p.moved, nil
	}
	return p.send(ctx, space)
}

type push struct {
	opts    Options
	dst     string
	root    *os.Root // that all paths of entries are below
	entries []pushed
	there   map[string]sandbox.FileInfo
	moved   sandbox.Moved
	count   counter
}

type pushed struct {
	host, name string // below the root, and in the workspace
	info       fs.FileInfo
}

func unreadable(name string, err error) error {
	return sandbox.Errorf(sandbox.Invalid, "%s: %w", name, err).WithHint("check the path and its permissions; it is looked for on this host")
}

// plan lists what there is.
func (p *push) plan(src string) error {
	st, err := os.Stat(src)
	if err != nil {
		return unreadable(src, err)
	}
	top := src
	if !st.IsDir() {
		top = filepath.Dir(src)
	}
	if p.root, err = os.OpenRoot(top); err != nil {
		return unreadable(top, err)
	}
	if !st.IsDir() {
		p.add(filepath.Base(src), p.dst, st)
		return nil
	}
	w := &walk{p: p, src: src, ignore: &Ignore{}}
	return w.entry(".", st)
}

// walk lists a folder with all that is below it. A name may be any bytes.
type walk struct {
	p      *push
	src    string
	ignore *Ignore
}

func (w *walk) entry(name string, info fs.FileInfo) error {
	if w.p.opts.Ignore && name != "." && (info.IsDir() && path.Base(name) == ".git" || w.ignore.Match(name, info.IsDir())) {
		w.p.skip(name, "it is ignored")
		return nil
	}
	w.p.add(name, path.Join(w.p.dst, name), info)
	if !info.IsDir() {
		return nil
	}
	if w.p.opts.Ignore {
		if b, err := w.p.root.ReadFile(path.Join(name, ".gitignore")); err == nil {
			w.ignore.Add(name, string(b))
		}
	}
	return w.folder(name)
}

func (w *walk) folder(dir string) error {
	f, err := w.p.root.Open(dir)
	if err != nil {
		return unreadable(filepath.Join(w.src, dir), err)
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return unreadable(filepath.Join(w.src, dir), err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		info, err := w.p.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return unreadable(filepath.Join(w.src, name), err)
		}
		if err := w.entry(name, info); err != nil {
			return err
		}
	}
	return nil
}

func (p *push) skip(name, why string) {
	p.moved.Left++
	p.moved.LeftOut = appendSome(p.moved.LeftOut, name+": "+why)
	p.opts.each(Step{Path: path.Join(p.dst, name), Skip: why})
}

// appendSome keeps a list of names short.
func appendSome(list []string, name string) []string {
	const most = 100
	if len(list) >= most {
		return list
	}
	return append(list, name)
}

func (p *push) add(host, name string, info fs.FileInfo) {
	switch {
	case info.Mode().IsRegular(), info.IsDir(), info.Mode()&fs.ModeSymlink != 0:
		p.entries = append(p.entries, pushed{host, name, info})
	default:
		p.skip(host, "it is neither a file nor a folder nor a link")
	}
}

// look finds out what the workspace has already.
func (p *push) look(ctx context.Context, space Space) error {
	top, err := space.Stat(ctx, p.dst)
	if errors.Is(err, sandbox.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	p.there[top.Path] = top
	if top.Type != "dir" {
		return nil
	}
	for info, err := range space.Tree(ctx, p.dst, 0) {
		if err != nil {
			return err
		}
		p.there[path.Clean(info.Path)] = info
	}
	return nil
}

// choose leaves those entries that have to be moved.
func (p *push) choose() {
	p.entries = slices.DeleteFunc(p.entries, func(e pushed) bool {
		is, known := p.there[e.name]
		if known && !p.opts.All && p.same(e, is) {
			if e.host != "." {
				p.moved.Same++
			}
			return true
		}
		if known && is.Type == "file" && is.Mode&0o222 == 0 && !p.opts.Force {
			p.skip(e.name, leftReadOnly)
			return true
		}
		s := Step{Path: e.name, Type: typeOf(e.info)}
		if s.Type == "file" {
			s.Size = e.info.Size()
			p.count.total += s.Size
		}
		p.opts.each(s)
		return false
	})
}

func typeOf(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "dir"
	case info.Mode()&fs.ModeSymlink != 0:
		return "link"
	}
	return "file"
}

func (p *push) same(e pushed, is sandbox.FileInfo) bool {
	if typeOf(e.info) != is.Type {
		return false
	}
	switch is.Type {
	case "dir":
		return uint32(e.info.Mode().Perm()) == is.Mode
	case "link":
		target, err := p.root.Readlink(e.host)
		return err == nil && target == is.Target
	}
	return e.info.Size() == is.Size && sameTime(e.info.ModTime(), is.MTime) && uint32(e.info.Mode().Perm()) == is.Mode
}

// send streams the entries.
func (p *push) send(ctx context.Context, space Space) (sandbox.Moved, error) {
	r, w := io.Pipe()
	done := make(chan error, 1)
	p.count.tell = p.opts.Progress
	go func() {
		err := p.pack(w)
		_ = w.CloseWithError(err) // never fails
		done <- err
	}()
	got, err := space.PutTar(ctx, ".", r)
	_ = r.CloseWithError(errStopped) // never fails
	packed := <-done
	p.moved.Files, p.moved.Bytes = got.Files, got.Bytes
	if packed != nil && !errors.Is(packed, errStopped) {
		return p.moved, packed
	}
	return p.moved, err
}

var errStopped = errors.New("the other side has stopped")

// inode names a file of this host: another mount has the same numbers.
type inode struct{ dev, ino uint64 }

func (p *push) pack(w io.Writer) error {
	tw := tar.NewWriter(w)
	names := map[inode]string{}
	buf := make([]byte, 128<<10)
	for _, e := range p.entries {
		if err := p.packOne(tw, e, names, buf); err != nil {
			return err
		}
	}
	return tw.Close()
}

func (p *push) packOne(tw *tar.Writer, e pushed, names map[inode]string, buf []byte) error {
	h := &tar.Header{Name: e.name, Mode: int64(e.info.Mode().Perm()), ModTime: e.info.ModTime(), Format: tar.FormatPAX}
	switch typeOf(e.info) {
	case "dir":
		h.Typeflag = tar.TypeDir
		return tw.WriteHeader(h)
	case "link":
		target, err := p.root.Readlink(e.host)
		if err != nil {
			return unreadable(e.host, err)
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
		return tw.WriteHeader(h)
	}
	h.Typeflag, h.Size = tar.TypeReg, e.info.Size()
	if sys, ok := e.info.Sys().(*syscall.Stat_t); ok && sys.Nlink > 1 {
		id := inode{uint64(sys.Dev), sys.Ino}
		if first, seen := names[id]; seen {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			return tw.WriteHeader(h)
		}
		names[id] = e.name
	}
	// Not blocking, and looked at before it is read: a FIFO may stand there now.
	f, err := p.root.OpenFile(e.host, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return unreadable(e.host, err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() != h.Size {
		return sandbox.Errorf(sandbox.Invalid, "%s changed while it was read", e.host).WithHint("push again: what was moved is not moved once more")
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{tw}, countingReader{io.LimitReader(f, h.Size), &p.count}, buf)
	if err == nil && n < h.Size {
		err = sandbox.Errorf(sandbox.Invalid, "%s shrank while it was read", e.host).WithHint("push again: what was moved is not moved once more")
	}
	return err
}
