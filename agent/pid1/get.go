//go:build linux

package pid1

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Bounds of one get.
const (
	getDepth   = 200 // of folders; each holds a descriptor
	getBatch   = 32  // files that are open at once
	getSkipped = 100 // that are named
)

// callGet serves wire.Get: a tar stream of a folder, or of some paths below it.
// What is no file, folder or link is left out and never opened.
func (a *Agent) callGet(s *yamux.Stream, req *wire.Get) {
	dir, err := below(string(req.Dir))
	if err != nil {
		fail(s, "invalid", err)
		return
	}
	out := bufio.NewWriterSize(wire.DataWriter{W: s}, wire.MaxChunk)
	p := &packer{a: a, role: req.Role, out: out, tar: tar.NewWriter(out), names: map[fileID]string{}, buf: make([]byte, 64<<10)}
	if len(req.Paths) > 0 {
		err = p.some(dir, req.Paths)
	} else {
		err = p.all(dir)
	}
	if err == nil {
		err = errors.Join(p.tar.Close(), out.Flush())
	}
	if err != nil {
		fail(s, fileKind(err), err)
		return
	}
	reply(s, wire.Reply{Files: p.files, Bytes: p.bytes, Count: p.left, Skipped: p.skipped})
}

// packer writes entries as a role's user sees them.
type packer struct {
	a       *Agent
	role    string
	out     *bufio.Writer
	tar     *tar.Writer
	names   map[fileID]string // of files with several
	buf     []byte
	files   int
	bytes   int64
	left    int // out
	skipped []string
}

func (p *packer) skip(name, why string) {
	p.left++
	if len(p.skipped) < getSkipped {
		p.skipped = append(p.skipped, name+": "+why)
	}
}

// some packs single paths; a folder without what is in it.
func (p *packer) some(dir string, paths []wire.Name) error {
	for _, want := range paths {
		rel := string(want)
		name, err := below(path.Join(dir, rel))
		if err != nil {
			return err
		}
		var parent int
		err = p.a.inWorkspace(p.role, func(root *os.Root) (err error) {
			parent, err = openFolder(root, path.Dir(name))
			return err
		})
		if err == nil {
			err = p.entries(parent, path.Dir(rel), []string{path.Base(name)}, nil)
			err = errors.Join(err, unix.Close(parent))
		} else {
			p.skip(rel, "its folder is gone, closed, or a link that leads out")
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func openFolder(root *os.Root, name string) (int, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return fd, errors.Join(err, f.Close())
}

// all packs a folder with all that is in it.
func (p *packer) all(dir string) error {
	var fd int
	err := p.a.inWorkspace(p.role, func(root *os.Root) (err error) {
		fd, err = openFolder(root, dir)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(p.folder(fd, ".", 0), unix.Close(fd))
}

func (p *packer) folder(fd int, rel string, depth int) error {
	if depth == getDepth {
		p.skip(rel, "it is too deep")
		return nil
	}
	// A copy, which reading moves and closing ends.
	list, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(list), rel)
	names, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	slices.Sort(names)
	return p.entries(fd, rel, names, func(sub int, rel string) error { return p.folder(sub, rel, depth+1) })
}

// fileID names a file: a mount below the workspace has inodes of the same numbers.
type fileID struct{ dev, ino uint64 }

// packed is an entry that is about to be written.
type packed struct {
	header tar.Header
	id     fileID
	links  uint64
	fd     int // of a file; -1 otherwise
}

// entries packs names of one folder, folders last. It has the role's rights while
// it looks and opens, and not while it writes.
func (p *packer) entries(fd int, rel string, names []string, into func(fd int, rel string) error) error {
	var folders []packed
	for batch := range slices.Chunk(names, getBatch) {
		var files []packed
		err := p.a.as(p.role, func() {
			for _, n := range batch {
				e, why := openEntry(fd, n)
				e.header.Name = path.Join(rel, n)
				switch {
				case why != "":
					p.skip(e.header.Name, why)
				case e.header.Typeflag == tar.TypeDir:
					folders = append(folders, e)
				default:
					files = append(files, e)
				}
			}
		})
		for i := range files {
			if err == nil {
				err = p.write(&files[i])
			}
			if files[i].fd >= 0 {
				_ = unix.Close(files[i].fd) // only read from
			}
		}
		if err != nil {
			return err
		}
	}
	for i := range folders {
		if err := p.enter(fd, &folders[i], into); err != nil {
			return err
		}
	}
	return nil
}

// enter packs a folder, and with into what is in it.
func (p *packer) enter(dir int, e *packed, into func(fd int, rel string) error) error {
	name := e.header.Name
	if into == nil {
		return p.write(e)
	}
	sub := -1
	var err error
	acting := p.a.as(p.role, func() {
		sub, err = unix.Openat(dir, path.Base(name), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if acting != nil {
		return acting
	}
	if err != nil {
		p.skip(name, err.Error())
		return nil
	}
	if err = p.write(e); err == nil {
		err = into(sub, name)
	}
	return errors.Join(err, unix.Close(sub))
}

// openEntry looks at a name in a folder, follows nothing, and opens what is to
// be read. why is "" for what can be packed.
func openEntry(dir int, name string) (e packed, why string) {
	e.fd = -1
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return e, "it is gone"
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		e.header.Typeflag = tar.TypeSymlink
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return e, "it is gone"
		}
		e.header.Linkname = string(buf[:n])
		e.header.ModTime = time.Unix(st.Mtim.Unix())
		return e, ""
	case unix.S_IFREG:
		var err error
		if e.fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
			e.fd = -1
			return e, err.Error()
		}
		if err = unix.Fstat(e.fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			_ = unix.Close(e.fd)
			e.fd = -1
			return e, "it was replaced meanwhile"
		}
		e.header.Typeflag, e.header.Size = tar.TypeReg, st.Size
	case unix.S_IFDIR:
		e.header.Typeflag = tar.TypeDir
	default:
		return e, "it is neither a file nor a folder nor a link"
	}
	e.header.Mode, e.header.ModTime = int64(st.Mode&0o7777), time.Unix(st.Mtim.Unix())
	e.id, e.links = fileID{uint64(st.Dev), st.Ino}, uint64(st.Nlink)
	return e, ""
}

func (p *packer) write(e *packed) error {
	h := &e.header
	h.Format = tar.FormatPAX
	name := h.Name
	switch {
	case h.Typeflag == tar.TypeDir:
		h.Name += "/"
	case h.Typeflag == tar.TypeReg && e.links > 1:
		if first, seen := p.names[e.id]; seen {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		} else {
			p.names[e.id] = name
		}
	}
	if err := p.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.files++
	if h.Typeflag == tar.TypeReg {
		return p.content(e)
	}
	return nil
}

// content copies a file's bytes: as many as were promised. One that shrinks
// meanwhile is filled up, and named.
func (p *packer) content(e *packed) error {
	f := fdReader(e.fd)
	n, err := io.CopyBuffer(struct{ io.Writer }{p.tar}, io.LimitReader(f, e.header.Size), p.buf)
	p.bytes += n
	if err != nil || n == e.header.Size {
		return err
	}
	p.skip(e.header.Name, "it shrank while it was read")
	_, err = io.CopyBuffer(struct{ io.Writer }{p.tar}, io.LimitReader(zeros{}, e.header.Size-n), p.buf)
	return err
}

// fdReader reads a descriptor that somebody else closes.
type fdReader int

func (f fdReader) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
