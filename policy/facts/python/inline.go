package python

import (
	"slices"
	"strings"
)

// evaluate is eval or exec of a text: the builder scans it, and it is followed
// here where it is known.
func (c *invocation) evaluate(code *val) (got, v *val) {
	if got := c.evaluateMarked(code); got != nil {
		return got, got
	}
	t := c.it.inlinable(code)
	own := t != nil && c.ownNames()
	tame := t != nil && len(code.origins(0)) == 0 && (own && c.it.tame(t, c.s) || !own && !c.open && c.it.tameApart(t, c.all()[1:]))
	m := c.it.b.Mark()
	c.it.b.Offers(own)
	got = c.it.report(c.name, c.arguments, nil, c.n)
	c.it.b.Offers(false)
	if t == nil {
		return got, nil
	}
	v = c.it.inline(t, c)
	switch {
	case c.it.quiet > 0:
	case tame && !c.it.b.Told(m) && (own || c.name == "eval" || c.opensNames()):
		c.it.b.Tame(m)
	case len(code.origins(0)) == 0 && c.it.imports(t) && (own || c.opensNames()):
		c.it.b.Imports(m)
	}
	return got, v
}

// opensNames: the text puts what it imports or defines into dictionaries of the
// program, which may hold any function from then on.
func (c *invocation) opensNames() bool {
	spaces := c.all()[1:]
	if c.open || slices.ContainsFunc(spaces, func(v *val) bool { return v.kind != kDict }) {
		return false
	}
	for _, v := range spaces {
		v.put(unknown, fromSomewhere)
	}
	return true
}

// imports reports that a text does nothing but import modules, none of which
// does anything that matters by itself.
func (it *interp) imports(t *tree) bool {
	for c := t.root.first; c != nil; c = c.next {
		switch c.kind {
		case "comment", "future_import_statement":
		case "import_statement", "import_from_statement":
			if !it.importsPlain(t, c) {
				return false
			}
		default:
			return false
		}
	}
	return t.root.first != nil
}

// ordinary reports that a module, or what a module has, is not known to do
// anything that matters.
func (it *interp) ordinary(name string) bool {
	root, _, _ := strings.Cut(name, ".")
	_, known := it.b.API(canonical(name))
	return !known && !it.dangerous(root) && !it.dangerous(name) && !stdPackages[root] && !builtins[root] && !it.b.Busy(root)
}

func (it *interp) importsPlain(t *tree, n *node) bool {
	for c := n.first; c != nil; c = c.next {
		if c.kind == "aliased_import" && !it.importsPlain(t, c) {
			return false
		}
		if c.kind != "dotted_name" || n.kind == "aliased_import" && c.field != "name" || n.kind == "import_from_statement" && c.field != "module_name" {
			continue
		}
		if len(t.text(c)) > 200 || !it.ordinary(t.text(c)) {
			return false
		}
	}
	return true
}

// ownNames: the text is run among the names of the program.
func (c *invocation) ownNames() bool {
	return !c.open && !slices.ContainsFunc(append(slices.Clone(c.pos[min(1, len(c.pos)):]), c.all()[len(c.pos):]...), func(v *val) bool {
		return v.kind != kSpace || v.x != nil || v.text != ""
	})
}

// inlinable is code that can be followed here, nil where that is not so.
func (it *interp) inlinable(code *val) *tree {
	if code.kind == kObj && code.text == "code" && len(code.x.recv) > 0 {
		code = fromFact(code.x.recv[0])
	}
	text, ok := code.oneText()
	if !ok || len(text) > 8192 || it.inlined >= 3 || strings.Count(text, "(")+strings.Count(text, "[") > 400 {
		return nil
	}
	t := it.g.parse(strings.TrimSpace(text))
	if t == nil || t.root == nil || t.errors > 0 {
		return nil
	}
	return t
}

// inline follows code that the program made, in the program's own names. What
// it does is reported only where it uses those names: the scan of the text by
// itself, which the builder starts, sees the rest.
func (it *interp) inline(t *tree, c *invocation) *val {
	quiet := !it.usesOwn(t, t.root, c.s)
	before, at := it.t, it.at
	if at == nil {
		it.at = c.n
	}
	it.t = t
	it.inlined++
	it.limit += 4 * t.nodes
	if quiet {
		it.quiet++
	}
	defer func() {
		it.t, it.at = before, at
		it.inlined--
		if quiet {
			it.quiet--
		}
	}()
	if c.name == "eval" {
		return it.evalOr(t.root.nth(0), c.s)
	}
	it.block(t.root, c.s)
	return none
}

// usesOwn reports whether code names something of the program that is not a
// plain constant or module.
func (it *interp) usesOwn(t *tree, n *node, s *scope) bool {
	if n.kind == "identifier" {
		v, ok := it.find(s, identifier(t.text(n)))
		if !ok || n.field == "attribute" {
			return false
		}
		if v.kind == kRef {
			name := t.text(n)
			return v.text != name
		}
		return !v.isConst() || v.kind == kStr || v.kind == kBytes
	}
	for c := n.first; c != nil; c = c.next {
		if it.usesOwn(t, c, s) {
			return true
		}
	}
	return false
}
