package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// UndoOptions say what is taken back.
type UndoOptions struct {
	// Exec is the exec whose changes are taken back; what it may share with
	// others too.
	Exec sandbox.ID
	// Since takes back everything since before Exec, whoever did it.
	Since bool
	// Force takes back what something later touched too, and leaves out what
	// cannot be restored.
	Force bool
	// As is the id of the record that this makes; "" makes one.
	As sandbox.ID
	// Exact looks at the whole workspace, before and after.
	Exact bool
}

// Undone is what came of an undo.
type Undone struct {
	Record  sandbox.ChangeRecord
	Made    []sandbox.ChangeRecord // all records that it made
	Skipped []string               // paths whose old content was not kept; with Force alone
}

// goal is one path as an undo wants it.
type goal struct{ want, expect sandbox.FileState }

// Undo restores what an exec changed to what it was before: content, kinds,
// modes, links and times. What it does is a record like any other, and can be
// undone. Errors: NotFound for an exec without a record, Conflict for what was
// touched later or whose content was not kept, naming it.
func (b *Book) Undo(ctx context.Context, ws sandbox.Tree, opts UndoOptions) (Undone, error) {
	if opts.As == "" {
		opts.As = sandbox.NewID()
	}
	look := sandbox.ObserveOptions{Exact: opts.Exact}
	if _, err := b.Record(ctx, ws, sandbox.RecordOptions{ObserveOptions: look}); err != nil {
		return Undone{}, err
	}
	records, err := b.toUndo(ctx, opts)
	if err != nil {
		return Undone{}, err
	}
	goals := goalsOf(records)
	plan := &undoing{b: b, goals: goals}
	if err := plan.prepare(ctx, opts.Force); err != nil {
		return Undone{}, err
	}
	entries, err := plan.entries(ctx)
	if err != nil {
		return Undone{}, err
	}
	out := Undone{Skipped: plan.skipped}
	var ids []int64
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	failed := ws.Restore(ctx, entries)
	out.Made, err = b.Record(ctx, ws, sandbox.RecordOptions{Exec: opts.As, Mine: true, ObserveOptions: look, Undoes: ids})
	for _, r := range out.Made {
		if r.Exec == opts.As {
			out.Record = r
		}
	}
	return out, errors.Join(failed, err)
}

// toUndo selects the records, the oldest first.
func (b *Book) toUndo(ctx context.Context, opts UndoOptions) ([]sandbox.ChangeRecord, error) {
	records, err := b.Ledger.Records(ctx, RecordFilter{Exec: opts.Exec})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, sandbox.Errorf(sandbox.NotFound, "exec %s changed nothing, or is not known", opts.Exec.Short()).
			WithHint("see what changed with: caisson changes SESSION")
	}
	if !opts.Since {
		return OwnShare(records, opts.Exec), nil
	}
	return b.Ledger.Records(ctx, RecordFilter{From: records[0].ID})
}

// goalsOf finds what each path was before the records, and what it was after.
func goalsOf(records []sandbox.ChangeRecord) map[string]goal {
	goals := map[string]goal{}
	note := func(p string, before, after sandbox.FileState) {
		g, seen := goals[p]
		if !seen {
			g.want = before
		}
		g.expect = after
		goals[p] = g
	}
	for _, r := range records {
		for _, c := range r.Changes {
			if c.Op == sandbox.OpRenamed {
				note(c.From, c.Before, sandbox.FileState{})
				note(c.Path, sandbox.FileState{}, c.After)
				continue
			}
			note(c.Path, c.Before, c.After)
		}
	}
	return goals
}

// undoing is one call of Undo.
type undoing struct {
	b       *Book
	goals   map[string]goal
	current map[string]sandbox.FileState
	content map[string][]byte // by hash
	skipped []string
}

// prepare sees that nothing stands in the way.
func (u *undoing) prepare(ctx context.Context, force bool) (err error) {
	paths := slices.Sorted(maps.Keys(u.goals))
	if u.current, err = u.b.Ledger.States(ctx, paths); err != nil {
		return err
	}
	var later []string
	for _, p := range paths {
		g := u.goals[p]
		if !same(u.current[p], g.expect) {
			later = append(later, p)
		}
		if g.want.Kind == sandbox.KindDir || u.current[p].Kind != sandbox.KindDir {
			continue
		}
		// A folder that goes takes with it what is in it.
		inside, err := u.b.Ledger.Below(ctx, p)
		if err != nil {
			return err
		}
		for q := range inside {
			if _, planned := u.goals[q]; !planned {
				later = append(later, q)
			}
		}
	}
	if len(later) > 0 && !force {
		return sandbox.Errorf(sandbox.Conflict, "later touched: %s", list(later)).
			WithHint("undo the later execs first, or take it back all the same with --force")
	}
	return u.load(ctx, paths, force)
}

// same reports whether two states are the same to who looks: times aside.
func same(a, b sandbox.FileState) bool {
	return a.Kind == b.Kind && (a.Kind == sandbox.KindNone || a.Mode == b.Mode && sameContent(a, b))
}

