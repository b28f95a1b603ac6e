//go:build linux

package pid1

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

func randomName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails: it ends the process instead
	return hex.EncodeToString(b[:])
}

// watchMask is what a watch tells of.
const watchMask = unix.IN_CREATE | unix.IN_CLOSE_WRITE | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_ATTRIB | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// errWatches says that the sandbox's budget is used up.
var errWatches = fmt.Errorf("a sandbox watches at most %d folders, and has as many", wire.MaxWatches)

// treeWatch watches folders below the workspace. A folder that appears is
// watched from then on; what appeared in it before that is told as created.
type treeWatch struct {
	a         *Agent
	req       *wire.File
	fd        int
	file      *os.File
	paths     map[int32]string
	recursive bool
	out       entryWriter
}

// watch tells of changes until the client closes the stream. The kernel's queue
// is bounded: what it lost is told as "overflow", and the client looks anew.
func (a *Agent) watch(s interface {
	Write([]byte) (int, error)
	Read([]byte) (int, error)
}, req *wire.File, top string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	w := &treeWatch{
		a: a, req: req, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), paths: map[int32]string{}, recursive: req.Recursive,
		out: entryWriter{w: s},
	}
	defer w.file.Close()
	defer func() { a.watches.Give(len(w.paths)) }()
	if err := w.add(top, false); err != nil {
		return err
	}
	// An empty frame says that the watch is in place.
	if err := wire.WriteFrame(s, wire.TypeData, nil); err != nil {
		return err
	}
	go func() {
		var b [1]byte
		_, _ = s.Read(b[:]) // the client says nothing more: this ends with the stream
		_ = w.file.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.tell(buf[:n]); err != nil {
			return err
		}
	}
}

// add watches a folder, and with recursive those below it. fresh tells of what
// is in it already.
func (w *treeWatch) add(name string, fresh bool) error {
	var entries []wire.FileInfo
	err := w.a.inWorkspace(w.req.Role, func(root *os.Root) error {
		d, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer d.Close()
		if !w.a.watches.Take() {
			return fmt.Errorf("watch %s: %w", name, errWatches)
		}
		// By the open folder and not by its path, which may lead elsewhere now.
		wd, err := unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", d.Fd()), watchMask&^unix.IN_DONT_FOLLOW)
		if _, had := w.paths[int32(wd)]; err != nil || had {
			w.a.watches.Give(1)
		}
		if err != nil {
			return fmt.Errorf("watch %s: %w", name, err)
		}
		w.paths[int32(wd)] = name
		entries, err = listDir(root, name)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fresh {
			if err := w.out.add(wire.FileEvent{Path: e.Path, Op: "create"}); err != nil {
				return err
			}
		}
		if e.Type == "dir" && w.recursive {
			if err := w.add(string(e.Path), fresh); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
	}
	return nil
}

// ops names the kernel's events, the first that matches.
var ops = []struct {
	mask uint32
	op   string
}{
	{unix.IN_CREATE | unix.IN_MOVED_TO, "create"},
	{unix.IN_DELETE, "remove"},
	{unix.IN_MOVED_FROM, "rename"},
	{unix.IN_MODIFY | unix.IN_CLOSE_WRITE, "write"},
	{unix.IN_ATTRIB, "chmod"},
}

func (w *treeWatch) tell(buf []byte) error {
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask := binary.NativeEndian.Uint32(buf[4:])
		size := binary.NativeEndian.Uint32(buf[12:])
		end := unix.SizeofInotifyEvent + int(size)
		if end > len(buf) {
			break
		}
		name := string(bytes.TrimRight(buf[unix.SizeofInotifyEvent:end], "\x00"))
		buf = buf[end:]
		if err := w.tellOne(wd, mask, name); err != nil {
			return err
		}
	}
	return w.out.flush()
}

func (w *treeWatch) tellOne(wd int32, mask uint32, name string) error {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		return w.out.add(wire.FileEvent{Op: "overflow"})
	}
	dir, known := w.paths[wd]
	if mask&unix.IN_IGNORED != 0 {
		if known {
			delete(w.paths, wd)
			w.a.watches.Give(1)
		}
		return nil
	}
	if !known || name == "" {
		return nil
	}
	p := path.Join(dir, name)
	for _, o := range ops {
		if mask&o.mask == 0 {
			continue
		}
		if err := w.out.add(wire.FileEvent{Path: wire.Name(p), Op: o.op}); err != nil {
			return err
		}
		break
	}
	if w.recursive && mask&unix.IN_ISDIR != 0 && mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
		if err := w.add(p, true); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
	return nil
}
