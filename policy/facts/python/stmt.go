package python

import (
	"strings"
)

// block follows the statements under n in order.
func (it *interp) block(n *node, s *scope) {
	if n == nil || !it.enter(n) {
		return
	}
	defer it.leave()
	for c := n.first; c != nil && !it.over; c = c.next {
		if c.named {
			it.statement(c, s)
		}
	}
}

type statementFunc func(it *interp, n *node, s *scope)

// newStatements says what each kind of statement does. What is not here is an
// expression.
func newStatements() map[string]statementFunc {
	return map[string]statementFunc{
		"comment": skip, "line_continuation": skip, "pass_statement": skip, "break_statement": skip, "continue_statement": skip,
		"expression_statement":    (*interp).expressionStatement,
		"import_statement":        (*interp).importStatement,
		"import_from_statement":   (*interp).importFrom,
		"future_import_statement": skip,
		"function_definition":     func(it *interp, n *node, s *scope) { it.define(n, s, nil) },
		"class_definition":        func(it *interp, n *node, s *scope) { it.defineClass(n, s, nil) },
		"decorated_definition":    (*interp).decorated,
		"if_statement":            (*interp).ifStatement,
		"while_statement":         (*interp).whileStatement,
		"for_statement":           (*interp).forStatement,
		"with_statement":          (*interp).withStatement,
		"try_statement":           (*interp).tryStatement,
		"match_statement":         (*interp).matchStatement,
		"return_statement":        (*interp).returnStatement,
		"delete_statement":        (*interp).deleteStatement,
		"raise_statement":         (*interp).raiseStatement,
		"global_statement":        (*interp).globalStatement,
		"nonlocal_statement":      (*interp).globalStatement,
		"exec_statement":          (*interp).execStatement,
		"block":                   (*interp).block,
		"module":                  (*interp).block,
		"ERROR":                   (*interp).block,
		"else_clause":             (*interp).block,
		"finally_clause":          (*interp).block,
		"type_alias_statement":    skip,
	}
}

func skip(*interp, *node, *scope) {}

func (it *interp) statement(n *node, s *scope) {
	if !it.step() {
		return
	}
	if f, ok := it.x.statements[n.kind]; ok {
		f(it, n, s)
		return
	}
	it.eval(n, s)
}

func (it *interp) globalStatement(n *node, s *scope) {
	n.each(func(c *node) {
		name := identifier(it.t.text(c))
		if n.kind == "global_statement" {
			if s.globals == nil {
				s.globals = map[string]bool{}
			}
			s.globals[name] = true
			return
		}
		if s.outer == nil {
			s.outer = map[string]bool{}
		}
		s.outer[name] = true
	})
}

func (it *interp) returnStatement(n *node, s *scope) {
	v := none
	if c := n.nth(0); c != nil {
		v = it.eval(c, s)
	}
	s.returns = join(s.returns, v)
	if s.fn != nil && strings.HasPrefix(s.fn.name, "__reduce") && v.isSeq() && len(v.x.items) >= 2 {
		// Unpickling calls the first with the second.
		if args := v.x.items[1]; args.isSeq() {
			it.call(v.x.items[0], &arguments{pos: args.x.items, how: "value"}, n, s)
		}
	}
}

func (it *interp) deleteStatement(n *node, s *scope) {
	n.each(func(c *node) {
		if c.kind == "identifier" {
			it.set(s, identifier(it.t.text(c)), unknown)
			return
		}
		it.eval(c, s)
	})
}

// execStatement is Python 2's exec code [in globals].
func (it *interp) execStatement(n *node, s *scope) {
	if c := n.child("code"); c != nil {
		it.call(ref("exec", ""), &arguments{pos: []*val{it.eval(c, s)}}, n, s)
	}
}

func (it *interp) ifStatement(n *node, s *scope) {
	var runs []func()
	var here, behind []oneOf
	complete := false
	for c := n.first; c != nil; c = c.next {
		switch c.field {
		case "condition":
			it.eval(c, s)
			here, behind = it.oneOfs(c, false, s), it.oneOfs(c, true, s)
		case "consequence":
			runs = append(runs, func() { it.holding(here, s); it.block(c, s) })
			if !it.leaves(c, s) {
				behind = nil
			}
		case "alternative":
			behind = nil
			if c.kind == "elif_clause" {
				runs = append(runs, func() {
					it.eval(c.child("condition"), s)
					it.holding(it.oneOfs(c.child("condition"), false, s), s)
					it.block(c.child("consequence"), s)
				})
			} else {
				complete = true
				runs = append(runs, func() { it.block(c.child("body"), s) })
			}
		}
	}
	it.fork(!complete, runs...)
	it.holding(behind, s)
}