// load gets the old contents that are not there any more.
func (u *undoing) load(ctx context.Context, paths []string, force bool) error {
	u.content = map[string][]byte{}
	var sums []string
	for _, p := range paths {
		if u.needsContent(p) {
			sums = append(sums, u.goals[p].want.SHA256)
		}
	}
	places, err := u.b.Ledger.Find(ctx, sums)
	if err != nil {
		return err
	}
	var missing []string
	for _, p := range paths {
		w := u.goals[p].want
		if w.Kind == sandbox.KindOther && string(w.Target) != "fifo" {
			missing = append(missing, p)
			continue
		}
		if !u.needsContent(p) || u.content[w.SHA256] != nil || w.SHA256 == emptySum {
			continue
		}
		place, kept := places[w.SHA256]
		var data []byte
		err := errNotKept
		if kept {
			data, err = u.b.Packs.read(place, w.SHA256)
		}
		if err != nil {
			missing = append(missing, p)
			continue
		}
		u.content[w.SHA256] = append(make([]byte, 0, len(data)), data...)
	}
	if len(missing) > 0 && !force {
		return sandbox.Errorf(sandbox.Conflict, "the old content was not kept: %s", list(missing)).
			WithHint("it was too large, too long ago or never read, or is no file; take back the rest with --force")
	}
	u.skipped = missing
	return nil
}

func (u *undoing) needsContent(p string) bool {
	w, c := u.goals[p].want, u.current[p]
	return w.Kind == sandbox.KindFile && (c.Kind != sandbox.KindFile || c.SHA256 != w.SHA256 || w.SHA256 == "" || max(c.Links, w.Links) > 1)
}

// list names a few paths.
func list(paths []string) string {
	const most = 5
	slices.Sort(paths)
	paths = slices.Compact(paths)
	var b strings.Builder
	for i, p := range paths[:min(len(paths), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", p)
	}
	if len(paths) > most {
		fmt.Fprintf(&b, " and %d more", len(paths)-most)
	}
	return b.String()
}

// entries orders what is to be made: what goes, the deepest first; folders;
// files and links; further names of files.
func (u *undoing) entries(ctx context.Context) ([]sandbox.Restore, error) {
	var gone, dirs, rest, links []sandbox.Restore
	made := map[uint64]string{} // inode before → a path that has it again
	for _, p := range slices.SortedFunc(maps.Keys(u.goals), func(a, b string) int {
		if d := depth(a) - depth(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	}) {
		w := u.goals[p].want
		if slices.Contains(u.skipped, p) {
			continue
		}
		e := sandbox.Restore{Path: p, State: w}
		switch {
		case w.Kind == sandbox.KindNone:
			gone = append(gone, e)
		case w.Kind == sandbox.KindDir:
			dirs = append(dirs, e)
		case w.Kind == sandbox.KindFile && w.Links > 1:
			to, err := u.linkTo(ctx, p, w, made)
			if err != nil {
				return nil, err
			}
			if to != "" {
				e.LinkTo = to
				links = append(links, e)
				break
			}
			made[w.Inode] = p
			fallthrough
		case w.Kind == sandbox.KindFile && u.needsContent(p):
			e.Open = opener(u.content[w.SHA256])
			rest = append(rest, e)
		default:
			rest = append(rest, e)
		}
	}
	slices.Reverse(gone)
	around, err := u.around(ctx)
	return slices.Concat(gone, dirs, around, rest, links), err
}

// around are the folders that the restoring itself changes the times of.
func (u *undoing) around(ctx context.Context) ([]sandbox.Restore, error) {
	parents := map[string]bool{}
	for p := range u.goals {
		if up := parent(p); p != "." {
			parents[up] = true
		}
	}
	maps.DeleteFunc(parents, func(p string, _ bool) bool { _, planned := u.goals[p]; return planned })
	known, err := u.b.Ledger.States(ctx, slices.Collect(maps.Keys(parents)))
	if err != nil {
		return nil, err
	}
	var out []sandbox.Restore
	for p, s := range known {
		if s.Kind == sandbox.KindDir {
			out = append(out, sandbox.Restore{Path: p, State: s})
		}
	}
	return out, nil
}

// linkTo finds a path that had the same inode before and has its content, or
// gets it.
func (u *undoing) linkTo(ctx context.Context, p string, w sandbox.FileState, made map[uint64]string) (string, error) {
	if to, ok := made[w.Inode]; ok {
		return to, nil
	}
	known, err := u.b.Ledger.SameFile(ctx, w.Inode)
	if err != nil {
		return "", err
	}
	for _, q := range slices.Sorted(maps.Keys(known)) {
		s := known[q]
		if _, planned := u.goals[q]; planned && !sameMade(u.goals[q].want, w) || q == p {
			continue
		}
		if s.BTime == w.BTime && s.SHA256 == w.SHA256 && s.Mode == w.Mode && s.Kind == sandbox.KindFile && !u.rewritten(q) {
			made[w.Inode] = q
			return q, nil
		}
	}
	return "", nil
}

func sameMade(a, b sandbox.FileState) bool { return a.Inode == b.Inode && a.BTime == b.BTime }

// rewritten reports whether a path gets another inode than it has now.
func (u *undoing) rewritten(p string) bool {
	g, planned := u.goals[p]
	return planned && (g.want.Links > 1 || u.needsContent(p) || g.want.Kind != sandbox.KindFile)
}
