//go:build linux

package pid1

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// below turns a caller's path into one relative to the workspace. What leads
// out of it by its text alone is refused here, what does so by links by
// os.Root.
func below(p string) (string, error) {
	name := strings.TrimPrefix(path.Clean(p), wire.WorkspaceDir+"/")
	if name == wire.WorkspaceDir {
		name = "."
	}
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%q is not a path inside the workspace", p)
	}
	return name, nil
}

// callFile serves the calls on one path.
func (a *Agent) callFile(s *yamux.Stream, r *wire.Reader, op wire.Op, req *wire.File) {
	at, err := placeOf(string(req.Path))
	if err != nil {
		fail(s, "invalid", err)
		return
	}
	answer := wire.Reply{}
	switch op {
	case wire.OpStat:
		answer.Info = &wire.FileInfo{}
		err = a.in(at.dir, req.Role, func(root *os.Root) error { return stat(root, at.name, answer.Info) })
		answer.Info.Path = at.shown(answer.Info.Path)
	case wire.OpTree:
		answer, err = a.tree(s, req, at)
	case wire.OpRead:
		answer.Bytes, err = a.read(s, req, at)
	case wire.OpWrite:
		answer.Bytes, err = a.write(r, req, at)
	case wire.OpMkdir:
		err = a.in(at.dir, req.Role, func(root *os.Root) error { return root.MkdirAll(at.name, modeOr(req.Mode, 0o755)) })
	case wire.OpMove:
		err = a.move(req, at)
	case wire.OpRemove:
		err = a.remove(req, at)
	case wire.OpAttributes:
		err = a.in(at.dir, req.Role, func(root *os.Root) error { return setAttributes(root, at.name, req.Attributes) })
	case wire.OpWatch:
		if err = at.onlyWorkspace(); err == nil {
			err = a.watch(s, req, at.name)
		}
	default:
		fail(s, "unsupported", fmt.Errorf("this agent has no call %q", op))
		return
	}
	if err != nil {
		fail(s, fileKind(err), err)
		return
	}
	reply(s, answer)
}

// fileKind classes an error of a file operation.
func fileKind(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "not_found"
	case errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENOTDIR):
		return "conflict"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return "denied"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG), errors.Is(err, errWatches):
		return "exhausted"
	case errors.Is(err, unix.ENOTSUP):
		return "unsupported"
	}
	return "invalid"
}

func modeOr(mode uint32, def fs.FileMode) fs.FileMode {
	if mode == 0 {
		return def
	}
	return fs.FileMode(mode) & 0o777
}

func stat(root *os.Root, name string, into *wire.FileInfo) error {
	st, err := root.Lstat(name)
	if err != nil {
		return err
	}
	*into = describe(root, name, st)
	return inFolder(root, path.Dir(name), func(dir string) error {
		into.Attributes = attributes(path.Join(dir, path.Base(name)))
		return nil
	})
}

func describe(root *os.Root, name string, st fs.FileInfo) wire.FileInfo {
	info := wire.FileInfo{Path: wire.Name(name), Type: "other", Size: st.Size(), Mode: uint32(st.Mode().Perm()), MTimeNS: st.ModTime().UnixNano()}
	switch {
	case st.Mode().IsRegular():
		info.Type = "file"
	case st.IsDir():
		info.Type = "dir"
	case st.Mode()&fs.ModeSymlink != 0:
		info.Type = "link"
		target, _ := root.Readlink(name) // it may have been replaced meanwhile
		info.Target = wire.Name(target)
	}
	return info
}

// tree sends the entries below a folder. It holds the role's rights for one
// folder at a time, so that a slow client holds up nobody.
func (a *Agent) tree(s io.Writer, req *wire.File, at place) (wire.Reply, error) {
	type folder struct {
		name  string
		depth int
	}
	queue := []folder{{at.name, 1}}
	answer := wire.Reply{}
	out := entryWriter{w: s}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		var entries []wire.FileInfo
		err := a.in(at.dir, req.Role, func(root *os.Root) error {
			var err error
			entries, err = listDir(root, dir.name)
			return err
		})
		if err != nil && dir.name == at.name {
			return answer, err
		}
		// A folder further down that is gone, closed or a link by now has no
		// entries to show.
		for _, e := range entries {
			if answer.Files == wire.MaxListed || out.size > wire.MaxListedBytes-wire.MaxChunk {
				answer.More = true
				return answer, out.flush()
			}
			answer.Files++
			name := string(e.Path)
			e.Path = at.shown(e.Path)
			if err := out.add(e); err != nil {
				return answer, err
			}
			if e.Type == "dir" && (req.Depth == 0 || dir.depth < req.Depth) {
				queue = append(queue, folder{name, dir.depth + 1})
			}
		}
	}
	return answer, out.flush()
}

