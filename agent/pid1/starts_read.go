//go:build linux

package pid1

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// What is read of a process that starts something.
const (
	mostArgs = 1 << 14   // words that are gone through, of arguments and of variables
	mostWord = 128 << 10 // bytes of one of them
	mostText = 1 << 20   // bytes of all that are read
	page     = 4096
)

var (
	errTooMuch = errors.New("its arguments or variables are too large to be read")
	errNoFile  = errors.New("what it leads to cannot be found out")
)

// memory reads that of another process. Its errors are the kernel's.
type memory struct {
	fd     int
	left   int // bytes that may still be read
	pieces [8]piece
	next   int // of the pieces: the one that is given up for another
	long   []byte
}

// piece is what was read, a page at most.
type piece struct {
	at   uint64
	buf  [page]byte
	have int
}

// of begins to read another process.
func (m *memory) of(fd int) {
	m.fd, m.left = fd, mostText
	for i := range m.pieces {
		m.pieces[i].have = 0
	}
}

// from returns what is there from an address on, to the end of its page at most.
func (m *memory) from(addr uint64) ([]byte, error) {
	start, p := addr&^(page-1), (*piece)(nil)
	for i := range m.pieces {
		if m.pieces[i].have > 0 && m.pieces[i].at == start {
			p = &m.pieces[i]
		}
	}
	if p == nil {
		if m.left -= page; m.left < 0 {
			return nil, errTooMuch
		}
		p = &m.pieces[m.next]
		p.have = 0
		n, err := unix.Pread(m.fd, p.buf[:], int64(start))
		if err != nil {
			return nil, err
		}
		p.at, p.have, m.next = start, n, (m.next+1)%len(m.pieces)
	}
	if off := int(addr - start); off < p.have {
		return p.buf[off:p.have], nil
	}
	return nil, unix.EFAULT
}

// text reads a text that ends with a NUL. It is valid until the next one is read.
func (m *memory) text(addr uint64) ([]byte, error) {
	m.long = m.long[:0]
	for {
		part, err := m.from(addr)
		if err != nil {
			return nil, err
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			if len(m.long) == 0 {
				return part[:end], nil
			}
			return append(m.long, part[:end]...), nil
		}
		if m.long = append(m.long, part...); len(m.long) > mostWord {
			return nil, errTooMuch
		}
		addr += uint64(len(part))
	}
}

