package python

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// oneOf is a name of which a condition says that it is one of some texts.
type oneOf struct {
	name string
	v    *val
}

// oneOfs reads off a condition what it says of names that nothing is known of:
// where it holds, or with not, where it does not.
func (it *interp) oneOfs(cond *node, not bool, s *scope) []oneOf {
	for cond != nil && cond.kind == "parenthesized_expression" {
		cond = cond.nth(0)
	}
	if cond == nil {
		return nil
	}
	switch cond.kind {
	case "boolean_operator":
		word := "and"
		if not {
			word = "or"
		}
		if op := cond.child("operator"); op == nil || op.kind != word {
			return nil
		}
		return append(it.oneOfs(cond.child("left"), not, s), it.oneOfs(cond.child("right"), not, s)...)
	case "not_operator":
		return it.oneOfs(cond.child("argument"), !not, s)
	case "comparison_operator":
		return it.memberOf(cond, not, s)
	}
	return nil
}

// memberOf is oneOfs of x in ("a", "b").
func (it *interp) memberOf(cond *node, not bool, s *scope) []oneOf {
	left, right, op := cond.nth(0), cond.nth(1), ""
	for c := cond.first; c != nil; c = c.next {
		if !c.named {
			op += c.kind
		}
	}
	if left == nil || right == nil || cond.nth(2) != nil || left.kind != "identifier" || op != "in" && op != "not in" && op != "notin" || (op != "in") != not {
		return nil
	}
	name := identifier(it.t.text(left))
	if old := s.vars[name]; old == nil || !nothingKnown(old) {
		return nil
	}
	if s.fn == nil && strings.Contains(it.t.src, "global ") {
		return nil // a thread may set it behind the question
	}
	if !it.standsThere(right) {
		return nil
	}
	it.quiet++
	among := it.eval(right, s)
	it.quiet--
	if v := textsOf(among); v != nil {
		return []oneOf{{name, v.with(s.vars[name].from)}}
	}
	return nil
}

// standsThere: what is asked for is written there, or has a name that the text
// gives once, and then asks for no more than what is in it.
func (it *interp) standsThere(n *node) bool {
	switch n.kind {
	case "tuple", "list", "set", "dictionary":
		return true
	case "identifier":
		if !it.mayLook() {
			return false
		}
		given, asked := it.mentioned(it.t.root, it.t.text(n))
		return given == 1 && asked && !it.own && len(it.star) == 0
	}
	return false
}

// mentioned counts how often a name is assigned, and says whether it is else
// only what is looked in.
func (it *interp) mentioned(n *node, name string) (given int, asked bool) {
	asked = true
	for c := n.first; c != nil && asked; c = c.next {
		switch {
		case c.kind == "identifier" && c.field != "attribute" && it.t.text(c) == name:
			if n.kind == "assignment" && c.field == "left" {
				given++
			} else {
				asked = n.kind == "comparison_operator" && c != n.first
			}
		case c.size > 1:
			g, a := it.mentioned(c, name)
			given, asked = given+g, a
		}
	}
	return given, asked
}

// nothingKnown: a value that comes from outside, of which there is no text, or
// none but what it is where nothing comes.
func nothingKnown(v *val) bool {
	return v.kind == kUnknown && v.x == nil || v.kind == kObj && v.text == "input" || v.kind == kStr && v.open
}

// textsOf is one of the texts that a sequence or a dictionary holds, nil where
// it may hold something else.
func textsOf(among *val) *val {
	if among.open || len(among.from) > 0 || !among.isSeq() && among.kind != kDict {
		return nil
	}
	items := among.x.items
	if among.kind == kDict {
		items = nil
		for _, k := range among.x.order {
			items = append(items, keyValue(k))
		}
	}
	if len(items) == 0 || len(items) > facts.MaxAlts {
		return nil
	}
	var texts []string
	for _, item := range items {
		text, ok := item.oneText()
		if !ok || item.kind != kStr || len(item.from) > 0 {
			return nil
		}
		texts = append(texts, text)
	}
	return choice(kStr, texts, false, nil)
}

// holding gives names what a condition says of them.
func (it *interp) holding(all []oneOf, s *scope) {
	for _, o := range all {
		it.set(s, o.name, o.v)
	}
}

// leaves reports a block that ends the function around it, where nothing of that
// is run any more.
func (it *interp) leaves(block *node, s *scope) bool {
	if s.caught > 0 || s.fn == nil || s.fn.body == nil || !it.mayLook() || contains(s.fn.body, "function_definition") || contains(s.fn.body, "lambda") {
		return false // something may see the name all the same
	}
	var last *node
	block.each(func(c *node) { last = c })
	if last == nil {
		return false
	}
	switch last.kind {
	case "raise_statement", "return_statement":
		return true
	case "expression_statement":
		call := last.nth(0)
		return call != nil && call.kind == "call" && it.t.text(call.child("function")) == "sys.exit" && it.patched["sys.exit"] == nil && it.meansModule("sys", s)
	}
	return false
}

// meansModule reports that a name stands for the module of that name where s is.
func (it *interp) meansModule(name string, s *scope) bool {
	v := s.vars[name]
	if v == nil {
		v = it.module.vars[name]
	}
	return v != nil && v.kind == kRef && v.text == name
}

// maxLooks is how often a whole body is gone through to find that a place in it
// does no harm; from then on, that is not found.
const maxLooks = 128

// mayLook reports that a body may be gone through once more.
func (it *interp) mayLook() bool {
	it.looks++
	return it.looks <= maxLooks
}
