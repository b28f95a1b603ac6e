package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Work that grows without a number in the text that says how far.

// manyDoublings is how often something is doubled before there is no room for it.
const manyDoublings = 32

// doubled notices a text or a list that a loop puts together with itself, or
// multiplies.
func (it *interp) doubled(sign string, old, v *val, left, right *node) {
	if old.kind != kList && !old.isText() || it.shape.turns < manyDoublings && len(it.shape.endless) == 0 {
		return
	}
	times, number := v.int()
	if sign == "*" && number && times > 1 || sign == "+" && it.t.text(left) == it.t.text(right) {
		it.structure(facts.StructHugeAlloc, "something is doubled at every turn of a loop", left)
	}
}

// unending are iterators that never end.
func unending(src string) bool {
	src = strings.TrimPrefix(strings.ReplaceAll(src, " ", ""), "itertools.")
	switch {
	case src == "cycle('')", src == `cycle("")`, src == "cycle([])", src == "cycle(())": // of nothing
		return false
	case strings.HasPrefix(src, "count("), strings.HasPrefix(src, "cycle("):
	case strings.HasPrefix(src, "repeat("):
		return strings.HasSuffix(src, ")") && !strings.Contains(src, ",")
	case strings.HasPrefix(src, "iter(int,"), strings.HasPrefix(src, "iter(str,"), strings.HasPrefix(src, "iter(list,"), strings.HasPrefix(src, "iter(dict,"):
		return !strings.HasSuffix(src, ",0)") && !strings.HasSuffix(src, ",'')") && !strings.HasSuffix(src, ",[])")
	default:
		return false
	}
	return strings.Count(src, "(") == strings.Count(src, ")") && strings.HasSuffix(src, ")")
}

// collectsForEver notes a list, a set or a dict of all that an iterator without
// an end gives; the result is called at its end.
func (it *interp) collectsForEver(n *node, clauses []*node) func() {
	if n.kind == "generator_expression" || !slices.ContainsFunc(clauses, func(c *node) bool {
		right := c.child("right")
		return right != nil && unending(it.t.text(right))
	}) {
		return func() {}
	}
	it.structure(facts.StructInfiniteLoop, "memory is taken", n)
	it.shape.endless = append(it.shape.endless, n)
	return func() { it.shape.endless = it.shape.endless[:len(it.shape.endless)-1] }
}

// consumers take all that an iterator gives before they give anything.
var consumers = set(`list tuple set frozenset sorted sum max min dict collections.deque collections.Counter bytes bytearray`)

// consumes notices a call that waits for the end of what has none.
func (c *invocation) consumes() {
	if !consumers[c.name] && lastPart(c.name) != "join" {
		return
	}
	args := c.n.child("arguments")
	if args == nil || args.size > 64 {
		return
	}
	first := args.nth(0)
	if args.kind == "generator_expression" {
		first = args
	}
	if first == nil {
		return
	}
	src := c.it.t.text(first)
	if first.kind == "generator_expression" {
		clause := first.nth(1)
		if clause == nil || first.nth(2) != nil || clause.child("right") == nil {
			return
		}
		src = c.it.t.text(clause.child("right"))
	}
	if unending(src) && c.kw["maxlen"] == nil {
		c.it.structure(facts.StructHugeAlloc, "all of what has no end is asked for by "+c.name, c.n)
	}
}

// constantCondition reports a comparison of two numbers or texts that is true.
func (it *interp) constantCondition(c *node) bool {
	left, right := c.nth(0), c.nth(1)
	if left == nil || right == nil || c.nth(2) != nil || left.kind != "integer" && left.kind != "string" || right.kind != left.kind {
		return false
	}
	same := it.t.text(left) == it.t.text(right)
	for op := c.first; op != nil; op = op.next {
		switch {
		case op.named:
		case op.kind == "==" || op.kind == "is" || op.kind == ">=" || op.kind == "<=":
			return same
		case op.kind == "!=":
			return !same
		}
	}
	return false
}