// word reads a pointer.
func (m *memory) word(addr uint64) (uint64, error) {
	var b [8]byte
	for i := 0; i < len(b); {
		part, err := m.from(addr + uint64(i))
		if err != nil {
			return 0, err
		}
		i += copy(b[i:], part)
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// list calls take with each text of an array that ends with nil; an address of 0 is
// an empty one. The text is valid during the call.
func (m *memory) list(addr uint64, take func([]byte)) error {
	for i := range uint64(mostArgs) {
		if addr == 0 {
			return nil
		}
		p, err := m.word(addr + 8*i)
		if err != nil {
			return err
		}
		if p == 0 {
			return nil
		}
		s, err := m.text(p)
		if err != nil {
			return err
		}
		take(s)
	}
	return errTooMuch
}

// begin is a start as it was read.
type begin struct {
	path  string // absolute where that could be told
	file  string // what it leads to, "" where that could not be found out
	name  string // by which an interpreter is told of it
	argv  []string
	env   []string // those that matter
	dir   string
	cut   bool
	own   bool // users can write the file
	stat  unix.Statx_t
	image bool // the file was found, and is the image's
	// openAs is a path by which the file can be opened, and errno why it cannot be
	// started, whoever asks.
	openAs string
	errno  unix.Errno
}

// reader reads what processes are about to become. It is for one thread.
type reader struct {
	memory memory
	// files are those of the image, which stay what they are.
	files map[imageFile]string
	hosts bool // the root is the host's, and can be written
	// own does with what is the process's own, as who may look at that.
	own func(do func()) error
}

// imageFile is one of the image, with the path that led to it.
type imageFile struct {
	path              string
	major, minor      uint32
	inode, mountpoint uint64
}

// start reads what the process behind a notice is about to become. The calling thread
// is the user that the process is of; as makes it another.
func (r *reader) start(n *notice, p procInfo, matter matter, as func(uid int) error) (*begin, error) {
	proc := "/proc/" + strconv.Itoa(p.group)
	thread := proc
	if int(n.PID) != p.group {
		thread += "/task/" + strconv.Itoa(int(n.PID))
	}
	fd, err := unix.Open(thread+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	r.own = func(do func()) error { do(); return nil }
	if errors.Is(err, unix.EACCES) {
		// It hides its memory and files, which are root's then: CAP_SYS_PTRACE is for this.
		r.own = func(do func()) error {
			err := as(0)
			if err == nil {
				do()
			}
			return errors.Join(err, as(p.uid))
		}
		if acting := r.own(func() { fd, err = unix.Open(thread+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0) }); acting != nil {
			return nil, acting
		}
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	m := &r.memory
	m.of(fd)
	b := &begin{}
	at := n.Args[0:]
	dirfd, flags := int32(unix.AT_FDCWD), uint64(0)
	if n.Nr == unix.SYS_EXECVEAT {
		dirfd, at, flags = int32(n.Args[0]), n.Args[1:], n.Args[4]
	}
	text, err := m.text(at[0])
	if err != nil {
		return nil, err
	}
	name := string(text)
	if b.name = name; dirfd != unix.AT_FDCWD && !path.IsAbs(name) {
		b.name = path.Join("/dev/fd", strconv.Itoa(int(dirfd)), name)
	}
	if err := m.list(at[1], func(s []byte) { b.argv = append(b.argv, string(s)) }); err != nil {
		return nil, err
	}
	err = m.list(at[2], func(kv []byte) {
		if matter.is(kv) {
			b.env = append(b.env, string(kv))
		}
	})
	if err != nil {
		return nil, err
	}
	if b.dir, err = readLink(thread + "/cwd"); err != nil {
		return nil, err
	}
	return b, r.locate(b, name, dirfd, flags, proc, thread)
}

// locate finds the file that a process means by a name. Its errors are those of becoming
// another user.
func (r *reader) locate(b *begin, name string, dirfd int32, flags uint64, proc, thread string) error {
	open := name
	switch {
	case path.IsAbs(name):
	case dirfd == unix.AT_FDCWD:
		if name == "" {
			b.errno = unix.ENOENT
			return nil
		}
		open = b.dir + "/" + name
	default:
		link := thread + "/fd/" + strconv.Itoa(int(dirfd))
		dir := ""
		if err := r.own(func() { dir, _ = readLink(link) }); err != nil || dir == "" {
			return err
		}
		if name == "" && flags&unix.AT_EMPTY_PATH != 0 {
			b.path = dir
			return r.own(func() { r.look(b, link, 0) })
		}
		open = dir + "/" + name
	}
	b.path = path.Clean(open)
	// What a process calls itself is the process, and not us.
	for _, self := range []struct{ name, means string }{{"/proc/self/", proc + "/"}, {"/proc/thread-self/", thread + "/"}, {"/dev/fd/", thread + "/fd/"}} {
		if rest, ok := strings.CutPrefix(open, self.name); ok {
			if open = self.means + rest; rest == "exe" || strings.HasPrefix(open, thread+"/fd/") || strings.HasPrefix(rest, "fd/") {
				return r.own(func() { r.look(b, open, 0) })
			}
		}
	}
	r.look(b, open, unix.RESOLVE_NO_MAGICLINKS)
	return nil
}

// look opens what a path leads to, and says whose it is. A link of /proc in the middle
// of a path would lead us elsewhere than the process, and leads to nothing here.
func (r *reader) look(b *begin, file string, resolve uint64) {
	fd, err := unix.Openat2(unix.AT_FDCWD, file, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		b.errno, _ = errors.AsType[unix.Errno](err)
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, statxAll, &b.stat) != nil {
		return
	}
	if b.stat.Mode&unix.S_IFMT != unix.S_IFREG || b.stat.Mode&0o111 == 0 {
		b.errno = unix.EACCES
		return
	}
	known := imageFile{path: file, major: b.stat.Dev_major, minor: b.stat.Dev_minor, inode: b.stat.Ino, mountpoint: b.stat.Mnt_id}
	if b.file, b.image = r.files[known]; !b.image {
		var fs unix.Statfs_t
		if unix.Fstatfs(fd, &fs) != nil {
			return
		}
		if b.file, err = readLink("/proc/thread-self/fd/" + strconv.Itoa(fd)); err != nil {
			return
		}
		// What is mounted to be read alone is the image's, or the agent itself. Where the
		// host's root is, files are that which no user here can change.
		if b.image = fs.Flags&unix.ST_RDONLY != 0 || r.hosts && lasting(b.file); b.image {
			if r.files == nil || len(r.files) >= mostPassed {
				r.files = map[imageFile]string{}
			}
			r.files[known] = b.file
		}
	}
	// What stands before dots may be a link.
	if b.path == "" || strings.HasPrefix(b.path, "/proc/") || strings.HasPrefix(b.path, "/dev/fd/") || strings.Contains(file, "/../") {
		b.path = b.file
	}
	b.own, b.openAs = !b.image, file
}

// lasting reports whether the calling thread's user can change neither a file nor where
// it lies.
func lasting(file string) bool {
	for ; ; file = path.Dir(file) {
		var st unix.Stat_t
		if unix.Lstat(file, &st) != nil || st.Uid != 0 || unix.Faccessat(unix.AT_FDCWD, file, unix.W_OK, unix.AT_EACCESS) == nil {
			return false
		}
		if file == "/" {
			return true
		}
	}
}

// statxAll is what a file is compared by.
const statxAll = unix.STATX_BASIC_STATS | unix.STATX_MNT_ID

func readLink(name string) (string, error) {
	var buf [4096]byte
	n, err := unix.Readlink(name, buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// told is the start as the host is told it.
func (b *begin) told() *wire.Start {
	s := &wire.Start{Path: wire.Name(b.path), File: wire.Name(b.file), Dir: wire.Name(b.dir), Own: b.own, Cut: b.cut}
	left := wire.MaxStartText
	take := func(list []string) []wire.Name {
		names := make([]wire.Name, 0, min(len(list), wire.MaxStartArgs))
		for _, word := range list {
			if len(names) == wire.MaxStartArgs || left < len(word) {
				s.Cut = true
				break
			}
			left -= len(word)
			names = append(names, wire.Name(word))
		}
		return names
	}
	s.Env = take(b.env)
	s.Argv = take(b.argv)
	return s
}
