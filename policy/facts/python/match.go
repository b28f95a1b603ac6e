package python

func (it *interp) matchStatement(n *node, s *scope) {
	subject := unknown
	if c := n.child("subject"); c != nil {
		subject = it.eval(c, s)
	}
	var runs []func()
	body := n.child("body")
	if body == nil {
		return
	}
	body.each(func(c *node) {
		runs = append(runs, func() {
			c.each(func(x *node) {
				if x.kind != "case_pattern" {
					return
				}
				it.bindPattern(x, subject, s)
			})
			it.evalOr(c.child("guard"), s)
			it.block(c.child("consequence"), s)
		})
	})
	it.fork(true, runs...)
}

// bindPattern binds the names of a case to what they stand for in v.
func (it *interp) bindPattern(n *node, v *val, s *scope) {
	if !it.enter(n) {
		return
	}
	defer it.leave()
	switch n.kind {
	case "dotted_name":
		if n.first != nil && n.first.next == nil {
			it.set(s, identifier(it.t.text(n)), v)
		}
	case "list_pattern", "tuple_pattern":
		i := int64(0)
		n.each(func(c *node) {
			it.bindPattern(c, it.item(v, integer(i), c, s), s)
			i++
		})
	case "dict_pattern":
		it.bindDict(n, v, s)
	case "keyword_pattern":
		if name := n.nth(0); name != nil && n.nth(1) != nil {
			it.bindPattern(n.nth(1), it.attribute(v, identifier(it.t.text(name)), n, s), s)
		}
	case "as_pattern":
		n.each(func(c *node) { it.bindPattern(c, v, s) })
	case "as_pattern_target", "identifier":
		it.assign(n, v, s)
	case "splat_pattern":
		n.each(func(c *node) { it.bindPattern(c, derived(v), s) })
	case "case_pattern", "union_pattern":
		n.each(func(c *node) { it.bindPattern(c, v, s) })
	default:
		n.each(func(c *node) { it.bindPattern(c, derived(v), s) })
	}
}

// bindDict: keys of a pattern are looked up.
func (it *interp) bindDict(n *node, v *val, s *scope) {
	for c := n.first; c != nil; c = c.next {
		if c.field == "value" {
			continue
		}
		if c.field == "key" {
			key := it.evalOr(c.nth(0), s)
			for w := c.next; w != nil; w = w.next {
				if w.field == "value" {
					it.bindPattern(w, it.item(v, key, c, s), s)
					break
				}
			}
			continue
		}
		if c.named {
			it.bindPattern(c, derived(v), s)
		}
	}
}
