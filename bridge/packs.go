package bridge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Packs keeps contents in files of one folder, named at random. What is in a file
// is never changed: little is appended to the newest, under its lock, and much
// makes a file of its own. The oldest are removed when what is kept grows beyond
// its bound. So several processes can add to it at once.
type Packs struct {
	Dir string // made at first use, with mode 0700
	// Most bounds all of it, in bytes, and MostFile one content. 0 is the
	// default.
	Most, MostFile sandbox.Bytes
}

// The bounds where a [Packs] names none.
const (
	DefaultKeep     = 256 * sandbox.MiB
	DefaultKeepFile = 16 * sandbox.MiB
)

func (p *Packs) most() int64 {
	if p == nil {
		return 1 << 62
	}
	if p.Most == 0 {
		return int64(DefaultKeep)
	}
	return int64(p.Most)
}

// keeps reports whether a content of a size is kept at all.
func (p *Packs) keeps(size int64) bool {
	if p == nil {
		return false
	}
	most := p.MostFile
	if most == 0 {
		most = DefaultKeepFile
	}
	return size <= int64(most)
}

// packWriter writes one pack, which appears once it is closed.
type packWriter struct {
	packs  *Packs
	name   string
	file   *os.File // nil before the first content
	buf    []byte
	size   int64
	places map[string]Place
	path   string // of a file that nobody knows of yet; "" for none
}

func (p *Packs) writer() *packWriter { return &packWriter{packs: p, places: map[string]Place{}} }

// add keeps a content.
func (w *packWriter) add(sum string, data []byte) error {
	if _, have := w.places[sum]; have {
		return nil
	}
	w.places[sum] = Place{Pack: w.name, Offset: w.size, Size: int64(len(data))}
	w.size += int64(len(data))
	w.buf = append(w.buf, data...)
	if len(w.buf) < 4<<20 {
		return nil
	}
	return w.flush()
}

func (w *packWriter) flush() error {
	if w.file == nil {
		if err := os.MkdirAll(w.packs.Dir, 0o700); err != nil {
			return err
		}
		f, err := os.CreateTemp(w.packs.Dir, "new-*")
		if err != nil {
			return err
		}
		w.file, w.name, w.path = f, string(sandbox.NewID()), f.Name()
	}
	_, err := w.file.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// packRoom is how large a pack may grow by appending.
const packRoom = 4 << 20

// finish makes the pack, or a part of the newest of those that there are, and
// returns nil where there is nothing in it.
func (w *packWriter) finish(packs []Pack) (*Pack, error) {
	if len(w.places) == 0 {
		return nil, nil
	}
	base, appended := int64(0), false
	if w.file == nil && len(packs) > 0 {
		if base, appended = w.appendTo(packs[len(packs)-1]); appended {
			w.name = packs[len(packs)-1].Name
		}
	}
	if !appended {
		w.packs.sweep(packs)
		if err := w.settle(); err != nil {
			return nil, sandbox.Errorf(sandbox.Exhausted, "keep old contents: %w", err).WithHint("make room on the disk of %s", w.packs.Dir)
		}
	}
	for sum, p := range w.places {
		p.Pack, p.Offset = w.name, base+p.Offset
		w.places[sum] = p
	}
	return &Pack{Name: w.name, Size: base + w.size}, nil
}

// settle makes a file of its own.
func (w *packWriter) settle() error {
	err := w.flush()
	if err == nil {
		err = w.file.Close()
	}
	if err == nil {
		err = os.Rename(w.path, filepath.Join(w.packs.Dir, w.name))
	}
	if err == nil {
		w.path = filepath.Join(w.packs.Dir, w.name)
	}
	return err
}

// committed says that the ledger knows of what was made.
func (w *packWriter) committed() { w.path = "" }

// appendTo adds what there is to a pack, and says where it begins. A pack that is
// full, gone, or written to by another process is left as it is.
func (w *packWriter) appendTo(to Pack) (base int64, done bool) {
	most := min(packRoom, w.packs.most()/4)
	if !sandbox.ID(to.Name).Valid() || to.Size+w.size > most {
		return 0, false
	}
	f, err := os.OpenFile(filepath.Join(w.packs.Dir, to.Name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close() // which drops the lock; a write that failed was seen below
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return 0, false
	}
	// More may be in it than its size says: of one who never came to commit it.
	st, err := f.Stat()
	if err != nil || st.Size()+w.size > most {
		return 0, false
	}
	if _, err := f.Write(w.buf); err != nil {
		return 0, false
	}
	return st.Size(), true
}

// abandon removes what was made and not committed.
func (w *packWriter) abandon() {
	if w.path != "" {
		_ = w.file.Close()
		_ = os.Remove(w.path) // a file that stays is swept
	}
}

// sweepAge is how long a pack may be without its ledger knowing of it.
const sweepAge = time.Hour

// sweep removes packs that the ledger does not know: of those who died before
// they could commit them.
func (p *Packs) sweep(known []Pack) {
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return // it is not there yet, or whoever writes to it will tell
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < sweepAge || slices.ContainsFunc(known, func(k Pack) bool { return k.Name == e.Name() }) {
			continue
		}
		_ = os.Remove(filepath.Join(p.Dir, e.Name())) // the next one tries again
	}
}

// errNotKept says that a content is not there any more, or never was.
var errNotKept = errors.New("its content was not kept")

// read returns a content. Errors: errNotKept.
func (p *Packs) read(at Place, sum string) ([]byte, error) {
	if p == nil || !sandbox.ID(at.Pack).Valid() {
		return nil, errNotKept
	}
	f, err := os.Open(filepath.Join(p.Dir, at.Pack))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotKept, err)
	}
	defer f.Close()
	b := make([]byte, at.Size)
	if _, err := f.ReadAt(b, at.Offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", errNotKept, err)
	}
	if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("%w: the file that kept it is damaged", errNotKept)
	}
	return b, nil
}

// excess names the oldest packs beyond the bound, once added is there.
func (p *Packs) excess(packs []Pack, added *Pack) []string {
	if p == nil || added == nil {
		return nil
	}
	total := added.Size
	packs = slices.DeleteFunc(packs, func(k Pack) bool { return k.Name == added.Name })
	for _, k := range packs {
		total += k.Size
	}
	var drop []string
	for _, k := range packs {
		if total <= p.most() {
			break
		}
		total -= k.Size
		drop = append(drop, k.Name)
	}
	return drop
}

func (p *Packs) remove(names []string) {
	for _, n := range names {
		_ = os.Remove(filepath.Join(p.Dir, n)) // nothing refers to it any more; it goes with the session
	}
}

// shareTo gives another folder all packs. They are never changed, so a second
// name is as good as a copy.
func (p *Packs) shareTo(dir string) error {
	if p == nil {
		return nil
	}
	entries, err := os.ReadDir(p.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if !sandbox.ID(e.Name()).Valid() {
			continue // one that is being written
		}
		if err := os.Link(filepath.Join(p.Dir, e.Name()), filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// open is a content as a reader.
func opener(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}
