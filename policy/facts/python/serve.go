package python

import "strings"

// serves reports that a call stands behind one that waits for somebody to
// connect, in the innermost loop without an end: it is made as often as others
// ask for it.
func (it *interp) serves(n *node) bool {
	if len(it.shape.endless) == 0 || it.at != nil || n == nil {
		return false
	}
	body := it.shape.endless[len(it.shape.endless)-1].child("body")
	if body == nil {
		return false
	}
	_, accepts := it.passed["accept"]
	_, joins := it.passed["join"]
	if !accepts && (body.start > n.start || body.end < n.end) && it.acceptsEachTurn(body) {
		return true // in a function that the loop calls
	}
	return !accepts && it.behindAccept(body, n, false) || !joins && it.joined(body, n)
}

// joined reports that what is started is waited for, before the next is.
func (it *interp) joined(block, n *node) bool {
	for c := block.first; c != nil; c = c.next {
		if c.start > n.start || c.end < n.end {
			continue
		}
		if c.kind != "expression_statement" {
			return it.joined(c, n)
		}
		started := n.child("function")
		if started == nil || started.kind != "attribute" {
			return false
		}
		for next := c.next; next != nil && (next.kind == "expression_statement" || next.kind == "comment"); next = next.next {
			if it.t.text(next) == it.t.text(started.child("object"))+".join()" {
				return true
			}
		}
	}
	return false
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
		case c.kind == "try_statement":
			waited = waited || it.acceptsOrLeaves(c)
		}
	}
	return false
}

// acceptsOrLeaves: a wait of which the failure begins the loop anew, or ends it.
func (it *interp) acceptsOrLeaves(n *node) bool {
	waits := false
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "block":
			for s := c.first; s != nil; s = s.next {
				waits = waits || s.kind == "expression_statement" && it.accepts(s)
			}
		case "except_clause":
			var last *node
			for b := c.first; b != nil; b = b.next {
				if b.kind == "block" {
					b.each(func(s *node) { last = s })
				}
			}
			if last == nil || last.kind != "continue_statement" && last.kind != "raise_statement" && last.kind != "return_statement" {
				return false
			}
		}
	}
	return waits
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
		return it.listens(f.child("object"))
	}
	for c := n.first; c != nil; c = c.next {
		if it.accepts(c) {
			return true
		}
	}
	return false
}

// listens: an object of the module is a socket, or one of which nothing is known.
func (it *interp) listens(object *node) bool {
	v := it.module.vars[it.t.text(object)]
	return v == nil || v.kind == kObj && (strings.Contains(v.text, "socket") || strings.Contains(strings.ToLower(v.text), "listen")) || v.kind == kUnknown && handedIn(v.from)
}

// acceptsEachTurn is the same of a server, which may also give up a turn when
// nobody came.
func (it *interp) acceptsEachTurn(body *node) bool {
	for c := body.first; c != nil; c = c.next {
		if c.kind == "expression_statement" && it.accepts(c) || c.kind == "try_statement" && it.acceptsOrLeaves(c) {
			return true
		}
		if contains(c, "continue_statement") {
			return false
		}
	}
	return false
}

func contains(n *node, kind string) bool {
	if n.kind == kind {
		return true
	}
	for c := n.first; c != nil; c = c.next {
		if contains(c, kind) {
			return true
		}
	}
	return false
}
