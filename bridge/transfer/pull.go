package transfer

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// PullOptions are those of a pull.
type PullOptions struct {
	Options
	// Paths are those below the folder that are meant; nil is all of it.
	Paths []string
	// Only says that Paths is meant also where it is empty.
	Only bool
}

// Pull copies a folder of the workspace into a folder of this host, which it
// makes. Errors: Invalid where the destination cannot be written, Unavailable
// for what no honest sandbox sends, and those of the workspace.
func Pull(ctx context.Context, space Space, src, dst string, opts PullOptions) (sandbox.Moved, error) {
	if opts.Only && len(opts.Paths) == 0 {
		return sandbox.Moved{}, nil
	}
	p := &pull{opts: opts, src: path.Clean(src), parts: map[string]sandbox.FileInfo{}}
	fresh, err := p.open(dst)
	if err != nil {
		return p.moved, err
	}
	if p.root != nil {
		defer p.root.Close()
	}
	// Into a new folder all of it goes, in one stream. Else it is looked first.
	if !fresh || opts.Ignore || opts.DryRun || opts.Each != nil || opts.Progress != nil || opts.Only || len(opts.Paths) > 0 {
		if err := p.choose(ctx, space); err != nil || opts.DryRun {
			return p.moved, err
		}
		if len(p.want) == 0 && len(p.parts) == 0 {
			return p.moved, nil
		}
	}
	if err := p.resume(ctx, space); err != nil {
		return p.moved, err
	}
	if p.want == nil {
		return p.moved, errors.Join(p.fetch(ctx, space, nil), p.finish())
	}
	for chunk := range chunks(p.want) {
		if err := p.fetch(ctx, space, chunk); err != nil {
			return p.moved, errors.Join(err, p.finish())
		}
	}
	return p.moved, p.finish()
}

// chunks cuts a list of names into requests.
func chunks(names []string) func(func([]string) bool) {
	const most = 1 << 20
	return func(yield func([]string) bool) {
		for len(names) > 0 {
			n, size := 0, 0
			for n < len(names) && (n == 0 || size+len(names[n])+8 < most) {
				size += len(names[n]) + 8
				n++
			}
			if !yield(names[:n]) {
				return
			}
			names = names[n:]
		}
	}
}

type pull struct {
	opts  PullOptions
	src   string
	root  *os.Root // nil in a dry run into what is not there
	want  []string // nil is all
	parts map[string]sandbox.FileInfo
	moved sandbox.Moved
	count counter
	dirs  []tar.Header // that get their mode and time at the end
	at    string       // the folder that dir is
	dir   *os.Root
}

// open makes the destination, and says whether there is nothing in it.
func (p *pull) open(dst string) (fresh bool, err error) {
	bad := func(err error) error {
		return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("choose another destination")
	}
	if !p.opts.DryRun {
		if err := os.MkdirAll(dst, 0o755); err != nil {
			return false, bad(err)
		}
	}
	entries, err := os.ReadDir(dst)
	if errors.Is(err, fs.ErrNotExist) && p.opts.DryRun {
		return true, nil
	}
	if err != nil {
		return false, bad(err)
	}
	if p.root, err = os.OpenRoot(dst); err != nil {
		return false, bad(err)
	}
	return len(entries) == 0, nil
}

// choose lists what is there and what has to be moved.
func (p *pull) choose(ctx context.Context, space Space) error {
	all, ignore, err := p.list(ctx, space)
	if err != nil {
		return err
	}
	var only map[string]bool
	if p.opts.Only || len(p.opts.Paths) > 0 {
		only = map[string]bool{}
		for _, name := range p.opts.Paths {
			only[path.Clean(name)] = true
		}
	}
	p.want = []string{}
	ignored := map[string]bool{}
	for _, e := range all {
		name := e.Path
		if ignored[path.Dir(name)] || p.opts.Ignore && (e.Type == "dir" && path.Base(name) == ".git" || ignore.Match(name, e.Type == "dir")) {
			ignored[name] = e.Type == "dir"
			if !ignored[path.Dir(name)] {
				p.skip(name, "it is ignored")
			}
			continue
		}
		if only != nil && !only[name] {
			continue
		}
		if !p.opts.All && p.same(name, e) {
			p.moved.Same++
			continue
		}
		if e.Type == "other" {
			p.skip(name, "it is neither a file nor a folder nor a link")
			continue
		}
		if p.keeps(name) {
			p.skip(name, leftReadOnly)
			continue
		}
		s := Step{Path: name, Type: e.Type}
		if e.Type == "file" {
			s.Size = e.Size
			p.count.total += e.Size
		}
		p.opts.each(s)
		if e.Type == "file" && p.begun(name, e) {
			p.parts[name] = e
			continue
		}
		p.want = append(p.want, name)
	}
	return nil
}