func (it *interp) withStatement(n *node, s *scope) {
	s.caught++
	defer func() { s.caught-- }()
	n.each(func(c *node) {
		if c.kind != "with_clause" {
			return
		}
		c.each(func(item *node) {
			if v := item.child("value"); v != nil {
				it.withItem(v, s)
			}
		})
	})
	it.block(n.child("body"), s)
}

// withItem binds what the context manager gives: itself, as far as this knows.
func (it *interp) withItem(n *node, s *scope) {
	if n.kind != "as_pattern" {
		if n.kind == "tuple" || n.kind == "parenthesized_expression" {
			n.each(func(c *node) { it.withItem(c, s) })
			return
		}
		it.eval(n, s)
		return
	}
	v := it.eval(n.nth(0), s)
	if v.kind == kInst {
		self := v
		for _, name := range []string{"__enter__", "__aenter__"} {
			if m := it.attribute(self, name, n, s); m.kind == kFunc {
				if got := it.call(m, &arguments{}, n, s); got.kind != kUnknown {
					v = got
				}
			}
		}
	}
	if v.kind == kList { // a generator that is a context manager gives its first item
		v = widest(v.x.items, v)
	}
	if a := n.child("alias"); a != nil {
		it.assign(a, it.entered(v), s)
	}
}

// entered is what a known context manager hands out where that is not itself.
func (it *interp) entered(v *val) *val {
	if v.kind == kObj && v.text == "tempfile.TemporaryDirectory" {
		return v.x.dict["name"]
	}
	return v
}

func (it *interp) whileStatement(n *node, s *scope) {
	cond, body := n.child("condition"), n.child("body")
	leave := it.enterLoop(n)
	defer leave()
	rounds := 0
	for rounds < maxUnroll && rounds*it.unroll*int(n.size) < unrollNodes && it.steps < it.limit/2 {
		v := it.eval(cond, s)
		is, certain := v.truth()
		if !certain || !v.isConst() && (v.kind != kList || v.open || cond.kind != "identifier") || cond.kind == "true" || cond.kind == "integer" {
			break
		}
		if !is {
			it.elseOf(n, s)
			return
		}
		rounds++
		it.block(body, s)
		if it.over || breaks(body) {
			break
		}
	}
	it.repeat(s, func() { it.block(body, s) })
	it.elseOf(n, s)
}

func (it *interp) elseOf(n *node, s *scope) {
	if c := n.child("alternative"); c != nil {
		it.block(c.child("body"), s)
	}
}

// breaks reports whether a loop's body can end the loop.
func breaks(n *node) bool {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "break_statement", "return_statement", "raise_statement":
			return true
		case "function_definition", "lambda", "class_definition":
			continue
		}
		if c.size > 1 && breaks(c) {
			return true
		}
	}
	return false
}

// repeat follows a body whose number of rounds is not known: once, and once
// more with what the first round left.
func (it *interp) repeat(s *scope, body func()) {
	it.loops++
	defer func() { it.loops-- }()
	changed := false
	it.fork(true, func() {
		mark := len(it.journal)
		body()
		for _, w := range it.journal[mark:] {
			now := w.s.vars[w.name]
			if w.old != nil && now != nil && !same(w.old, now) && now.kind > kFloat {
				changed = true
			}
		}
		if changed && it.loops <= 2 {
			body()
		}
	})
}

func (it *interp) forStatement(n *node, s *scope) {
	left, right, body := n.child("left"), n.child("right"), n.child("body")
	if left == nil || right == nil || body == nil {
		return
	}
	if first := body.nth(0); first != nil && first.kind == "if_statement" && it.picked(first.child("condition"), s) {
		it.picks++
		defer func() { it.picks-- }()
	}
	if it.sifts(body) {
		it.sifting++
		defer func() { it.sifting-- }()
	}
	over := oneOfEach(it.eval(right, s))
	leave := it.enterLoop(n)
	defer leave()
	items, known := it.iterate(over, n)
	defer it.repeated(turns(over, items))()
	if done, ok := it.rounds(len(items), body.size); known && ok {
		defer done()
		for _, item := range items {
			if it.over {
				return
			}
			it.assign(left, item, s)
			it.block(body, s)
		}
		it.elseOf(n, s)
		return
	}
	it.repeat(s, func() {
		if known {
			it.assignEach(left, items, over, s)
		} else {
			it.assign(left, widest(items, over), s)
		}
		it.block(body, s)
	})
	it.elseOf(n, s)
}
