package javascript

// maxModules bounds the modules of the workspace that are followed.
const maxModules = 64

// load follows a module of the workspace whose text is known, so that calls of
// what it offers are followed into it, and gives what it exports; nil where none
// is. What it does stands where it is loaded first.
func (w *walk) load(spec string, n id) *val {
	name := w.b.Link(w.t.module, spec)
	if name == "" {
		return nil
	}
	if m := w.modules[name]; m != nil {
		return m.props["exports"]
	}
	if len(w.modules) >= maxModules {
		return nil
	}
	src, _, ok := w.b.Module(name)
	if !ok {
		return nil
	}
	t := parse(w.g, []byte(src), parseTime, patience*parseTime)
	if t == nil || t.tooDeep {
		return nil
	}
	p := w.pos(n)
	t.origin, t.label, t.module = &p, "\x00"+name, name
	w.inline += 3 * len(t.nodes)
	w.hard += 8 * len(t.nodes)
	exports, module := &object{role: plain, open: true}, &object{role: plain, open: true}
	module.set("exports", &val{ref: exports})
	if w.modules == nil {
		w.modules = map[string]*object{}
	}
	w.modules[name] = module // it may import itself, by way of others
	saved, offers, functions, classes := w.frame, w.offers, len(w.functions), len(w.classes)
	w.frame = frame{t: t, sc: &scope{}, cond: w.cond, base: w.cond, late: w.late, depth: w.depth + 1}
	w.act = &activation{this: &val{ref: exports}}
	w.sc.call = w.act
	w.sc.declare("module", &val{ref: module}, 0)
	w.sc.declare("exports", &val{ref: exports}, 0)
	w.offers = exports
	w.hoistVars(0)
	w.block(0)
	w.frame, w.offers = saved, offers
	// What nobody calls here is judged with its own text.
	w.functions = w.functions[:min(functions, len(w.functions))]
	w.classes = w.classes[:min(classes, len(w.classes))]
	return module.props["exports"]
}

// exportStmt runs what is exported, and records what is exported from elsewhere.
func (w *walk) exportStmt(n id) {
	if src := w.t.child(n, fSource); src != 0 {
		w.exportFrom(n, w.importModule(text(w.stringText(src)), "from", "", nil, src))
		return
	}
	standard := false
	w.t.each(n, func(c id) {
		switch w.t.nodes[c].field {
		case fDeclaration:
			w.stmt(c)
			if w.offers != nil && standard {
				if name := w.t.child(c, fName); name != 0 {
					if b := w.sc.find(w.t.text(name)); b != nil {
						w.offers.set("default", b.get(false))
					}
				}
			} else if w.offers != nil {
				w.offer(w.offers, c)
			}
		case fValue:
			if v := w.expr(c); w.offers != nil {
				w.offers.set("default", v)
			}
		default:
			switch k := w.t.kind(c); k {
			case kToken:
				standard = standard || w.t.text(c) == "default"
			case kExportClause:
				w.exportNames(c, nil)
			case kOther:
			default:
				w.stmt(c)
			}
		}
	})
}

// exportFrom offers what another module does.
func (w *walk) exportFrom(n id, m *val) {
	if w.offers == nil {
		return
	}
	all := true
	w.t.each(n, func(c id) {
		if w.t.kind(c) == kExportClause {
			all = false
			w.exportNames(c, m)
		}
	})
	if all && m.ref != nil {
		for _, key := range m.ref.keys {
			w.offers.set(key, m.ref.props[key])
		}
	}
}

// exportNames offers what stands in braces: names of m, or of this module.
func (w *walk) exportNames(clause id, m *val) {
	if w.offers == nil {
		return
	}
	w.t.each(clause, func(c id) {
		name := w.t.child(c, fName)
		if w.t.kind(c) != kExportSpecifier || name == 0 {
			return
		}
		as := name
		if a := w.t.child(c, fAlias); a != 0 {
			as = a
		}
		key := w.t.text(name)
		var v *val
		if m != nil {
			v = w.member(m, key, "", c)
		} else if b := w.sc.find(key); b != nil {
			v = b.get(false)
		}
		if v != nil {
			w.offers.set(w.t.text(as), v)
		}
	})
}
