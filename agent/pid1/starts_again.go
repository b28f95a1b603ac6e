//go:build linux

package pid1

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// becoming is what a process has to be once a start that was let pass has happened.
// The kernel reads path and arguments after the answer, and anybody who can write where
// they lie can have it read others than were judged: so what came of it is looked at
// once more, before anything of the program runs.
type becoming struct {
	w          *watched
	uid        int
	parent     int
	own        bool // users can write the file
	stat       unix.Statx_t
	open       string // a path by which the file can be opened
	name, dir  string
	argv, rest uint64 // sums of all arguments, and of those behind the first
	env        uint64 // and of the variables that matter
}

// mostBecoming bounds what is kept of processes that did not become anything, or have
// no C library: then those that are gone are forgotten.
const mostBecoming = 4096

var (
	errBecame = errors.New("it became another program than the one that was judged")
	seed      = maphash.MakeSeed()
)

// pass lets a start happen, and keeps what has to come of it.
func (s *starts) pass(fd uintptr, n *notice, p procInfo, w *watched, b *begin, number uint64) {
	argv := b.argv
	if len(argv) == 0 {
		argv = []string{""} // which the kernel adds
	}
	s.mu.Lock()
	if len(s.becoming) >= mostBecoming {
		for pid := range s.becoming {
			if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				delete(s.becoming, pid)
			}
		}
	}
	s.becoming[p.group] = &becoming{
		w: w, uid: p.uid, parent: p.parent, own: b.own, stat: b.stat, open: b.openAs, name: b.name, dir: b.dir, argv: sumOf(argv), rest: sumOf(argv[1:]), env: sumOf(b.env),
	}
	s.mu.Unlock()
	w.follow(p.group, number)
	n.answer(fd, 0, true)
}

// sumOf is that of arguments as they lie one behind the other.
func sumOf(argv []string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, a := range argv {
		_, _ = h.WriteString(a) // a hash takes all
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// lookAgain compares what a process became with what it was let become, and ends it
// where that differs.
func (h *hearer) lookAgain(n *notice) {
	s, fd, pid := h.s, h.fd, int(n.PID)
	s.mu.Lock()
	is := s.becoming[pid]
	delete(s.becoming, pid)
	s.mu.Unlock()
	if is == nil { // what the agent itself started, or one that did not just begin
		n.answer(fd, 0, true)
		return
	}
	t := &wire.Start{PID: pid, Parent: is.parent, AtUS: time.Since(is.w.began).Microseconds(), Dir: wire.Name(is.dir)}
	err := h.as(is.uid)
	if err == nil {
		err = h.check(is, pid)
	}
	if err == nil {
		n.answer(fd, 0, true) // nobody gets it where what was read is another's by now
		return
	}
	h.describe(t)
	if !n.waits(fd) {
		return // and so was what was read another's
	}
	if !is.w.starts.Ask { // nothing is refused
		is.w.tell(func() *wire.Start { return t })
		n.answer(fd, 0, true)
		return
	}
	_ = unix.Kill(pid, unix.SIGKILL) // it waits, and is there
	is.w.refuse(t, err)
	if errors.Is(err, errBecame) && is.w.starts.End {
		_ = is.w.end(ending{endedDenied, fmt.Sprintf("it started %s: %v", t.Path, err)})
	}
}

// describe puts into t what its process became, as far as that can be read.
func (h *hearer) describe(t *wire.Start) {
	exe, _ := readLink("/proc/" + strconv.Itoa(t.PID) + "/exe") // as far as it can
	t.Path, t.File = wire.Name(exe), wire.Name(exe)
	for word := range bytes.SplitSeq(bytes.TrimSuffix(h.said, []byte{0}), []byte{0}) {
		if len(t.Argv) < wire.MaxStartArgs {
			t.Argv = append(t.Argv, wire.Name(word))
		}
	}
}

// check reads what a process is, and says whether it is what it had to become. The
// calling thread is the process's user.
func (h *hearer) check(b *becoming, pid int) (err error) {
	proc := "/proc/" + strconv.Itoa(pid)
	h.said = h.said[:0]
	var is unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, proc+"/exe", 0, statxAll, &is); err != nil {
		return err
	}
	if h.said, err = readWhole(proc+"/cmdline", h.said); err != nil {
		return err
	}
	if h.vars, err = readWhole(proc+"/environ", h.vars[:0]); err != nil {
		return err
	}
	said := h.said
	if b.sumOfMatters(h.vars) != b.env {
		return errBecame
	}
	if b.same(&is, &b.stat) {
		if maphash.Bytes(seed, said) != b.argv {
			return errBecame
		}
		return nil
	}
	// A script's interpreter gets the script's name before its arguments, in place of
	// the first, and can be a script as well.
	words, open := b.name+"\x00", b.open
	for range mostInterpreters {
		name, arg, err := b.interpreter(open, open == b.open)
		if err != nil || name == "" {
			return errors.Join(errBecame, err)
		}
		if arg != "" {
			words = arg + "\x00" + words
		}
		words = name + "\x00" + words
		if open = name; !path.IsAbs(name) {
			open = path.Join(b.dir, name)
		}
		var st unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, open, 0, statxAll, &st); err != nil {
			return errors.Join(errBecame, err)
		}
		if sameFile(&st, &is) {
			rest, ok := bytes.CutPrefix(said, []byte(words))
			if !ok || maphash.Bytes(seed, rest) != b.rest {
				return errBecame
			}
			return nil
		}
	}
	return errBecame
}

