package bridge_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/sandbox"
)

var programs = flag.Int("programs", 2000, "how many random programs TestPrograms runs")

// program is a random program of file operations on a tree.
type program struct {
	r     *rand.Rand
	dir   string
	steps []string
	fds   []*os.File // that stay open over several steps
	// known are the folders that were there at the start. New hard links are
	// made in these alone: package track says what watches cannot see.
	known map[string]bool
}

var oddNames = []string{"a", "b", "c.txt", "ä", "\xff\xfe", "new\nline", "-rf", " ", "sp ace", ".hidden", "*", "\x1b[31m", "con\tt", "d", "e", "Z"}

// paths lists what is in the tree, folders alone if dirs.
func (p *program) paths(dirs bool) []string {
	var out []string
	_ = filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && (!dirs || d.IsDir()) && (dirs || path != p.dir) {
			out = append(out, path)
		}
		return nil
	})
	slices.Sort(out)
	return out
}

func (p *program) any() string {
	all := p.paths(false)
	if len(all) == 0 {
		return filepath.Join(p.dir, "a")
	}
	return all[p.r.IntN(len(all))]
}

func (p *program) fresh() string {
	dirs := p.paths(true)
	return filepath.Join(dirs[p.r.IntN(len(dirs))], oddNames[p.r.IntN(len(oddNames))])
}

func (p *program) target() string {
	if p.r.IntN(2) == 0 {
		return p.any()
	}
	return p.fresh()
}

func (p *program) bytes() []byte {
	b := make([]byte, p.r.IntN(200))
	for i := range b {
		b[i] = byte('a' + p.r.IntN(4))
	}
	if p.r.IntN(4) == 0 {
		b = append(b, 0, 0xff)
	}
	return b
}

// run carries out n operations. What fails, fails: a program may ask for the
// impossible.
func (p *program) run(n int) {
	for range n {
		p.step()
	}
	for _, f := range p.fds {
		f.Close()
	}
	p.fds = nil
}

func (p *program) note(format string, args ...any) {
	p.steps = append(p.steps, fmt.Sprintf(format, args...))
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func regular(path string) bool {
	st, err := os.Stat(path)
	return err != nil || st.Mode().IsRegular()
}

func (p *program) step() {
	a, b := p.target(), p.target()
	switch k := p.r.IntN(21); k {
	case 0, 1, 2:
		p.note("write %q", a)
		if regular(a) {
			_ = os.WriteFile(a, p.bytes(), 0o644)
		}
	case 3:
		p.note("append %q", a)
		if !regular(a) {
			return
		}
		if f, err := os.OpenFile(a, os.O_APPEND|os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			_, _ = f.Write(p.bytes())
			f.Close()
		}
	case 4:
		p.note("rewrite %q with the same", a)
		if regular(a) {
			if old, err := os.ReadFile(a); err == nil {
				_ = os.WriteFile(a, old, 0o644)
			}
		}
	case 5, 6:
		p.note("mkdir %q", a)
		_ = os.Mkdir(a, 0o755)
	case 7:
		p.note("remove %q", a)
		_ = os.Remove(a)
	case 8:
		p.note("remove all %q", a)
		if p.r.IntN(3) == 0 && a != p.dir {
			_ = os.RemoveAll(a)
		}
	case 9, 10:
		p.note("rename %q %q", a, b)
		_ = os.Rename(a, b)
	case 11:
		p.note("link %q %q", a, b)
		if p.known == nil || p.known[filepath.Dir(b)] {
			_ = os.Link(a, b)
		}
	case 12:
		p.note("symlink %q", a)
		_ = os.Symlink(pick(p.r, "a", "/proc/self/none", "../..", "gone", "\xff"), a)
	case 13:
		p.note("chmod %q", a)
		_ = unix.Fchmodat(unix.AT_FDCWD, a, pick[uint32](p.r, 0, 0o644, 0o600, 0o755, 0o4755, 0o1777), 0)
	case 14:
		p.note("touch %q", a)
		at := time.Unix(int64(p.r.IntN(1e9)), int64(p.r.IntN(1e9)))
		_ = unix.UtimesNanoAt(unix.AT_FDCWD, a, []unix.Timespec{unix.NsecToTimespec(at.UnixNano()), unix.NsecToTimespec(at.UnixNano())}, unix.AT_SYMLINK_NOFOLLOW)
	case 15:
		p.note("mmap %q", a)
		p.mmap(a)
	case 16:
		p.note("sparse %q", a)
		if f, err := os.OpenFile(a, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o644); err == nil {
			_ = f.Truncate(int64(p.r.IntN(1 << 18)))
			_, _ = f.WriteAt([]byte("x"), int64(p.r.IntN(1<<18)))
			f.Close()
		}
	case 17:
		p.note("write, keeping the time: %q", a)
		if st, err := os.Lstat(a); err == nil && st.Mode().IsRegular() {
			if f, err := os.OpenFile(a, os.O_RDWR, 0); err == nil {
				_, _ = f.WriteAt([]byte{byte('a' + p.r.IntN(26))}, 0)
				f.Close()
			}
			_ = os.Chtimes(a, st.ModTime(), st.ModTime())
		}
	case 18:
		p.note("hold open and write %q", a)
		if f, err := os.OpenFile(a, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o600); err == nil {
			p.fds = append(p.fds, f)
		}
	case 19:
		p.note("write what is held")
		for _, f := range p.fds {
			_, _ = f.WriteAt(p.bytes(), 0)
		}
	case 20:
		p.note("mkfifo %q", a)
		_ = unix.Mkfifo(a, 0o600)
	}
}

// mmap writes through a shared mapping.
func (p *program) mmap(path string) {
	st, err := os.Lstat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	f.Close() // before the write: the mapping holds the file
	if err != nil {
		return
	}
	m[p.r.IntN(len(m))] ^= 1
	_ = unix.Munmap(m)
}

// told is what a record says, in the form of [differences].
func told(changes []sandbox.FileChange) map[string]string {
	out := map[string]string{}
	for _, c := range changes {
		what := func(s sandbox.FileState) string {
			if s.Kind == sandbox.KindFile {
				return s.SHA256
			}
			return string(s.Target)
		}
		switch c.Op {
		case sandbox.OpTouched:
		case sandbox.OpRenamed:
			out[c.From] = "deleted"
			out[c.Path] = "created " + what(c.After)
		case sandbox.OpDeleted:
			out[c.Path] = "deleted"
		case sandbox.OpMode:
			out[c.Path] = "mode"
		default:
			out[c.Path] = string(c.Op) + " " + what(c.After)
		}
	}
	return out
}

func mapsDiffer(want, got map[string]string) string {
	for p, w := range want {
		if got[p] != w {
			return fmt.Sprintf("%q: %q is true, %q was recorded", p, w, got[p])
		}
	}
	for p, g := range got {
		if _, ok := want[p]; !ok {
			return fmt.Sprintf("%q: nothing happened, %q was recorded", p, g)
		}
	}
	return ""
}

// TestPrograms runs random programs on a tree. What is recorded of each agrees
// with a full hash of the tree before and after: in one mode for half of them and
// in the other for the rest, and the other mode then finds nothing more. An undo
// brings the tree back to the bit; an undo of that makes it what it was.
func TestPrograms(t *testing.T) {
	t.Parallel()
	n := *programs
	if testing.Short() {
		n = 200
	}
	const workers = 4
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			for i := w; i < n; i += workers {
				onePrograms(t, uint64(i))
				if t.Failed() {
					return
				}
			}
		})
	}
}

