package python

// serves reports that a call stands behind one that waits for somebody to
// connect, in the innermost loop without an end: it is made as often as others
// ask for it.
func (it *interp) serves(n *node) bool {
	if _, own := it.passed["accept"]; own || len(it.shape.endless) == 0 || it.at != nil || n == nil {
		return false
	}
	body := it.shape.endless[len(it.shape.endless)-1].child("body")
	return body != nil && it.behindAccept(body, n, false)
}

// behindAccept: in a block, or in one that it holds, n comes after a wait. One
// that may fail and be left at that, in a statement of its own, is none.
func (it *interp) behindAccept(block, n *node, waited bool) bool {
	for c := block.first; c != nil; c = c.next {
		switch {
		case c.start == n.start && c.end == n.end:
			return waited
		case c.start <= n.start && c.end >= n.end:
			return it.behindAccept(c, n, waited)
		case c.kind == "expression_statement":
			waited = waited || it.accepts(c)
		}
	}
	return false
}

// perhaps are expressions of which a part may not be evaluated.
var perhaps = map[string]bool{
	"lambda": true, "conditional_expression": true, "boolean_operator": true, "list_comprehension": true, "generator_expression": true,
	"set_comprehension": true, "dictionary_comprehension": true,
}

// accepts looks for a call of accept that is made in any case.
func (it *interp) accepts(n *node) bool {
	if perhaps[n.kind] {
		return false
	}
	if f := n.child("function"); n.kind == "call" && f != nil && f.kind == "attribute" && it.t.text(f.child("attribute")) == "accept" {
		return true
	}
	for c := n.first; c != nil; c = c.next {
		if it.accepts(c) {
			return true
		}
	}
	return false
}
