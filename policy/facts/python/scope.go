package python

import "slices"

// scope holds the names of a module, a class body or one call of a function.
type scope struct {
	vars    map[string]*val
	parent  *scope // the scope that the code stands in
	class   bool   // of a class body: nested functions do not see it
	globals map[string]bool
	outer   map[string]bool // nonlocal
	fn      *function       // whose call this is
	returns *val
	yields  []*val
	endless bool            // what it yields may be more than yields
	loops   int             // around the call
	caught  int             // blocks around the place that may go on after a failure, or run something at their end
	given   map[string]*val // what the call was given
}

func newScope(parent *scope) *scope { return &scope{vars: map[string]*val{}, parent: parent} }

// write is one assignment, kept so that a branch can be taken back.
type write struct {
	s    *scope
	name string
	old  *val
}

// set binds a name; the interpreter's journal remembers what it was.
func (it *interp) set(s *scope, name string, v *val) {
	switch {
	case s.globals[name]:
		s = it.module
	case s.outer[name]:
		for p := s.parent; p != nil && p != it.module; p = p.parent {
			if _, ok := p.vars[name]; ok {
				s = p
				break
			}
		}
	}
	if old := s.vars[name]; s.fn == nil && (old != nil && !same(old, v) && v.kind != kUnknown || it.missed[name]) {
		it.changed(name, v) // a function that was followed before may see this
		delete(it.missed, name)
	}
	if len(it.marks) > 0 {
		it.journal = append(it.journal, write{s, name, s.vars[name]})
	}
	s.vars[name] = v
}

// slot is where a name is bound.
type slot struct {
	s    *scope
	name string
}

// begin starts a branch.
func (it *interp) begin() { it.marks = append(it.marks, len(it.journal)) }

// end finishes a branch: it gives what the branch wrote and takes it back. The
// order is that of the writes.
func (it *interp) end() (order []slot, wrote map[slot]*val) {
	mark := it.marks[len(it.marks)-1]
	it.marks = it.marks[:len(it.marks)-1]
	if mark == len(it.journal) {
		return nil, nil
	}
	wrote = map[slot]*val{}
	for i := len(it.journal) - 1; i >= mark; i-- {
		w := it.journal[i]
		k := slot{w.s, w.name}
		if _, ok := wrote[k]; !ok {
			wrote[k] = w.s.vars[w.name]
			order = append(order, k)
		}
		if w.old == nil {
			delete(w.s.vars, w.name)
		} else {
			w.s.vars[w.name] = w.old
		}
	}
	it.journal = it.journal[:mark]
	return order, wrote
}

// fork runs each branch from the same state and joins what they leave. With
// skip, no branch may run at all.
func (it *interp) fork(skip bool, run ...func()) {
	var all []map[slot]*val
	var keys []slot
	for _, f := range run {
		it.begin()
		f()
		order, wrote := it.end()
		for _, k := range order {
			if !slices.ContainsFunc(all, func(w map[slot]*val) bool { _, ok := w[k]; return ok }) {
				keys = append(keys, k)
			}
		}
		all = append(all, wrote)
	}
	for _, k := range keys {
		base := k.s.vars[k.name]
		var v *val
		if skip {
			v = base
		}
		for _, wrote := range all {
			w, ok := wrote[k]
			if !ok {
				w = base
			}
			v = prefer(v, w)
		}
		it.set(k.s, k.name, v)
	}
}

// prefer is join, except that None beside something else that can be called is
// dropped: "json = None" after a failed import.
func prefer(a, b *val) *val {
	if a != nil && b != nil {
		if a.kind == kNone && b.kind >= kRef && b.kind <= kWrap {
			return b
		}
		if b.kind == kNone && a.kind >= kRef && a.kind <= kWrap {
			return a
		}
	}
	return join(a, b)
}

// find looks a name up from s outwards.
func (it *interp) find(s *scope, name string) (*val, bool) {
	for p := s; p != nil; p = p.parent {
		if p.class && p != s {
			continue
		}
		if p.globals[name] {
			p = it.module
		}
		if v, ok := p.vars[name]; ok && v != nil {
			return v, true
		}
	}
	return nil, false
}