func listDir(root *os.Root, name string) ([]wire.FileInfo, error) {
	d, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(wire.MaxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	entries := make([]wire.FileInfo, 0, len(names))
	for _, n := range names {
		p := path.Join(name, n)
		if st, err := root.Lstat(p); err == nil {
			e := describe(root, p, st)
			e.Attributes = attributes(path.Join(fdPath(d), n))
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// entryWriter sends values as JSON lines, many to a frame.
type entryWriter struct {
	w    io.Writer
	buf  []byte
	size int // of all lines
}

func (e *entryWriter) add(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	e.size += len(line) + 1
	if len(e.buf)+len(line)+1 > wire.MaxChunk {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.buf = append(append(e.buf, line...), '\n')
	return nil
}

func (e *entryWriter) flush() error {
	if len(e.buf) == 0 {
		return nil
	}
	err := wire.WriteFrame(e.w, wire.TypeData, e.buf)
	e.buf = e.buf[:0]
	return err
}

// read sends a file's bytes. What is not a regular file is refused: a FIFO
// would block, a device would act.
func (a *Agent) read(s io.Writer, req *wire.File, at place) (int64, error) {
	name := at.name
	var f *os.File
	irregular := fmt.Errorf("%s is not a regular file", name)
	err := a.in(at.dir, req.Role, func(root *os.Root) error {
		// Opening is an act by itself: it wakes who waits at a FIFO.
		st, err := root.Stat(name)
		if err == nil && !st.Mode().IsRegular() {
			err = irregular
		}
		if err == nil {
			f, err = root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// It may have been replaced in between.
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return 0, errors.Join(err, irregular)
	}
	if _, err := f.Seek(max(req.Offset, 0), io.SeekStart); err != nil {
		return 0, err
	}
	var src io.Reader = f
	if req.Length > 0 {
		src = io.LimitReader(f, req.Length)
	}
	var sent int64
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if err := wire.WriteFrame(s, wire.TypeData, buf[:n]); err != nil {
				return sent, err
			}
			sent += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return sent, nil
		}
		if err != nil {
			return sent, err
		}
	}
}

// write puts bytes into a file beside the one that is meant, and moves it there
// once all of them have come.
func (a *Agent) write(r *wire.Reader, req *wire.File, at place) (n int64, err error) {
	defer a.room.stale()
	name := at.name
	temp := path.Join(path.Dir(name), ".caisson-"+randomName())
	mode := modeOr(req.Mode, 0o644)
	var f *os.File
	err = a.in(at.dir, req.Role, func(root *os.Root) (err error) {
		if req.Mode == 0 {
			if st, err := root.Stat(name); err == nil {
				mode = st.Mode().Perm()
			}
		}
		if st, err := root.Lstat(name); err == nil && st.IsDir() {
			return &fs.PathError{Op: "write", Path: name, Err: unix.EISDIR}
		}
		if parent := path.Dir(name); parent != "." {
			if err := root.MkdirAll(parent, 0o755); err != nil {
				return err
			}
		}
		if f, err = root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
			return err
		}
		return f.Chmod(mode) // what the umask took away; only its owner may
	})
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(f, &dataReader{frames: r})
	err = errors.Join(err, f.Close())
	return n, errors.Join(err, a.in(at.dir, req.Role, func(root *os.Root) error {
		if err != nil {
			return root.Remove(temp)
		}
		return root.Rename(temp, name)
	}))
}

func (a *Agent) move(req *wire.File, at place) error {
	target, err := placeOf(string(req.To))
	if err != nil {
		return err
	}
	if target.dir != at.dir {
		return fmt.Errorf("%s and %s are different file systems: read the one and write the other", at.dir, target.dir)
	}
	name, to := at.name, target.name
	return a.in(at.dir, req.Role, func(root *os.Root) error {
		if parent := path.Dir(to); parent != "." {
			if err := root.MkdirAll(parent, 0o755); err != nil {
				return err
			}
		}
		return root.Rename(name, to)
	})
}

func (a *Agent) remove(req *wire.File, at place) error {
	name := at.name
	if name == "." {
		return fmt.Errorf("the folder itself stays; remove what is in it")
	}
	return a.in(at.dir, req.Role, func(root *os.Root) error {
		if !req.Recursive {
			return root.Remove(name)
		}
		if _, err := root.Lstat(name); err != nil {
			return err
		}
		return root.RemoveAll(name)
	})
}
