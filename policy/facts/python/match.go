package python

func (it *interp) matchStatement(n *node, s *scope) {
	subject := it.subject(n, s)
	var runs []func()
	body := n.child("body")
	if body == nil {
		return
	}
	body.each(func(c *node) {
		runs = append(runs, func() {
			it.bindCase(c, subject, s)
			it.evalOr(c.child("guard"), s)
			it.block(c.child("consequence"), s)
		})
	})
	it.fork(true, runs...)
}

// subject is what a statement matches; several of them are a tuple.
func (it *interp) subject(n *node, s *scope) *val {
	var all []*val
	for c := n.first; c != nil; c = c.next {
		if c.field == "subject" && c.named {
			all = append(all, it.eval(c, s))
		}
	}
	switch len(all) {
	case 0:
		return unknown
	case 1:
		return all[0]
	}
	return list(kTuple, all)
}

// bindCase binds the pattern of a case, or those of the items of a tuple.
func (it *interp) bindCase(c *node, subject *val, s *scope) {
	var patterns []*node
	c.each(func(x *node) {
		if x.kind == "case_pattern" {
			patterns = append(patterns, x)
		}
	})
	if len(patterns) == 1 {
		it.bindPattern(patterns[0], subject, s)
		return
	}
	for i, p := range patterns {
		it.bindPattern(p, it.item(subject, integer(int64(i)), p, s), s)
	}
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
	case "class_pattern":
		it.bindClass(n, v, s)
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

// bindClass: attributes that stand in a row are those that the class of v says,
// as far as that is known; others are looked up by their names.
func (it *interp) bindClass(n *node, v *val, s *scope) {
	i := 0
	n.each(func(c *node) {
		if c.kind == "dotted_name" {
			return
		}
		part := derived(v)
		if first := c.nth(0); first != nil && first.kind == "keyword_pattern" {
			part = v
		} else if v.kind == kInst {
			part = it.placed(v, i, n, s)
		} else if i == 0 && v.isConst() {
			part = v // str(x) binds what it is
		}
		it.bindPattern(c, part, s)
		i++
	})
}

// placed is the attribute of an object that a pattern binds at a place: what its
// class names in __match_args__, or its fields in order.
func (it *interp) placed(v *val, i int, n *node, s *scope) *val {
	names := v.x.cls.fields
	if m := v.x.cls.member("__match_args__", 0); m != nil && m.isSeq() {
		names = nil
		for _, item := range m.x.items {
			name, _ := item.oneText()
			names = append(names, name)
		}
	}
	if i >= len(names) || names[i] == "" {
		return derived(v)
	}
	return it.attribute(v, names[i], n, s)
}
