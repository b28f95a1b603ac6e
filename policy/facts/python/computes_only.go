package python

import (
	"maps"
	"slices"
	"strings"
)

// What Python runs by itself (operators, names, the making of a class) starts
// nothing where all that it calls only computes: functions that every program
// has, methods that do the same of whatever has them, and functions and classes
// of the program of which that is true as well.

// calmer looks through functions, each of them once.
type calmer struct {
	it   *interp
	seen map[*node]bool
}

// reacts reports that objects of c have methods that are run by other than
// calls: by operators, statements, names, or the end of an object; and that do
// more than to compute.
func (it *interp) reacts(c *class) bool {
	return it.waits() && !it.calm(func(m *calmer) bool { return m.quiet(c, 0) })
}

// lively reports something that may do more than to compute, if it is called.
func (it *interp) lively(v *val) bool {
	return it.waits() && !it.calm(func(m *calmer) bool { return m.only(v) })
}

// calm asks, and keeps what was found to be so: names that are bound once mean
// the same later.
func (it *interp) calm(ask func(*calmer) bool) bool {
	m := &calmer{it: it, seen: map[*node]bool{}}
	if !ask(m) {
		return false
	}
	if it.calmed == nil {
		it.calmed = map[*node]bool{}
	}
	maps.Copy(it.calmed, m.seen)
	return true
}

// waits: nothing was started so far.
func (it *interp) waits() bool { return it.opening && !it.starts && it.quiet == 0 }

func (m *calmer) quiet(c *class, depth int) bool {
	if depth > 8 {
		return false
	}
	for name, v := range c.scope.vars {
		if v != nil && (special(name) && !quietMethods[name] || v.kind == kFunc && v.x.fn.prop) && !m.only(v) {
			return false
		}
	}
	return !slices.ContainsFunc(c.bases, func(b *val) bool { return b.kind == kClass && !m.quiet(b.x.cls, depth+1) })
}

// only reports that v only computes, if it is called.
func (m *calmer) only(v *val) bool {
	switch v.kind {
	case kFunc:
		return m.function(v.x.fn)
	case kRef: // of Python's own, such as types.GenericAlias
		root, _, _ := strings.Cut(v.text, ".")
		return quietModules[root] && !m.it.runs(v.text)
	default: // an object that can be called, or none
	}
	return v.isConst()
}

func (m *calmer) function(f *function) bool {
	switch {
	case f.body == nil || f.t != m.it.t || m.it.shaken || len(m.it.patched) > 0:
		return false
	case m.seen[f.body] || m.it.calmed[f.body]:
		return true
	}
	m.seen[f.body] = true
	own := &tamer{it: m.it, t: f.t, bound: map[string]bool{}}
	own.binds(f.body)
	for _, p := range f.params {
		own.bound[p.name] = true
	}
	return m.body(f.body, f, own.bound)
}

func (m *calmer) body(n *node, f *function, own map[string]bool) bool {
	if !m.it.step() {
		return false
	}
	switch n.kind {
	case "exec_statement", "decorator":
		return false
	case "identifier":
		return n.field == "attribute" || !m.hands(identifier(m.it.t.text(n)), f, own)
	case "call":
		callee := n.child("function")
		if !m.call(callee, f, own) {
			return false
		}
		if callee.kind == "identifier" {
			name := m.it.t.text(callee)
			return name == "isinstance" || name == "issubclass" || m.body(n.child("arguments"), f, own)
		}
	}
	for c := n.first; c != nil; c = c.next {
		if !m.body(c, f, own) {
			return false
		}
	}
	return true
}

// hands reports a name for a function or class of the program, which whoever
// gets it may call.
func (m *calmer) hands(name string, f *function, own map[string]bool) bool {
	if _, bound := own[name]; bound {
		return false
	}
	v, ok := m.it.find(f.scope, name)
	return ok && callable(v) || !ok && m.it.definitions(name) > 0
}

// call reports that what is called is none of what a function is given or
// makes, and only computes.
func (m *calmer) call(callee *node, f *function, own map[string]bool) bool {
	if callee == nil {
		return false
	}
	if callee.kind == "attribute" {
		name := identifier(m.it.t.text(callee.child("attribute")))
		return calmMethods[name] && m.it.definitions(name) == 0 && !m.it.mayHave(name)
	}
	name := identifier(m.it.t.text(callee))
	if _, bound := own[name]; callee.kind != "identifier" || bound || m.it.looksAround() {
		return false
	}
	if v, ok := m.it.find(f.scope, name); ok {
		return m.it.definitions(name) == 1 && (v.kind == kFunc && m.function(v.x.fn) || v.kind == kClass && m.class(v.x.cls))
	}
	return m.it.definitions(name) == 0 && (calmBuiltins[name] || name == "hasattr" || name == "type" || builtins[name] && raised(name))
}

// class reports that making an object of a class of the program only computes.
func (m *calmer) class(c *class) bool {
	if c.outsider(0) || c.meta != nil || !m.quiet(c, 0) {
		return false
	}
	for _, name := range []string{"__new__", "__init__", "__post_init__"} {
		if v := c.member(name, 0); v != nil && !m.only(v) {
			return false
		}
	}
	return true
}

// raised: the name of an exception.
func raised(name string) bool {
	return strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception") || strings.HasSuffix(name, "Warning") || name == "StopIteration"
}

// looksAround reports that names of the module, or of every program, may get
// another meaning by other ways than to be bound.
func (it *interp) looksAround() bool {
	if it.looked == nil {
		found := slices.ContainsFunc([]string{"globals()", "vars()", "locals()", "__main__", "modules[__name__]", "(builtins", "builtins.", "__builtins__"}, func(w string) bool {
			return strings.Contains(it.t.src, w)
		})
		it.looked = &found
	}
	return it.shaken || *it.looked
}

// definitions is how many functions, classes, imports and assignments of the
// text bind a name.
func (it *interp) definitions(name string) int {
	if it.defs == nil {
		it.defs = map[string]int{}
		it.gatherNames(it.t.root)
	}
	return it.defs[name]
}

func (it *interp) gatherNames(n *node) {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "function_definition", "class_definition":
			it.defs[identifier(it.t.text(c.child("name")))]++
		case "assignment", "augmented_assignment", "named_expression", "for_statement", "for_in_clause", "as_pattern_target", "with_item":
			if left := c.child("left"); left != nil && left.kind == "identifier" && c.kind == "assignment" {
				it.defs[identifier(it.t.text(left))]++ // as most are
				break
			}
			bound := &tamer{it: it, t: it.t, bound: map[string]bool{}}
			bound.names(c.child("left"))
			bound.names(c.child("name"))
			if c.kind == "as_pattern_target" {
				bound.names(c)
			}
			for name := range bound.bound {
				it.defs[name]++
			}
		case "import_from_statement", "import_statement":
			c.each(func(k *node) {
				if alias := k.child("alias"); alias != nil {
					k = alias
				}
				it.defs[identifier(it.t.text(k))]++
			})
		}
		if c.size > 1 {
			it.gatherNames(c)
		}
	}
}
