package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Bounds of unrolling. What goes past them is walked once with values that are
// not known, which hides nothing.
const (
	maxUnroll   = 64
	maxUnrolled = 2000 // over all loops of a script
	maxItems    = 1024 // words of a for loop that are each looked at
)

// again counts one more iteration of a loop that is being unrolled.
func (w *walker) again(n, limit int) bool {
	w.unrolled++
	return n < limit && w.unrolled < maxUnrolled && !w.b.Full()
}

func (w *walker) forClause(c *syntax.ForClause) text {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		return w.forWords(c, loop)
	case *syntax.CStyleLoop:
		return w.forArith(c, loop)
	}
	return text{}
}

// fromElsewhere is the origin of what nothing in the script gives a value, as
// far as can be told: those do that load it.
const fromElsewhere = "elsewhere"

func (w *walker) forWords(c *syntax.ForClause, loop *syntax.WordIter) text {
	items := w.loopItems(loop)
	if len(items) == 0 { // nothing here fills the list
		st, out := w.branch(func() text {
			w.assign(loop.Name.Value, opaque(fromElsewhere))
			return w.stmts(c.Do)
		})
		w.st.join(w.st, st)
		w.enter(w.st)
		return out
	}
	if c.Select {
		items = []text{anyOf(items)}
	}
	w.repeat++
	defer func() { w.repeat-- }()
	var out text
	limit := maxUnroll
	if !numeric(items) {
		limit = maxItems
	}
	if len(items) > limit {
		if limit == maxItems {
			w.b.Limit("words of a loop", w.pos(c))
		}
		return w.widened(func() text {
			w.assign(loop.Name.Value, opaque())
			return w.stmts(c.Do)
		})
	}
	for i, item := range items {
		w.assign(loop.Name.Value, item)
		out = concat(out, w.stmts(c.Do))
		w.st.dead = false
		if !w.again(i, limit) && i+1 < len(items) {
			w.assign(loop.Name.Value, anyOf(items[i+1:]))
			return concat(out, w.widened(func() text { return w.stmts(c.Do) }))
		}
	}
	return out
}

func (w *walker) loopItems(loop *syntax.WordIter) []text {
	if !loop.InPos.IsValid() {
		return w.positionals()
	}
	ways := w.fields(loop.Items)
	var items []text
	for _, f := range longest(ways) {
		t := f.t
		if f.glob {
			t = w.globbed(t)
		}
		items = append(items, t)
	}
	for _, way := range ways {
		for i, f := range way {
			if i < len(items) {
				items[i] = union(items[i], f.t)
			}
		}
	}
	return items
}

func longest(ways []fields) fields {
	out := ways[0]
	for _, way := range ways[1:] {
		if len(way) > len(out) {
			out = way
		}
	}
	return out
}

// globbed is what a file name pattern expands to: names that nobody knows
// here, with the pattern's own beginning.
func (w *walker) globbed(t text) text {
	var out, from []string
	own := true
	for _, s := range t.all() {
		if i := strings.IndexAny(s, "*?["); i >= 0 {
			own = own && (w.filesHere(s) || w.ownFiles(s) && (w.ofProject(text{alts: []string{s[:i]}}) || strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "/tmp/")))
			from = append(from, facts.FromListed+":"+w.absolute(s))
			s = s[:i] + hole
		}
		out = with(out, s)
	}
	if !own {
		return text{out, t.from}
	}
	return text{out, t.from}.tainted(from...)
}

// filesHere reports that a pattern without a folder means files whose names end
// as no program's do.
func (w *walker) filesHere(pattern string) bool {
	if strings.Contains(pattern, "/") || w.tables.PathClass(w.st.cwd) != "workspace" {
		return false
	}
	ending := pattern[strings.LastIndexAny(pattern, "*?]")+1:]
	return len(ending) > 1 && ending[0] == '.' && syntax.ValidName(ending[1:]) && len(programsLike(w.tables, pattern)) == 0
}

func numeric(items []text) bool {
	for _, item := range items {
		s, ok := item.one()
		if !ok || digits(s, len(s), 10) < len(s) {
			return false
		}
	}
	return true
}

func (w *walker) forArith(c *syntax.ForClause, loop *syntax.CStyleLoop) text {
	w.arith(loop.Init)
	return w.iterate(c.Do, func() tri {
		if loop.Cond == nil {
			return unsure
		}
		n, ok := w.arith(loop.Cond)
		if !ok {
			return unsure
		}
		return sure(n != 0)
	}, func() { w.arith(loop.Post) })
}

func (w *walker) whileClause(c *syntax.WhileClause) text {
	endless := constantly(c.Cond, !c.Until)
	var cond text
	out := w.iterate(c.Do, func() tri {
		cond = concat(cond, w.stmts(c.Cond))
		if endless {
			return unsure
		}
		if c.Until {
			w.negate()
		}
		return w.status
	}, func() {})
	w.status = unsure
	return concat(cond, out)
}

