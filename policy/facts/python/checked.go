package python

import (
	"slices"
	"strings"
)

// looksAtClass reports a look-up, by n, whose result is only asked what class it
// is of, or used no further than where it is a class of exceptions: calling one
// does nothing.
func (it *interp) looksAtClass(n *node, s *scope) bool {
	if n == nil || s == nil || s.fn == nil || s.fn.lambda || s.fn.t != it.t || it.at != nil {
		return false
	}
	way := wayTo(s.fn.body, n)
	if len(way) < 4 {
		return false
	}
	if it.comparesType(way, s) {
		return true
	}
	if !it.mayLook() {
		return false
	}
	set, line := way[len(way)-2], way[len(way)-3]
	left := set.child("left")
	if set.kind != "assignment" || set.child("right") != n || left == nil || left.kind != "identifier" || line.kind != "expression_statement" || it.seesLocals(s.fn) {
		return false
	}
	block, guard := follows(way[:len(way)-2])
	if guard == nil || guard.kind != "if_statement" {
		return false
	}
	name := it.t.text(left)
	asked, passed := it.asksClass(unwrapped(guard.child("condition")), name, s)
	within := guard.child("consequence")
	if !asked || within == nil {
		return false
	}
	if !passed {
		if guard.child("alternative") != nil || it.t.mentions(within, name) || !leaves(within) {
			return false
		}
		within = &node{start: guard.end, end: block.end}
	}
	return it.usedWithin(s.fn.body, name, []*node{left, guard.child("condition"), within}, false)
}

// wayTo are the nodes from one to another that is in it.
func wayTo(from, to *node) []*node {
	way := []*node{from}
	for n := from; n != to; way = append(way, n) {
		c := n.first
		for c != nil && (c.end < to.end || c.start > to.start) {
			c = c.next
		}
		if n = c; n == nil {
			return nil
		}
	}
	return way
}

// follows is the statement behind the last of a way, and the block that it is
// in. Behind the only one of a try it is what comes after that.
func follows(way []*node) (block, next *node) {
	for i := len(way) - 1; i > 0; i -= 2 {
		block = way[i-1]
		if block.kind != "block" {
			return nil, nil
		}
		for next = way[i].next; next != nil && next.kind == "comment"; {
			next = next.next
		}
		if next != nil || i < 3 || way[i-2].kind != "try_statement" || block.field != "body" || block.nth(1) != nil {
			break
		}
	}
	return block, next
}

// comparesType: type(getattr(m, name)) == …
func (it *interp) comparesType(way []*node, s *scope) bool {
	args, call, around := way[len(way)-2], way[len(way)-3], way[len(way)-4]
	return args.kind == "argument_list" && args.nth(1) == nil && call.kind == "call" && around.kind == "comparison_operator" &&
		it.t.text(call.child("function")) == "type" && it.everyones("type", s)
}

// everyones reports that a name means what every program has under it.
func (it *interp) everyones(name string, s *scope) bool {
	v := it.name(name, s)
	return (v == unknown || v.kind == kRef && v.text == name) && it.patched[name] == nil && len(it.star) == 0 && !it.shaken
}

// asksClass: a condition asks whether a variable is a class of exceptions, and
// with passed holds only if that is so; otherwise, only if it is not.
func (it *interp) asksClass(cond *node, name string, s *scope) (asked, passed bool) {
	switch {
	case cond == nil:
	case cond.kind == "not_operator":
		asked, passed = it.asksClass(unwrapped(cond.child("argument")), name, s)
		return asked && passed && unwrapped(cond.child("argument")).kind == "call", false
	case cond.kind == "boolean_operator" && it.t.text(cond.child("operator")) == "and":
		for _, side := range []string{"left", "right"} {
			n := unwrapped(cond.child(side))
			is, yes := it.asksClass(n, name, s)
			if is && !yes || !is && it.t.mentions(n, name) && !it.asksType(n, name, s) {
				return false, false
			}
			asked = asked || is
		}
		return asked, true
	case it.asks("issubclass", cond, name, s):
		class := cond.child("arguments").nth(1)
		return class.kind == "identifier" && exceptional(it.t.text(class)) && it.everyones(it.t.text(class), s), true
	}
	return false, false
}

// asks: a call of a function that every program has, of a variable and a name.
func (it *interp) asks(function string, n *node, name string, s *scope) bool {
	if n.kind != "call" || it.t.text(n.child("function")) != function || !it.everyones(function, s) {
		return false
	}
	args := n.child("arguments")
	if args == nil {
		return false
	}
	v, class := args.nth(0), args.nth(1)
	return v != nil && v.kind == "identifier" && it.t.text(v) == name && class != nil && class.kind == "identifier" && args.nth(2) == nil
}

// asksType: isinstance(name, type). Another class could be told what it is asked
// about.
func (it *interp) asksType(n *node, name string, s *scope) bool {
	return it.asks("isinstance", n, name, s) && it.t.text(n.child("arguments").nth(1)) == "type" && it.everyones("type", s)
}

func exceptional(name string) bool {
	return name == "BaseException" || name == "Exception" || name == "Warning" || strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Warning")
}

func unwrapped(n *node) *node {
	for n != nil && n.kind == "parenthesized_expression" {
		n = n.nth(0)
	}
	return n
}

// leaves reports that what follows a block is not reached through it.
func leaves(block *node) bool {
	var last *node
	block.each(func(c *node) { last = c })
	return last != nil && slices.Contains([]string{"raise_statement", "return_statement", "continue_statement", "break_statement"}, last.kind)
}

func (t *tree) mentions(n *node, name string) bool {
	if n == nil || n.kind == "identifier" {
		return n != nil && identifier(t.text(n)) == name
	}
	for c := n.first; c != nil; c = c.next {
		if t.mentions(c, name) {
			return true
		}
	}
	return false
}

// usedWithin reports that a variable is used in these places alone, and nowhere
// by a function that may be called when it holds something else.
func (it *interp) usedWithin(n *node, name string, places []*node, later bool) bool {
	if n.kind == "identifier" {
		return identifier(it.t.text(n)) != name ||
			!later && slices.ContainsFunc(places, func(p *node) bool { return p.start <= n.start && n.end <= p.end })
	}
	switch n.kind {
	case "lambda", "function_definition", "class_definition", "generator_expression", "global_statement", "nonlocal_statement":
		later = true
	}
	for c := n.first; c != nil; c = c.next {
		if !it.usedWithin(c, name, places, later) {
			return false
		}
	}
	return true
}

// seesLocals reports that variables of a function may be got at by other ways
// than their names.
func (it *interp) seesLocals(f *function) bool {
	body := it.t.text(f.body)
	return slices.ContainsFunc(ofFrames, func(w string) bool { return strings.Contains(it.t.src, w) }) ||
		slices.ContainsFunc([]string{"locals", "vars", "eval", "exec"}, func(w string) bool { return strings.Contains(body, w) })
}

// ofFrames are words of texts that look at the variables of functions that run.
var ofFrames = strings.Fields("f_locals tb_frame gi_frame cr_frame ag_frame settrace setprofile inspect")
