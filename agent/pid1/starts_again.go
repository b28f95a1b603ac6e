//go:build linux

package pid1

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path"
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
	stat       unix.Stat_t
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
func (s *starts) pass(fd uintptr, n *notice, p procInfo, w *watched, b *begin, t *wire.Start) {
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
	w.follow(p.group, t.N)
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
func (s *starts) lookAgain(fd uintptr, n *notice) {
	pid := int(n.PID)
	s.mu.Lock()
	is := s.becoming[pid]
	delete(s.becoming, pid)
	s.mu.Unlock()
	if is == nil { // what the agent itself started, or one that did not just begin
		n.answer(fd, 0, true)
		return
	}
	t := &wire.Start{PID: pid, Parent: is.parent, AtUS: time.Since(is.w.began).Microseconds()}
	var err error
	acted := actAs(is.uid, func() { err = is.check(t) })
	if !n.waits(fd) {
		return // and so was what was read another's
	}
	if err = errors.Join(acted, err); err == nil {
		n.answer(fd, 0, true)
		return
	}
	if !is.w.starts.Ask { // nothing is refused
		is.w.tell(t)
		n.answer(fd, 0, true)
		return
	}
	_ = unix.Kill(pid, unix.SIGKILL) // it waits, and is there
	is.w.refuse(t, err)
	if errors.Is(err, errBecame) && is.w.starts.End {
		_ = is.w.end(ending{endedDenied, fmt.Sprintf("it started %s: %v", t.Path, err)})
	}
}

// check reads what a process is, puts that into t, and says whether it is what it had
// to become. The calling thread is the process's user.
func (b *becoming) check(t *wire.Start) error {
	proc := "/proc/" + strconv.Itoa(t.PID)
	exe, err := readLink(proc + "/exe")
	if err != nil {
		return err
	}
	var is unix.Stat_t
	if err := unix.Stat(proc+"/exe", &is); err != nil {
		return err
	}
	said, err := readWhole(proc + "/cmdline")
	if err != nil {
		return err
	}
	vars, err := readWhole(proc + "/environ")
	if err != nil {
		return err
	}
	t.Path, t.File, t.Dir = wire.Name(exe), wire.Name(exe), wire.Name(b.dir)
	for word := range bytes.SplitSeq(bytes.TrimSuffix(said, []byte{0}), []byte{0}) {
		if len(t.Argv) < wire.MaxStartArgs {
			t.Argv = append(t.Argv, wire.Name(word))
		}
	}
	if b.sumOfMatters(vars) != b.env {
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
		var st unix.Stat_t
		if err := unix.Stat(open, &st); err != nil {
			return errors.Join(errBecame, err)
		}
		if st.Dev == is.Dev && st.Ino == is.Ino {
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
func (b *becoming) same(is, was *unix.Stat_t) bool {
	return is.Dev == was.Dev && is.Ino == was.Ino && (!b.own || is.Size == was.Size && is.Mtim == was.Mtim)
}

// interpreter is what a script's first line names, as the kernel reads it; "" is none.
// judged says that the file is the one that was.
func (b *becoming) interpreter(file string, judged bool) (name, arg string, err error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // it may be a pipe by now
	if err != nil {
		return "", "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
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
	var matter []string
	for kv := range bytes.SplitSeq(bytes.TrimSuffix(vars, []byte{0}), []byte{0}) {
		if name, _, _ := bytes.Cut(kv, []byte("=")); b.w.matters(string(name), string(kv)) {
			matter = append(matter, string(kv))
		}
	}
	return sumOf(matter)
}

// readWhole reads a file of /proc.
func readWhole(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	said, err := io.ReadAll(io.LimitReader(f, mostText+1))
	if err == nil && len(said) > mostText {
		err = errTooMuch
	}
	return said, err
}
