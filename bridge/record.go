package bridge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/sandbox"
)

// Book is what is known of one session's workspace. It is safe for concurrent
// use.
type Book struct {
	Ledger Ledger
	Packs  *Packs           // nil keeps no contents: nothing can be shown or undone
	Now    func() time.Time // nil is [time.Now]

	mu sync.Mutex // one record at a time
}

func (b *Book) now() time.Time {
	if b.Now != nil {
		return b.Now().UTC()
	}
	return time.Now().UTC()
}

// Record observes the workspace and writes down what differs from what was
// known: for the exec, for others that ran beside it, and for the session
// itself, each in a record of its own. It returns those.
func (b *Book) Record(ctx context.Context, ws sandbox.Tree, opts sandbox.RecordOptions) ([]sandbox.ChangeRecord, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var made []sandbox.ChangeRecord
	err := ws.Observe(ctx, opts.ObserveOptions, func(o *sandbox.Observation) error {
		r := &recording{b: b, opts: opts, o: o, now: map[string]sandbox.FileState{}, execs: map[string][]sandbox.ID{}, pack: b.Packs.writer()}
		defer r.pack.abandon()
		entry, err := r.run(ctx)
		if err != nil {
			return err
		}
		if len(entry.Set) > 0 || len(entry.Records) > 0 {
			if err := b.Ledger.Commit(ctx, entry); err != nil {
				return err
			}
			r.pack.committed()
			b.Packs.remove(entry.Drop)
		}
		for _, rec := range entry.Records {
			made = append(made, *rec)
		}
		return nil
	})
	return made, err
}

// recording is one call of Record.
type recording struct {
	b     *Book
	opts  sandbox.RecordOptions
	o     *sandbox.Observation
	old   map[string]sandbox.FileState
	now   map[string]sandbox.FileState // of all paths that were looked at
	execs map[string][]sandbox.ID
	pack  *packWriter
	small map[string][]byte // contents by their sums that may be kept already
}

// room is how many bytes of new contents may still be kept of this observation.
func (r *recording) room() int64 { return r.b.Packs.most() - r.pack.size }

func (r *recording) run(ctx context.Context) (*Entry, error) {
	if err := r.gather(ctx); err != nil {
		return nil, err
	}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	entry := &Entry{Set: map[string]sandbox.FileState{}}
	for p, s := range r.now {
		if old, known := r.old[p]; s.Kind != sandbox.KindNone && (!known || !equalState(old, s)) || s.Kind == sandbox.KindNone && known {
			entry.Set[p] = s
		}
	}
	if !r.opts.Baseline {
		entry.Records = r.records(compare(r.old, r.now))
	}
	if len(r.pack.places) == 0 {
		return entry, nil
	}
	packs, err := r.b.Ledger.Kept(ctx)
	if err != nil {
		return nil, err
	}
	if entry.Pack, err = r.pack.finish(packs); err != nil {
		return nil, err
	}
	entry.Places, entry.Drop = r.pack.places, r.b.Packs.excess(packs, entry.Pack)
	return entry, nil
}