// iterate unrolls a loop while its condition is certain, and widens it from
// where it is not.
func (w *walker) iterate(body []*syntax.Stmt, cond func() tri, post func()) text {
	w.repeat++
	defer func() { w.repeat-- }()
	var out text
	for n := 0; ; n++ {
		switch hold := cond(); {
		case hold == fails && n > 0:
			return out
		case hold == fails: // never entered, as far as this can tell
			st, _ := w.branch(func() text { return w.stmts(body) })
			_ = st
			return out
		case hold == succeeds && w.again(n, maxUnroll):
			out = concat(out, w.stmts(body))
			if w.st.dead {
				w.st.dead = false
				return out
			}
			post()
			continue
		}
		return concat(out, w.widened(func() text {
			t := w.stmts(body)
			post()
			cond()
			return t
		}))
	}
}

// widened walks the body of a loop that runs an unknown number of times: once
// as it is, once more with what it changed, and a third time with that unknown
// where the second round still gave new values.
func (w *walker) widened(body func() text) text {
	st, out := w.branch(body)
	changed := w.widen(st, true)
	st.dead = false
	w.st.join(w.st, st)
	w.enter(w.st)
	if !changed || w.unrolled >= maxUnrolled {
		return union(out, concat(out, opaque(out.from...)))
	}
	for range 2 {
		w.unrolled += 2
		again, more := w.branch(body)
		grew := w.widen(again, false)
		again.dead = false
		w.st.join(w.st, again)
		w.enter(w.st)
		out = concat(out, more)
		if !grew {
			break
		}
	}
	return concat(out, opaque())
}

// widen makes what a loop's body changed unknown, beside what it is after one
// round. In the first round, a plain text that it sets may be all that it will
// ever set.
func (w *walker) widen(st *state, first bool) bool {
	changed := false
	for name, v := range st.vars.own {
		old := w.st.vars.get(name)
		if v == nil || old == v || old != nil && among(v, old) {
			continue
		}
		changed = true
		m := *w.st.mergeVar(name, old, v)
		switch more, longer := lengthened(old, v); {
		case first && !m.isArray && !m.isTable && longer:
			m.val = union(m.scalar(), more)
		case !first || m.isArray || m.isTable || !settled(old, v):
			m.val = union(m.scalar(), opaque(m.scalar().from...))
		}
		if m.isArray {
			m.list = append(m.list[:len(m.list):len(m.list)], opaque(fromAll(m.list)...))
		}
		st.vars.own[name] = &m
	}
	return changed
}

// among reports that v has no value that old may not have.
func among(v, old *variable) bool {
	a, b := v.words(), old.words()
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		for _, s := range a[i].all() {
			if !slices.ContainsFunc(b[i].all(), func(o string) bool { return covers(o, s) }) {
				return false
			}
		}
	}
	return true
}

// covers reports that s is o, or begins as o does up to the hole that ends it.
func covers(o, s string) bool {
	head, open := strings.CutSuffix(o, hole)
	return o == s || open && strings.IndexByte(head, hole[0]) < 0 && strings.HasPrefix(s, head)
}

// lengthened reports that a variable was given more words behind those that it
// had, and what it is after many such rounds: the same words, and others.
func lengthened(old, v *variable) (text, bool) {
	if old == nil || old.isArray || old.isTable {
		return text{}, false
	}
	before, t := old.scalar(), v.scalar()
	var out []string
	for _, s := range t.all() {
		if slices.Contains(before.all(), s) {
			continue
		}
		i := slices.IndexFunc(before.all(), func(b string) bool {
			return known(b) && strings.TrimSpace(b) != "" && (strings.HasPrefix(s, b+" ") || strings.HasPrefix(s, b+"\n"))
		})
		if i < 0 {
			return text{}, false
		}
		out = with(out, s[:len(before.all()[i])+1]+hole)
	}
	return text{out, t.from}, len(out) > 0
}

// settled reports that a variable was set to a text that is neither a number,
// which counts, nor what it was before with more around it.
func settled(old, v *variable) bool {
	before := text{}
	if old != nil {
		before = old.scalar()
	}
	t := v.scalar()
	if !t.known() || len(t.alts) > facts.MaxAlts/2 || numeric([]text{t}) && !t.is("0") && !t.is("1") {
		return false
	}
	return !before.has(func(b string) bool {
		b = strings.ReplaceAll(b, unset, "")
		return b != "" && t.has(func(s string) bool { return len(s) > len(b) && strings.Contains(s, b) })
	})
}

// fromAll are the origins of all of a list.
func fromAll(list []text) []string {
	var from []string
	for _, t := range list {
		from = origins(from, t.from)
	}
	return from
}
