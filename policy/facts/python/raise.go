package python

func (it *interp) tryStatement(n *node, s *scope) {
	s.caught++
	defer func() { s.caught-- }()
	it.block(n.child("body"), s)
	var handlers []func()
	for c := n.first; c != nil; c = c.next {
		if c.kind == "except_clause" || c.kind == "except_group_clause" {
			handlers = append(handlers, func() { it.exceptClause(c, s) })
		}
	}
	if len(handlers) > 0 {
		it.fork(true, handlers...)
	}
	for c := n.first; c != nil; c = c.next {
		if c.kind == "else_clause" || c.kind == "finally_clause" {
			it.block(c, s)
		}
	}
}

func (it *interp) exceptClause(c *node, s *scope) {
	for x := c.first; x != nil; x = x.next {
		switch {
		case x.field == "alias" && x.kind == "identifier":
			it.set(s, identifier(it.t.text(x)), it.caught(unknown))
		case x.kind == "block":
			it.block(x, s)
		case x.kind == "as_pattern":
			if a := x.child("alias"); a != nil {
				it.assign(a, it.caught(&val{kind: kObj, text: "Exception"}), s)
			}
			it.evalOr(x.nth(0), s)
		case x.named:
			it.eval(x, s)
		}
	}
}

// raiseStatement remembers what an exception carries, for those who catch it.
func (it *interp) raiseStatement(n *node, s *scope) {
	for c := n.first; c != nil; c = c.next {
		switch {
		case !c.named:
		case c.kind != "call" || len(it.raised) >= maxRaised:
			it.eval(c, s)
		default:
			f := it.evalOr(c.child("function"), s)
			a := it.arguments(c.child("arguments"), s)
			v := it.call(f, a, c, s)
			if len(a.pos) == 0 || !carries(a.pos) {
				continue
			}
			if v.kind == kInst {
				it.bindField(v.x.cls, "args", list(kTuple, a.pos))
			} else {
				v = &val{kind: kObj, text: "Exception", x: &extra{str: a.pos[0], dict: map[string]*val{"args": list(kTuple, a.pos)}}}
			}
			it.raised = append(it.raised, v)
		}
	}
}

const maxRaised = 8

// carries reports arguments that are more than a message put together.
func carries(args []*val) bool {
	for _, v := range args {
		if v.kind != kUnknown {
			return true
		}
	}
	return false
}

// caught is what a clause binds: what the program raised, or anything.
func (it *interp) caught(v *val) *val {
	if len(it.raised) == 0 {
		return v
	}
	out := it.raised[0]
	for _, r := range it.raised[1:] {
		out = join(out, r)
	}
	return out
}
