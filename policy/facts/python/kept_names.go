package python

import (
	"slices"
	"strings"
)

// keepsNames reports that what an exec defines stays where it is followed: the
// dictionary that gets it holds nothing else that could take it away, and the
// program has that dictionary for no more than other such calls, and to get one
// thing after the other out of it by a name that stands in the text.
func (c *invocation) keepsNames(t *tree, names *val) bool {
	if c.name != "exec" || c.n.kind != "call" || names == nil || c.it.at != nil || !c.it.mayLook() || !t.carriesNothing(t.root) {
		return false
	}
	for _, key := range names.x.order {
		v := names.x.dict[key]
		made := v.kind == kFunc && v.x.fn.t != c.it.t || v.kind == kClass && !slices.Contains(c.it.classes, v.x.cls)
		if !v.isConst() && !made && !strings.HasSuffix(key, ":__builtins__") {
			return false
		}
	}
	args, i, kept := c.n.child("arguments"), 0, true
	if args == nil {
		return false
	}
	args.each(func(a *node) {
		if i++; i > 1 {
			kept = kept && (a.kind == "dictionary" || a.kind == "identifier" && c.it.onlyIndexed(c.it.t.root, c.it.t.text(a)))
		}
	})
	return kept && i > 1
}

// carriesNothing reports that no statement of a text hands on by an exception
// what is more than a message.
func (t *tree) carriesNothing(n *node) bool {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "raise_statement":
			if v := c.nth(0); v != nil && v.kind == "call" && !onlyTexts(v.child("arguments")) {
				return false
			}
		case "assert_statement":
			if v := c.nth(1); v != nil && v.kind != "string" {
				return false
			}
		}
		if c.size > 1 && !t.carriesNothing(c) {
			return false
		}
	}
	return true
}

func onlyTexts(args *node) bool {
	only := args != nil
	if only {
		args.each(func(a *node) { only = only && a.kind == "string" })
	}
	return only
}

// reaches are words by which a program gets at its variables by other ways than
// their names.
var reaches = []string{"globals", "locals", "vars", "__dict__", "__main__", "_getframe", "f_back", "inspect"}

// onlyIndexed reports that a variable is set to a new dictionary, handed to exec
// and asked for what it holds by names that stand there, and nothing else.
func (it *interp) onlyIndexed(n *node, name string) bool {
	if n == it.t.root && slices.ContainsFunc(reaches, func(w string) bool { return strings.Contains(it.t.src, w) }) {
		return false
	}
	for c := n.first; c != nil; c = c.next {
		if !it.indexes(c, name) {
			return false
		}
	}
	return true
}

// indexes is onlyIndexed for one node.
func (it *interp) indexes(c *node, name string) bool {
	is := func(n *node) bool { return n != nil && n.kind == "identifier" && it.t.text(n) == name }
	switch c.kind {
	case "identifier":
		return c.field == "attribute" || !is(c)
	case "assignment":
		if right := c.child("right"); is(c.child("left")) && right != nil && (right.kind == "dictionary" || it.t.text(right) == "dict()") {
			return c.child("type") == nil && it.onlyIndexed(right, name)
		}
	case "subscript":
		if key := c.child("subscript"); is(c.child("value")) {
			return key != nil && key.kind == "string" && c.nth(2) == nil
		}
	case "call":
		if f := c.child("function"); f != nil && f.kind == "identifier" && it.t.text(f) == "exec" {
			kept := true
			c.child("arguments").each(func(a *node) { kept = kept && (is(a) || it.indexes(a, name)) })
			return kept
		}
	}
	return c.size == 1 || it.onlyIndexed(c, name)
}
