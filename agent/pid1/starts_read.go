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
	fd           int
	left         int // bytes that may still be read
	words, texts piece
}

// piece is what was read last of one kind, a page at most.
type piece struct {
	at   uint64
	buf  [page]byte
	have int
}

// from returns what is there from an address on, to the end of its page at most.
func (m *memory) from(p *piece, addr uint64) ([]byte, error) {
	start := addr &^ (page - 1)
	if p.have == 0 || p.at != start {
		if m.left -= page; m.left < 0 {
			return nil, errTooMuch
		}
		n, err := unix.Pread(m.fd, p.buf[:], int64(start))
		if err != nil {
			p.have = 0
			return nil, err
		}
		p.at, p.have = start, n
	}
	if off := int(addr - start); off < p.have {
		return p.buf[off:p.have], nil
	}
	return nil, unix.EFAULT
}

// text reads a text that ends with a NUL.
func (m *memory) text(addr uint64) (string, error) {
	var long []byte
	for {
		part, err := m.from(&m.texts, addr)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			if long == nil {
				return string(part[:end]), nil
			}
			return string(append(long, part[:end]...)), nil
		}
		if long = append(long, part...); len(long) > mostWord {
			return "", errTooMuch
		}
		addr += uint64(len(part))
	}
}

// word reads a pointer.
func (m *memory) word(addr uint64) (uint64, error) {
	var b [8]byte
	for i := 0; i < len(b); {
		part, err := m.from(&m.words, addr+uint64(i))
		if err != nil {
			return 0, err
		}
		i += copy(b[i:], part)
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// list calls take with each text of an array that ends with nil; an address of 0 is
// an empty one.
func (m *memory) list(addr uint64, take func(string)) error {
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
	size  int // of all text
	cut   bool
	own   bool // users can write the file
	stat  unix.Stat_t
	image bool // the file was found, and is the image's
	// openAs is a path by which the file can be opened, and errno why it cannot be
	// started, whoever asks.
	openAs string
	errno  unix.Errno
}

// readStart reads what the process behind a notice is about to become. The calling
// thread is the user that the process is of. matters says which variables are kept.
func readStart(n *notice, tgid int, matters func(name, kv string) bool) (*begin, error) {
	proc := "/proc/" + strconv.Itoa(tgid)
	thread := proc + "/task/" + strconv.Itoa(int(n.PID))
	fd, err := unix.Open(thread+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	m := &memory{fd: fd, left: mostText}
	b := &begin{}
	at := n.Args[0:]
	dirfd, flags := int32(unix.AT_FDCWD), uint64(0)
	if n.Nr == unix.SYS_EXECVEAT {
		dirfd, at, flags = int32(n.Args[0]), n.Args[1:], n.Args[4]
	}
	name, err := m.text(at[0])
	if err != nil {
		return nil, err
	}
	if b.name = name; dirfd != unix.AT_FDCWD && !path.IsAbs(name) {
		b.name = path.Join("/dev/fd", strconv.Itoa(int(dirfd)), name)
	}
	if err := m.list(at[1], func(s string) { b.argv = append(b.argv, s); b.size += len(s) }); err != nil {
		return nil, err
	}
	err = m.list(at[2], func(kv string) {
		if k, _, _ := strings.Cut(kv, "="); matters(k, kv) {
			b.env = append(b.env, kv)
			b.size += len(kv)
		}
	})
	if err != nil {
		return nil, err
	}
	if b.dir, err = readLink(thread + "/cwd"); err != nil {
		return nil, err
	}
	b.locate(name, dirfd, flags, proc, thread)
	return b, nil
}

// locate finds the file that a process means by a name.
func (b *begin) locate(name string, dirfd int32, flags uint64, proc, thread string) {
	open := name
	switch {
	case path.IsAbs(name):
	case dirfd == unix.AT_FDCWD:
		if name == "" {
			b.errno = unix.ENOENT
			return
		}
		open = path.Join(b.dir, name)
	default:
		link := thread + "/fd/" + strconv.Itoa(int(dirfd))
		dir, err := readLink(link)
		if err != nil {
			return
		}
		if name == "" && flags&unix.AT_EMPTY_PATH != 0 {
			b.path = dir
			b.look(link, 0)
			return
		}
		open = path.Join(dir, name)
	}
	b.path = open
	// What a process calls itself is the process, and not us.
	for _, self := range []struct{ name, means string }{{"/proc/self/", proc + "/"}, {"/proc/thread-self/", thread + "/"}, {"/dev/fd/", thread + "/fd/"}} {
		if rest, ok := strings.CutPrefix(open, self.name); ok {
			if open = self.means + rest; rest == "exe" || strings.HasPrefix(open, thread+"/fd/") || strings.HasPrefix(rest, "fd/") {
				b.look(open, 0)
				return
			}
		}
	}
	b.look(open, unix.RESOLVE_NO_MAGICLINKS)
}

// look opens what a path leads to, and says whose it is. A link of /proc in the middle
// of a path would lead us elsewhere than the process, and leads to nothing here.
func (b *begin) look(file string, resolve uint64) {
	fd, err := unix.Openat2(unix.AT_FDCWD, file, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		b.errno, _ = errors.AsType[unix.Errno](err)
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	if unix.Fstat(fd, &b.stat) != nil || unix.Fstatfs(fd, &fs) != nil {
		return
	}
	if b.stat.Mode&unix.S_IFMT != unix.S_IFREG || b.stat.Mode&0o111 == 0 {
		b.errno = unix.EACCES
		return
	}
	if b.file, err = readLink("/proc/thread-self/fd/" + strconv.Itoa(fd)); err != nil {
		return
	}
	if b.path == "" || strings.HasPrefix(b.path, "/proc/") || strings.HasPrefix(b.path, "/dev/fd/") {
		b.path = b.file
	}
	// What is mounted to be read alone is the image's, or the agent itself.
	b.image = fs.Flags&unix.ST_RDONLY != 0
	b.own, b.openAs = !b.image, file
}

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