func onePrograms(t *testing.T, seed uint64) {
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	p := &program{r: rand.New(rand.NewPCG(seed, 7)), dir: tree}
	p.run(p.r.IntN(20)) // what is there before anybody looks
	l := newLocal(t, tree)
	defer l.t.Close()
	book := &bridge.Book{Ledger: &bridge.Memory{}, Packs: &bridge.Packs{Dir: filepath.Join(dir, "packs")}}
	exact := seed%2 == 1
	fatal := func(format string, args ...any) {
		t.Helper()
		t.Errorf("program %d, exact %v: %s\nsteps: %q", seed, exact, fmt.Sprintf(format, args...), p.steps)
	}
	if _, err := book.Record(t.Context(), l, sandbox.RecordOptions{Baseline: true}); err != nil {
		fatal("baseline: %v", err)
		return
	}
	for range 3 {
		before := readTree(t, tree)
		p.steps, p.known = nil, nil
		if !exact {
			p.known = map[string]bool{}
			for _, d := range p.paths(true) {
				p.known[d] = true
			}
		}
		id := sandbox.NewID()
		l.t.Begin(string(id), false, false)
		p.run(1 + p.r.IntN(15))
		l.t.End(string(id), false)
		records, err := book.Record(t.Context(), l, sandbox.RecordOptions{Exec: id, ObserveOptions: sandbox.ObserveOptions{Exact: exact}})
		if err != nil {
			fatal("record: %v", err)
			return
		}
		after := readTree(t, tree)
		if d := mapsDiffer(differences(before, after), told(bridge.Merge(records))); d != "" {
			fatal("%s", d)
			return
		}
		// The other mode has nothing to add.
		more, err := book.Record(t.Context(), l, sandbox.RecordOptions{ObserveOptions: sandbox.ObserveOptions{Exact: !exact}})
		if err != nil {
			fatal("record in the other mode: %v", err)
			return
		}
		if rest := bridge.Shown(bridge.Merge(more)); len(rest) > 0 {
			fatal("the other mode finds %+v", rest)
			return
		}
		for _, r := range records {
			for _, c := range r.Changes {
				if c.By != sandbox.ByOwn {
					fatal("%q is %s of %q", c.Path, c.By, c.Execs)
				}
			}
		}
		if len(records) == 0 || p.r.IntN(2) == 0 {
			continue
		}
		undone, err := book.Undo(t.Context(), l, bridge.UndoOptions{Exec: id, Exact: exact})
		if err != nil {
			fatal("undo: %v", err)
			return
		}
		if d := sameTree(before, readTree(t, tree)); d != "" {
			fatal("undo:\n%s\n%+v\n%+v", d, records, undone)
			return
		}
		if undone.Record.ID == 0 {
			continue // there was nothing but times, and the clock stood still
		}
		if _, err := book.Undo(t.Context(), l, bridge.UndoOptions{Exec: undone.Record.Exec, Exact: exact}); err != nil {
			fatal("undo of the undo: %v", err)
			return
		}
		if d := sameTree(after, readTree(t, tree)); d != "" {
			fatal("undo of the undo:\n%s", d)
			return
		}
	}
}