// gather finds out what was known of every path that is concerned: those that
// were touched, and those that went with a folder.
func (r *recording) gather(ctx context.Context) (err error) {
	paths := make([]string, 0, len(r.o.Entries))
	for _, e := range r.o.Entries {
		paths = append(paths, e.Path)
		r.now[e.Path] = e.State
		r.execs[e.Path] = e.Execs
	}
	if r.old, err = r.b.Ledger.States(ctx, append(paths, ".")); err != nil {
		return err
	}
	if _, known := r.old["."]; !known && r.opts.Settle {
		r.opts.Baseline = true
	}
	for _, e := range r.o.Entries {
		wasDir := r.old[e.Path].Kind == sandbox.KindDir
		switch {
		case e.State.Kind == sandbox.KindDir && e.Whole:
			err = r.vanished(ctx, e, e.Names)
		case e.State.Kind != sandbox.KindDir && wasDir:
			err = r.vanished(ctx, e, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// vanished notes that what was known in a folder is gone, but for the names
// that are still in it.
func (r *recording) vanished(ctx context.Context, e sandbox.Touched, names []string) error {
	known, err := r.b.Ledger.Below(ctx, e.Path)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(names))
	for _, n := range names {
		there[n] = true
	}
	for p, s := range known {
		rel := p
		if e.Path != "." {
			rel = p[len(e.Path)+1:]
		}
		first, _, _ := strings.Cut(rel, "/")
		if there[first] {
			continue
		}
		if _, looked := r.now[p]; !looked {
			r.now[p], r.execs[p] = sandbox.FileState{}, e.Execs
		}
		r.old[p] = s
	}
	return nil
}

// identical reports whether a file is certain to hold what it held.
func identical(old, now sandbox.FileState) bool {
	return now.CTime > 0 && old.CTime == now.CTime && old.Inode == now.Inode && old.Size == now.Size && old.MTime == now.MTime &&
		old.BTime == now.BTime && old.Kind == now.Kind
}

func equalState(a, b sandbox.FileState) bool {
	return a.Kind == b.Kind && a.Mode == b.Mode && a.Links == b.Links && a.Size == b.Size && a.MTime == b.MTime && a.CTime == b.CTime &&
		a.BTime == b.BTime && a.Inode == b.Inode && a.SHA256 == b.SHA256 && a.Text == b.Text && string(a.Target) == string(b.Target)
}

// read gets the content of what may differ, of small files first: of all that
// can be read within a budget, those are the most.
func (r *recording) read(ctx context.Context) error {
	var wants []sandbox.Want
	budget := r.b.Packs.most()
	for _, i := range r.bySize() {
		e := r.o.Entries[i]
		s := e.State
		if s.Kind != sandbox.KindFile || e.Whole {
			continue
		}
		if old, known := r.old[e.Path]; known && identical(old, s) {
			s.SHA256, s.Text = old.SHA256, old.Text
			r.now[e.Path] = s
			continue
		}
		if s.Size == 0 {
			s.SHA256, s.Text = emptySum, true
			r.now[e.Path] = s
			continue
		}
		keep := r.b.Packs.keeps(s.Size) && s.Size <= budget
		if r.opts.Baseline && r.b.Packs != nil && !keep {
			continue // what was there before is kept as far as it fits, and not even read beyond
		}
		if keep {
			budget -= s.Size
		}
		wants = append(wants, sandbox.Want{Entry: i, Hash: !keep})
	}
	if len(wants) == 0 {
		return nil
	}
	err := r.o.Read(ctx, wants, func(i int, in io.Reader, sum func() string) error { return r.take(ctx, wants[i], in, sum) })
	if err != nil {
		return err
	}
	return r.keepSmall(ctx)
}

// bySize are the numbers of all entries, the smallest first.
func (r *recording) bySize() []int {
	order := make([]int, len(r.o.Entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.o.Entries[a].State.Size, r.o.Entries[b].State.Size) })
	return order
}

// keepSmall keeps the small contents that are new: one question for all of them.
func (r *recording) keepSmall(ctx context.Context) error {
	if len(r.small) == 0 {
		return nil
	}
	sums := slices.Sorted(maps.Keys(r.small))
	have, err := r.b.Ledger.Find(ctx, sums)
	if err != nil {
		return err
	}
	for _, s := range sums {
		if _, kept := have[s]; kept || int64(len(r.small[s])) > r.room() {
			continue
		}
		if err := r.pack.add(s, r.small[s]); err != nil {
			return err
		}
	}
	return nil
}

// take reads one content.
func (r *recording) take(ctx context.Context, w sandbox.Want, in io.Reader, sum func() string) error {
	e := r.o.Entries[w.Entry]
	s := e.State
	if w.Hash {
		if err := discard(in); err != nil {
			return err
		}
		s.SHA256 = sum()
		r.now[e.Path] = s
		return nil
	}
	// It may have grown meanwhile: what is beyond the bound is hashed alone.
	limit := int64(DefaultKeepFile)
	if r.b.Packs.MostFile != 0 {
		limit = int64(r.b.Packs.MostFile)
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return err
	}
	h := sha256.New()
	h.Write(data)
	n, err := io.Copy(h, in)
	if err != nil {
		return err
	}
	if sum() == "" {
		r.now[e.Path] = s // gone, closed to its own user, or beyond the budget
		return nil
	}
	s.SHA256, s.Size = hex.EncodeToString(h.Sum(nil)), int64(len(data))+n
	s.Text = n == 0 && isText(data)
	r.now[e.Path] = s
	if len(data) == 0 || int64(len(data)) > limit || int64(len(data)) > r.room() {
		return nil // nothing, not what was promised, or a sandbox promises too much
	}
	if len(data) < worthFinding && len(r.o.Entries) <= fewEntries {
		if r.small == nil {
			r.small = map[string][]byte{}
		}
		r.small[s.SHA256] = data
		return nil
	}
	if len(data) >= worthFinding {
		have, err := r.b.Ledger.Find(ctx, []string{s.SHA256})
		if err != nil || len(have) > 0 {
			return err
		}
	}
	return r.pack.add(s.SHA256, data)
}

// Of many small contents, those that are kept already are not looked for: to
// keep them once more is cheaper.
const (
	worthFinding = 16 << 10
	fewEntries   = 256
)

func isText(b []byte) bool { return utf8.Valid(b) && !slices.Contains(b, 0) }

// records books changes to those who made them.
func (r *recording) records(changes []sandbox.FileChange) []*sandbox.ChangeRecord {
	byExec := map[sandbox.ID]*sandbox.ChangeRecord{}
	var order []sandbox.ID
	for _, c := range changes {
		owner, by, execs := r.owner(r.actors(c))
		c.By, c.Execs = by, execs
		rec := byExec[owner]
		if rec == nil {
			rec = &sandbox.ChangeRecord{Exec: owner, Time: r.b.now(), Walked: r.o.Walked, Partial: r.o.Partial}
			if owner == r.opts.Exec {
				rec.Undoes = r.opts.Undoes
			}
			byExec[owner] = rec
			order = append(order, owner)
		}
		rec.Changes = append(rec.Changes, c)
	}
	slices.SortFunc(order, func(a, b sandbox.ID) int { return rank(a, r.opts.Exec) - rank(b, r.opts.Exec) })
	var out []*sandbox.ChangeRecord
	for _, id := range order {
		out = append(out, byExec[id])
	}
	return out
}

// rank puts the session first and the exec that has just ended last.
func rank(id, exec sandbox.ID) int {
	switch id {
	case "":
		return 0
	case exec:
		return 2
	}
	return 1
}

// actors are all who may have made a change.
func (r *recording) actors(c sandbox.FileChange) []sandbox.ID {
	if r.opts.Mine {
		return []sandbox.ID{r.opts.Exec}
	}
	set := slices.Concat(r.execs[c.Path], r.opts.Beside)
	if c.From != "" {
		set = append(set, r.execs[c.From]...)
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// owner says in whose record a change stands.
func (r *recording) owner(set []sandbox.ID) (sandbox.ID, sandbox.ChangeBy, []sandbox.ID) {
	execs := slices.DeleteFunc(slices.Clone(set), func(id sandbox.ID) bool { return id == "" })
	switch {
	case len(execs) == 0:
		return "", sandbox.BySession, nil
	case len(set) == 1:
		return execs[0], sandbox.ByOwn, nil
	case slices.Contains(execs, r.opts.Exec):
		return r.opts.Exec, sandbox.ByShared, execs
	}
	return execs[0], sandbox.ByShared, execs
}

// depth orders paths so that a folder comes before what is in it.
func depth(p string) int {
	if p == "." {
		return 0
	}
	return 1 + strings.Count(path.Clean(p), "/")
}
