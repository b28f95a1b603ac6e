package javascript

import (
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// maxSites is how many places of a function that start processes are kept.
const maxSites = 8

// start is a place of a function where that starts a process: 0 where it is in
// no text of its own.
type start struct {
	at     id
	waited bool // its turn goes on when that process is over, and not before
}

// spawn notes where the functions that are running start a process. One that
// everything waits for is never beside another.
func (w *walk) spawn(s *site) {
	if strings.HasSuffix(s.name, "Sync") {
		return
	}
	for i, fn := range w.stack {
		at := start{w.within(i, s.n), promises[s.name] && w.waited(i, s.n)}
		if sites := w.spawns[fn.key()]; len(sites) < maxSites {
			w.spawns[fn.key()] = append(sites, at)
		} else {
			sites[0] = start{}
		}
	}
}

// promises are calls that give a promise of the end of what they start.
var promises = map[string]bool{"execa": true, "execa.execa": true, "execa.$": true, "execa.execaCommand": true, "execa.command": true, "tinyexec.x": true, "zx.$": true, "Bun.$": true}

// waited reports that the i-th running function, and all that it called on the
// way to n, wait for what they call.
func (w *walk) waited(i int, n id) bool {
	for ; i < len(w.stack); i++ {
		f := w.stack[i]
		at := w.within(i, n)
		if at == 0 {
			return false
		}
		around := f.body
		for c := around; c != 0; c = f.tree.part(c, at) {
			around = c
		}
		if f.tree.kind(around) != kAwait {
			return false
		}
	}
	return true
}

// within is the place in the i-th running function from which that runs what
// it called, of which n is the last; 0 where that is not in its own text.
func (w *walk) within(i int, n id) id {
	t := w.t
	if i+1 < len(w.stack) {
		n, t = w.stack[i+1].called, w.stack[i+1].caller
	}
	if t != w.stack[i].tree {
		return 0
	}
	return n
}

// recursion looks at a function that calls itself: one that starts processes on the way is a bomb.
func (w *walk) recursion(fn *function, n id) {
	if sites := w.spawns[fn.key()]; !w.idle && len(sites) > 0 && w.bomb(fn, n, sites) {
		w.structure(facts.StructForkBomb, "a function that starts processes calls itself", n)
	}
}

// bomb reports that one turn of a function may start processes and call itself
// too. A function that calls itself for each part of what it is given, and
// leaves, starts nothing in that turn: it ends with the parts.
func (w *walk) bomb(fn *function, n id, sites []start) bool {
	at, waited := id(0), false
	for i, f := range w.stack {
		if f == fn {
			at, waited = w.within(i, n), w.waited(i, n)
		}
	}
	if waited {
		if sites = slices.DeleteFunc(slices.Clone(sites), func(s start) bool { return s.waited }); len(sites) == 0 {
			return false
		}
	}
	branch := fn.leaving(at)
	if branch == 0 {
		return true
	}
	end := fn.tree.nodes[branch].end
	for _, s := range sites {
		if s.at == 0 || fn.tree.nodes[s.at].start < end {
			return true
		}
	}
	return false
}

// leaving is the branch around n that is taken for what the function is given
// and ends it, 0 where there is none.
func (f *function) leaving(n id) id {
	t, branch := f.tree, id(0)
	given := f.derived()
	for at := f.body; at != 0 && n != 0; {
		c := t.part(at, n)
		switch t.kind(at) {
		case kIf:
			if branch == 0 && t.nodes[c].field == fConsequence && t.leaves(c) && t.mentions(t.child(at, fCondition), given) {
				branch = c
			}
		case kTry, kFor, kWhile, kDo:
			return 0
		default: // runs its parts in order
		}
		at = c
	}
	return branch
}

// derived are the names of what a function is given, and of what it takes from that.
func (f *function) derived() map[string]bool {
	t := f.tree
	given := t.names(f.params)
	for n := f.body; n != 0 && int(n) < len(t.nodes) && t.nodes[n].start < t.nodes[f.body].end; n++ {
		if t.kind(n) == kDeclarator && t.mentions(t.child(n, fValue), given) {
			maps.Copy(given, t.names(t.child(n, fName)))
		}
	}
	return given
}

// part is the child of n in which m stands.
func (t *tree) part(n, m id) id {
	for c := t.nodes[n].first; c != 0; c = t.nodes[c].next {
		if c != m && t.nodes[c].start <= t.nodes[m].start && t.nodes[m].end <= t.nodes[c].end {
			return c
		}
	}
	return 0
}

// leaves reports a statement whose end is that of the function.
func (t *tree) leaves(n id) bool {
	last := n
	if t.kind(n) == kBlock {
		t.each(n, func(c id) { last = c })
	}
	return t.kind(last) == kReturn || t.kind(last) == kThrow
}

// names are the names that stand in n.
func (t *tree) names(n id) map[string]bool {
	names := map[string]bool{}
	if n == 0 {
		return names
	}
	for i := n; int(i) < len(t.nodes) && t.nodes[i].start < t.nodes[n].end; i++ {
		if k := t.kind(i); k == kIdentifier || k == kShorthandPattern {
			names[t.text(i)] = true
		}
	}
	return names
}

// mentions reports that one of the names stands in n.
func (t *tree) mentions(n id, names map[string]bool) bool {
	for name := range t.names(n) {
		if names[name] {
			return true
		}
	}
	return false
}