// list returns all entries, below the source, folders before what is in them.
func (p *pull) list(ctx context.Context, space Space) ([]sandbox.FileInfo, *Ignore, error) {
	var all []sandbox.FileInfo
	ignore := &Ignore{}
	for e, err := range space.Tree(ctx, p.src, 0) {
		if err != nil {
			return nil, nil, err
		}
		whole := path.Clean(e.Path)
		e.Path = strings.TrimPrefix(whole, p.src+"/")
		if p.src != "." && e.Path == whole || !filepath.IsLocal(e.Path) {
			return nil, nil, forged("an entry %q of %q", whole, p.src)
		}
		all = append(all, e)
		if p.opts.Ignore && e.Type == "file" && path.Base(e.Path) == ".gitignore" && e.Size < 1<<20 {
			var text strings.Builder
			if _, err := space.Read(ctx, whole, 0, 1<<20, &text); err == nil { // one that went says nothing
				ignore.Add(path.Dir(e.Path), text.String())
			}
		}
	}
	slices.SortFunc(all, func(a, b sandbox.FileInfo) int { return strings.Compare(a.Path, b.Path) })
	return all, ignore, nil
}

func forged(format string, args ...any) error {
	return sandbox.Errorf(sandbox.Unavailable, "the sandbox sent "+format, args...).WithHint("its agent may have been taken: remove the session")
}

func (p *pull) skip(name, why string) {
	p.moved.Left++
	p.moved.LeftOut = appendSome(p.moved.LeftOut, name+": "+why)
	p.opts.each(Step{Path: name, Skip: why})
}

// same reports whether an entry is there already.
func (p *pull) same(name string, e sandbox.FileInfo) bool {
	if p.root == nil {
		return false
	}
	st, err := p.root.Lstat(name)
	if err != nil {
		return false
	}
	switch e.Type {
	case "dir":
		return st.IsDir() && st.Mode().Perm() == dirMode(int64(e.Mode))
	case "file":
		return st.Mode().IsRegular() && st.Size() == e.Size && sameTime(st.ModTime(), e.MTime) && st.Mode().Perm() == fs.FileMode(e.Mode)&0o777
	case "link":
		target, err := p.root.Readlink(name)
		return err == nil && target == e.Target
	}
	return false
}

// keeps reports whether a file stands there that nobody may write.
func (p *pull) keeps(name string) bool {
	if p.root == nil || p.opts.Force {
		return false
	}
	st, err := p.root.Lstat(name)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o222 == 0
}

// resumable is the size from which on a file that was cut off is kept.
const resumable = 1 << 20

// partName is where a large file grows until all of it is there. Another version
// of the file has another name.
func partName(name string, size int64, mtime time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", name, size, mtime.UnixNano()))
	return path.Join(path.Dir(name), ".caisson-part-"+hex.EncodeToString(sum[:10]))
}

// begun reports whether a part of a file is here.
func (p *pull) begun(name string, e sandbox.FileInfo) bool {
	if p.root == nil || e.Size < resumable {
		return false
	}
	st, err := p.root.Lstat(partName(name, e.Size, e.MTime))
	return err == nil && st.Mode().IsRegular() && st.Size() > 0 && st.Size() < e.Size
}

// resume goes on with files that an earlier pull was cut off in.
func (p *pull) resume(ctx context.Context, space Space) error {
	p.count.tell = p.opts.Progress
	for name, e := range p.parts {
		part := partName(name, e.Size, e.MTime)
		f, err := p.root.OpenFile(part, os.O_WRONLY|os.O_APPEND|oNoFollow, 0)
		if err != nil {
			return sandbox.Errorf(sandbox.Invalid, "%w", err)
		}
		st, err := f.Stat()
		if err == nil {
			p.count.add(int(st.Size()))
			_, err = space.Read(ctx, path.Join(p.src, name), st.Size(), e.Size-st.Size(), countingWriter{f, &p.count})
		}
		if err == nil {
			st, err = f.Stat()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if st.Size() != e.Size {
			p.skip(name, "it shrank while it was read")
			continue
		}
		if err := p.settle(p.root, part, name, fs.FileMode(e.Mode), e.MTime); err != nil {
			return err
		}
		p.moved.Files++
		p.moved.Bytes += e.Size
	}
	return nil
}

type countingWriter struct {
	w io.Writer
	c *counter
}

func (w countingWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.c.add(n)
	return n, err
}

// fetch moves entries in one stream.
func (p *pull) fetch(ctx context.Context, space Space, paths []string) error {
	p.count.tell = p.opts.Progress
	r, w := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := p.unpack(r)
		_ = r.CloseWithError(errors.Join(errStopped, err)) // never fails
		unpacked <- err
	}()
	out := bufio.NewWriterSize(w, 1<<20)
	got, err := space.Get(ctx, p.src, paths, out)
	if err == nil {
		err = out.Flush()
	}
	_ = w.CloseWithError(errors.Join(io.ErrUnexpectedEOF, err)) // never fails; what came whole has its own end
	done := <-unpacked
	p.moved.Left += got.Left
	for _, name := range got.LeftOut {
		p.moved.LeftOut = appendSome(p.moved.LeftOut, name)
	}
	if err != nil && !errors.Is(err, errStopped) {
		return err
	}
	return done
}
