//go:build linux

package track

import (
	"encoding/binary"
	"hash/maphash"
	"path"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Bounds of a tree. What is beyond them is not looked at, which is said.
const (
	maxDepth   = 200
	maxEntries = 2_000_000
)

// dir is a folder of the tree with what is remembered of its entries.
type dir struct {
	parent *dir
	name   string
	ino    uint64
	wd     int32
	walked uint32 // number of the last walk that met it
	whole  bool   // all its names are to be told: something else may have been in its place
	subs   map[string]*dir
	known  []fingerprint // in the order in which the folder was last read
}

// fingerprint is an entry's name and mark.
type fingerprint struct{ name, sum uint64 }

func (d *dir) path() string {
	if d.parent == nil {
		return "."
	}
	return path.Join(d.parent.path(), d.name)
}

// find returns the place of an entry, and -1 where it is not known.
func (d *dir) find(name uint64) int {
	for i := range d.known {
		if d.known[i].name == name {
			return i
		}
	}
	return -1
}

func (d *dir) remember(name, sum uint64) {
	if i := d.find(name); i >= 0 {
		d.known[i].sum = sum
		return
	}
	d.known = append(d.known, fingerprint{name, sum})
}

func (d *dir) drop(name uint64) {
	if i := d.find(name); i >= 0 {
		d.known = append(d.known[:i], d.known[i+1:]...)
	}
}

// forgetDir drops a folder and its watches.
func (t *Tracker) forgetDir(d *dir) {
	for _, sub := range d.subs {
		t.forgetDir(sub)
	}
	t.unwatch(d)
	if d.parent != nil {
		delete(d.parent.subs, d.name)
	}
}

// walker looks at all that is below a folder.
type walker struct {
	t *Tracker
	// all reports every entry, and not only those that differ.
	all     bool
	found   func(wire.Entry)
	stop    func() bool // reports that it is to end; nil is never
	stopped bool
	st      unix.Statx_t
	ajar    *folder // that is walked, where its mode is not its own
}

// ending reports whether the walk ends here.
func (w *walker) ending() bool {
	w.stopped = w.stopped || w.stop != nil && w.stop()
	return w.stopped
}

// walk looks at a folder and what is below it. fd is open and stays so.
func (w *walker) walk(d *dir, fd, depth int) {
	t := w.t
	t.watchDir(d, fd) // before it is read: what comes then is heard of
	d.walked = t.walks
	old := d.known
	now := make([]fingerprint, 0, len(old))
	var index map[uint64]uint64 // of old, once the order differs
	matched := 0
	var subs []*dir
	buf := make([]byte, 32<<10)
	for !w.ending() {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n <= 0 {
			break
		}
		for at := 0; at < n; {
			rec := buf[at:n]
			size := int(binary.NativeEndian.Uint16(rec[16:]))
			name := rec[19:size]
			at += size
			if name[0] == '.' && (name[1] == 0 || name[1] == '.' && name[2] == 0) {
				continue
			}
			if statAt(fd, &name[0], &w.st) != nil {
				continue // gone between the two
			}
			if t.count++; t.count > maxEntries {
				t.partial = "there are too many entries"
				continue
			}
			length := 0
			for name[length] != 0 {
				length++
			}
			name = name[:length]
			f := fingerprint{maphash.Bytes(t.seed, name), t.sum(&w.st)}
			was, known := uint64(0), false
			if i := len(now); index == nil && i < len(old) && old[i].name == f.name {
				was, known = old[i].sum, true
			} else {
				if index == nil {
					index = make(map[uint64]uint64, len(old))
					for _, o := range old {
						index[o.name] = o.sum
					}
				}
				was, known = index[f.name]
			}
			if known {
				matched++
			}
			now = append(now, f)
			if w.all || !known || was != f.sum || f.sum == 0 {
				full := path.Join(d.path(), string(name))
				e := t.describe(fd, string(name), full, &w.st)
				w.found(e)
				t.noteLinks(&e)
			} else if w.st.Nlink > 1 && kindOf(w.st.Mode) != wire.KindDir {
				t.noteLinks(&wire.Entry{Path: path.Join(d.path(), string(name)), Kind: kindOf(w.st.Mode), Links: w.st.Nlink, Inode: w.st.Ino})
			}
			if kindOf(w.st.Mode) == wire.KindDir {
				subs = append(subs, w.sub(d, string(name)))
			}
		}
	}
	d.known = now
	if !w.all && (d.whole || matched < len(old)) {
		d.whole = false
		w.listing(d, fd)
	}
	for _, s := range subs {
		w.descend(s, fd, depth)
	}
	for _, s := range d.subs {
		if s.walked != t.walks {
			t.forgetDir(s)
		}
	}
}

// sub finds or makes the node of a folder that was just looked at. One that
// another folder has taken the place of is made anew.
func (w *walker) sub(d *dir, name string) *dir {
	s := d.subs[name]
	if s != nil && s.ino != w.st.Ino {
		w.t.forgetDir(s)
		s = nil
	}
	if s == nil {
		s = &dir{parent: d, name: name, ino: w.st.Ino, whole: true}
		if d.subs == nil {
			d.subs = map[string]*dir{}
		}
		d.subs[name] = s
	}
	s.walked = w.t.walks
	return s
}

func (w *walker) descend(s *dir, parent, depth int) {
	if w.stopped {
		return // the next walk knows nothing of it yet
	}
	if depth >= maxDepth {
		w.t.partial = "folders are nested too deeply"
		return
	}
	f, err := w.t.openDir(parent, s.name)
	if err != nil {
		return // gone, or closed to its own user: what is known of it stays
	}
	was := w.ajar
	if w.ajar = nil; f.ajar {
		w.ajar = &f
	}
	w.walk(s, f.fd, depth+1)
	w.ajar = was
	f.close()
}

// namesOf reads a folder's names from the first on.
func namesOf(fd int) []string {
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil
	}
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// listing reports a folder with all its names, since some are gone.
func (w *walker) listing(d *dir, fd int) {
	dot := [2]byte{'.', 0}
	if statAt(fd, &dot[0], &w.st) != nil {
		return
	}
	e := w.t.describe(fd, ".", d.path(), &w.st)
	if w.ajar != nil {
		e.Mode = w.ajar.mode
	}
	e.Whole, e.Names = true, namesOf(fd)
	w.found(e)
}