// mostInterpreters is how many scripts the kernel follows one by another.
const mostInterpreters = 5

// same reports whether a file is the one that was judged, and where users can write
// it, as it was then.
func (b *becoming) same(is, was *unix.Statx_t) bool {
	return sameFile(is, was) && (!b.own || is.Size == was.Size && is.Mtime == was.Mtime)
}

func sameFile(is, was *unix.Statx_t) bool {
	return is.Ino == was.Ino && is.Dev_major == was.Dev_major && is.Dev_minor == was.Dev_minor
}

// interpreter is what a script's first line names, as the kernel reads it; "" is none.
// judged says that the file is the one that was.
func (b *becoming) interpreter(file string, judged bool) (name, arg string, err error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // it may be a pipe by now
	if err != nil {
		return "", "", err
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, statxAll, &st); err != nil {
		return "", "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || judged && !b.same(&st, &b.stat) {
		return "", "", nil
	}
	var head [255]byte
	n, err := unix.Pread(fd, head[:], 0)
	if err != nil {
		return "", "", err
	}
	line, ok := strings.CutPrefix(string(head[:n]), "#!")
	if !ok {
		return "", "", nil
	}
	line, _, _ = strings.Cut(line, "\n")
	line, _, _ = strings.Cut(line, "\x00")
	line = strings.Trim(line, " \t")
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], strings.TrimLeft(line[i:], " \t"), nil
	}
	return line, "", nil
}

// sumOfMatters is that of the variables that matter, of all that a process has.
func (b *becoming) sumOfMatters(vars []byte) uint64 {
	matter := b.w.matter()
	var h maphash.Hash
	h.SetSeed(seed)
	for kv := range bytes.SplitSeq(bytes.TrimSuffix(vars, []byte{0}), []byte{0}) {
		if matter.is(kv) {
			_, _ = h.Write(kv) // a hash takes all
			_ = h.WriteByte(0)
		}
	}
	return h.Sum64()
}

// readWhole reads a file of /proc into a buffer, which grows where it has to.
func readWhole(name string, into []byte) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return into, err
	}
	defer unix.Close(fd)
	for {
		into = slices.Grow(into, page)
		n, err := unix.Read(fd, into[len(into):cap(into)])
		if err != nil || n == 0 {
			return into, err
		}
		if into = into[:len(into)+n]; len(into) > mostText {
			return into, errTooMuch
		}
	}
}
