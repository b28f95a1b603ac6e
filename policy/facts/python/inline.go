package python

import (
	"slices"
	"strings"
)

// evaluate is eval or exec of a text: the builder scans it, and it is followed
// here where it is known.
func (c *invocation) evaluate(code *val) (got, v *val) {
	t := c.it.inlinable(code)
	own := t != nil && c.ownNames()
	tame := own && len(code.origins(0)) == 0 && c.it.tame(t, c.s)
	m := c.it.b.Mark()
	c.it.b.Offers(own)
	got = c.it.report(c.name, c.arguments, nil, c.n)
	c.it.b.Offers(false)
	if t == nil {
		return got, nil
	}
	v = c.it.inline(t, c)
	if tame && c.it.quiet == 0 {
		c.it.b.Tame(m)
	}
	return got, v
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
