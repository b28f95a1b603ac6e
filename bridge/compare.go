package bridge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/caisson-dev/caisson/sandbox"
)

// compare says what became of each path between two states of a workspace, in
// the order of the paths.
func compare(old, now map[string]sandbox.FileState) []sandbox.FileChange {
	var changes []sandbox.FileChange
	for _, p := range slices.Sorted(maps.Keys(now)) {
		was, known := old[p]
		is := now[p]
		op, differs := opOf(was, is)
		if !differs || p == "." && !known {
			continue
		}
		changes = append(changes, sandbox.FileChange{Path: p, Op: op, Before: was, After: is})
	}
	return pairRenames(changes)
}

// opOf names the difference between two states.
func opOf(was, is sandbox.FileState) (sandbox.ChangeOp, bool) {
	switch {
	case was.Kind == is.Kind && was.Kind == sandbox.KindNone:
		return "", false
	case was.Kind == sandbox.KindNone:
		return sandbox.OpCreated, true
	case is.Kind == sandbox.KindNone:
		return sandbox.OpDeleted, true
	case was.Kind != is.Kind, !sameContent(was, is):
		return sandbox.OpModified, true
	case was.Mode != is.Mode:
		return sandbox.OpMode, true
	case was.MTime != is.MTime, was.Links != is.Links, was.Inode != is.Inode && max(was.Links, is.Links) > 1:
		return sandbox.OpTouched, true
	}
	return "", false
}

// sameContent reports whether two states of one kind hold the same. A file that
// was not read holds the same where nothing was done to it: its times are not
// enough, which a program can set, but for the one of its last change of any
// kind.
func sameContent(a, b sandbox.FileState) bool {
	switch a.Kind {
	case sandbox.KindFile:
		if a.SHA256 != "" && b.SHA256 != "" {
			return a.SHA256 == b.SHA256
		}
		return a.Size == b.Size && a.MTime == b.MTime && a.Inode == b.Inode && max(a.CTime, -a.CTime) == max(b.CTime, -b.CTime)
	case sandbox.KindLink, sandbox.KindOther:
		return string(a.Target) == string(b.Target)
	default: // a folder holds entries, which have paths of their own
	}
	return true
}

// pairRenames joins what is gone with what appeared as the same thing. An inode
// number alone does not tell: it is used again as soon as its file is gone. So
// the time of birth must agree, or, where there is none, the content.
func pairRenames(changes []sandbox.FileChange) []sandbox.FileChange {
	gone := map[uint64][]int{}
	for i, c := range changes {
		if c.Op == sandbox.OpDeleted {
			gone[c.Before.Inode] = append(gone[c.Before.Inode], i)
		}
	}
	if len(gone) == 0 {
		return changes
	}
	drop := map[int]bool{}
	for i, c := range changes {
		if c.Op != sandbox.OpCreated {
			continue
		}
		for _, j := range gone[c.After.Inode] {
			if from := changes[j]; !drop[j] && sameThing(from.Before, c.After) {
				changes[i].Op, changes[i].From, changes[i].Before = sandbox.OpRenamed, from.Path, from.Before
				drop[j] = true
				break
			}
		}
	}
	kept := changes[:0]
	for i, c := range changes {
		if !drop[i] {
			kept = append(kept, c)
		}
	}
	return kept
}

func sameThing(was, is sandbox.FileState) bool {
	if was.Kind != is.Kind || was.Inode != is.Inode {
		return false
	}
	if was.BTime != 0 && is.BTime != 0 {
		return was.BTime == is.BTime
	}
	return was.Kind == sandbox.KindFile && was.SHA256 != "" && was.SHA256 == is.SHA256 && was.Size > 0
}

// Shown are the changes that are changes: without what was touched alone. A
// folder that was renamed with all that is in it is one of them.
func Shown(changes []sandbox.FileChange) []sandbox.FileChange {
	moved := map[string]string{} // folders, by their new path
	for _, c := range changes {
		if c.Op == sandbox.OpRenamed && c.Kind() == sandbox.KindDir {
			moved[c.Path] = c.From
		}
	}
	out := make([]sandbox.FileChange, 0, len(changes))
	for _, c := range changes {
		if c.Op == sandbox.OpTouched || c.Op == sandbox.OpRenamed && wentAlong(c, moved) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// wentAlong reports whether something was renamed because its folder was.
func wentAlong(c sandbox.FileChange, moved map[string]string) bool {
	if !sameContent(c.Before, c.After) || c.Before.Mode != c.After.Mode {
		return false
	}
	from, to := parent(c.From), parent(c.Path)
	return moved[to] == from && moved[to] != "" && c.From[len(from):] == c.Path[len(to):]
}

func parent(p string) string {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '/' {
			return p[:i]
		}
	}
	return "."
}

// Merge joins the changes of several records, in their order, into one for each
// path. What ended as it began is left out.
func Merge(records []sandbox.ChangeRecord) []sandbox.FileChange {
	if len(records) == 1 {
		return records[0].Changes
	}
	first, last := map[string]sandbox.FileState{}, map[string]sandbox.FileState{}
	by := map[string]sandbox.FileChange{}
	note := func(p string, before, after sandbox.FileState, c sandbox.FileChange) {
		if _, seen := first[p]; !seen {
			first[p] = before
		}
		last[p] = after
		if old, seen := by[p]; seen && (old.By != c.By || !slices.Equal(old.Execs, c.Execs)) {
			c.By, c.Execs = sandbox.ByShared, slices.Compact(slices.Sorted(slices.Values(slices.Concat(old.Execs, c.Execs))))
		}
		by[p] = c
	}
	for _, r := range records {
		for _, c := range r.Changes {
			if c.Op == sandbox.OpRenamed {
				note(c.From, c.Before, sandbox.FileState{}, c)
				note(c.Path, sandbox.FileState{}, c.After, c)
				continue
			}
			note(c.Path, c.Before, c.After, c)
		}
	}
	changes := compare(first, last)
	for i := range changes {
		changes[i].By, changes[i].Execs = by[changes[i].Path].By, by[changes[i].Path].Execs
	}
	slices.SortFunc(changes, func(a, b sandbox.FileChange) int { return cmp.Compare(a.Path, b.Path) })
	return changes
}

// OwnShare leaves of records what an exec has, or may have, a share in.
func OwnShare(records []sandbox.ChangeRecord, exec sandbox.ID) []sandbox.ChangeRecord {
	out := slices.Clone(records)
	for i, r := range out {
		if r.Exec != exec {
			out[i].Changes = slices.DeleteFunc(slices.Clone(r.Changes), func(c sandbox.FileChange) bool { return !slices.Contains(c.Execs, exec) })
		}
	}
	return out
}
