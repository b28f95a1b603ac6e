package python

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// stuck reports a loop that nothing in its body can end: what its condition
// compares never changes, or moves away from the bound; or it goes round more
// often than anybody waits for.
func (it *interp) stuck(n *node) bool {
	body := n.child("body")
	if body == nil || breaks(body) {
		return false
	}
	if n.kind != "while_statement" {
		return it.longRange(n.child("right"))
	}
	cond := n.child("condition")
	for cond != nil && cond.kind == "parenthesized_expression" {
		cond = cond.nth(0)
	}
	if cond == nil || cond.kind != "comparison_operator" || cond.nth(2) != nil {
		return false
	}
	left, right, op := cond.nth(0), cond.nth(1), ""
	for c := cond.first; c != nil; c = c.next {
		if !c.named {
			op = c.kind
		}
	}
	if left == nil || right == nil || left.kind != "identifier" || right.kind != "integer" || strings.IndexByte("<>!", (op + " ")[0]) < 0 {
		return false
	}
	up, down, other := it.moves(body, it.t.text(left))
	switch {
	case other:
		return false
	case !up && !down:
		return true
	case up && !down:
		return op == ">" || op == ">="
	case down && !up:
		return op == "<" || op == "<="
	}
	return false
}

// longRange is a range of more rounds than anybody waits for.
func (it *interp) longRange(right *node) bool {
	if right == nil || right.kind != "call" || it.t.text(right.child("function")) != "range" {
		return false
	}
	args := right.child("arguments")
	if args == nil || args.size > 16 {
		return false
	}
	var last *val
	plain := true
	args.each(func(c *node) {
		if c.kind != "integer" && c.kind != "binary_operator" {
			plain = false
			return
		}
		last = it.eval(c, it.module)
	})
	if !plain || last == nil {
		return false
	}
	count, ok := last.int()
	return ok && count >= hugeRounds
}

// moves says how a body changes a name: by adding or subtracting a number, or
// in another way.
func (it *interp) moves(n *node, name string) (up, down, other bool) {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "augmented_assignment":
			l, r, op := c.child("left"), c.child("right"), c.child("operator")
			if l != nil && it.t.text(l) == name {
				switch {
				case op == nil || r == nil || r.kind != "integer":
					other = true
				case op.kind == "+=":
					up = true
				case op.kind == "-=":
					down = true
				default:
					other = true
				}
				continue
			}
		case "global_statement", "nonlocal_statement", "function_definition", "lambda", "delete_statement":
			other = true
		case "assignment", "for_statement", "named_expression", "with_statement", "import_statement", "import_from_statement":
			other = other || it.binds(c, name)
		}
		if c.size > 1 {
			u, d, o := it.moves(c, name)
			up, down, other = up || u, down || d, other || o
		}
	}
	return up, down, other
}

// binds reports that the first part of an assignment or a loop names it.
func (it *interp) binds(n *node, name string) bool {
	for _, field := range []string{"left", "name"} {
		if l := n.child(field); l != nil && it.mentions(l, map[string]bool{name: true}) {
			return true
		}
	}
	return n.kind == "with_statement" || strings.HasPrefix(n.kind, "import")
}

// mentions reports that an expression uses one of some names.
func (it *interp) mentions(n *node, names map[string]bool) bool {
	if n == nil {
		return false
	}
	if n.kind == "identifier" && n.field != "attribute" && names[it.t.text(n)] {
		return true
	}
	for c := n.first; c != nil; c = c.next {
		if it.mentions(c, names) {
			return true
		}
	}
	return false
}

// recursions notices functions that call themselves, or each other, whatever
// they are given.
func (it *interp) recursions() {
	always := map[string][]string{}
	at := map[string]*node{}
	for _, f := range it.pending {
		for _, p := range f.params {
			if p.name == f.name {
				return
			}
		}
		if f.runs > 0 && !f.lambda && f.t == it.t && f.body != nil && at[f.name] == nil {
			at[f.name] = f.body
			always[f.name] = f.unconditional()
		}
	}
	for _, f := range it.pending {
		if at[f.name] == f.body && f.body != nil && leads(always, f.name, f.name, 0) {
			it.structure(facts.StructInfiniteLoop, "recursion", f.body)
			return
		}
	}
}

// leads reports that a function always calls another, by way of any number.
func leads(calls map[string][]string, from, to string, depth int) bool {
	if depth > 4 {
		return false
	}
	for _, c := range calls[from] {
		if c == to || c != from && leads(calls, c, to, depth+1) {
			return true
		}
	}
	return false
}

// unconditional are the functions that a body calls on every way through it.
func (f *function) unconditional() []string {
	var out []string
	for c := f.body.first; c != nil; c = c.next {
		switch c.kind {
		case "if_statement", "for_statement", "while_statement", "try_statement", "match_statement", "with_statement":
			if breaks(c) || yields(c) {
				return out
			}
		case "function_definition", "class_definition", "decorated_definition":
		case "expression_statement", "return_statement":
			if yields(c) {
				return nil
			}
			if strings.Contains(f.t.text(c), "globals()") { // which may name another from then on
				return out
			}
			out = f.callees(c, out)
			if c.kind == "return_statement" {
				return out
			}
		case "raise_statement", "assert_statement":
			return out
		}
	}
	return out
}

// callees are the names of functions that an expression always calls.
func (f *function) callees(n *node, out []string) []string {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "conditional_expression", "boolean_operator", "lambda", "list_comprehension", "generator_expression", "set_comprehension", "dictionary_comprehension", "await":
			continue
		case "call":
			if name := c.child("function"); name != nil && name.kind == "identifier" && f.cls == nil {
				if w := f.t.text(name); !builtins[w] && !f.rebinds(w) {
					out = append(out, w)
				}
			}
		}
		if c.size > 1 {
			out = f.callees(c, out)
		}
	}
	return out
}

// rebinds is the same of the function's own body, looked for once a name.
func (f *function) rebinds(name string) bool {
	is, ok := f.rebound[name]
	if !ok {
		if f.rebound == nil {
			f.rebound = map[string]bool{}
		}
		is = rebinds(f.t, f.body, name)
		f.rebound[name] = is
	}
	return is
}

// rebinds reports that a body gives the name another meaning.
func rebinds(t *tree, n *node, name string) bool {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "import_statement", "import_from_statement", "assignment", "for_statement", "function_definition", "with_statement":
			if strings.Contains(t.text(c), name) && c.kind != "function_definition" || c.kind == "function_definition" && t.text(c.child("name")) == name {
				return true
			}
		}
		if c.kind == "expression_statement" && names(t, c.first, name) || c.size > 1 && c.kind != "expression_statement" && rebinds(t, c, name) {
			return true
		}
	}
	return false
}

// names reports an assignment to a name, which is that of another function
// from then on.
func names(t *tree, n *node, name string) bool {
	if n == nil || n.kind != "assignment" || n.child("left") == nil || n.child("right") == nil {
		return false
	}
	return t.text(n.child("left")) == name && t.text(n.child("right")) != name
}

func yields(n *node) bool {
	for c := n.first; c != nil; c = c.next {
		if c.kind == "yield" || c.size > 1 && c.kind != "lambda" && yields(c) {
			return true
		}
	}
	return false
}
