package javascript

// declaration is what a class needs each time that an instance is made.
type declaration struct {
	tree   *tree
	scope  *scope
	fields []id
}

// class makes the value of a class.
func (w *walk) class(n id) *val {
	c := &object{role: class, proto: make(map[string]*val), decl: &declaration{tree: w.t, scope: w.sc}}
	v := &val{ref: c}
	if name := w.t.child(n, fName); name != 0 {
		c.decl.scope = &scope{up: w.sc}
		c.decl.scope.declare(w.t.text(name), v, w.cond)
	}
	if h := w.t.kid(n, kClassHeritage); h != 0 {
		c.base = w.heritage(h)
	}
	outer := w.sc
	w.sc = c.decl.scope
	defer func() { w.sc = outer }()
	w.decorators(n, v)
	body := w.t.child(n, fBody)
	if body == 0 {
		return v
	}
	before := w.before
	w.before = nil
	w.t.each(body, func(m id) { w.classMember(m, c, v) })
	w.decorateField(body) // what no member stands behind
	w.before = before
	w.classes = append(w.classes, v)
	return v
}

func (w *walk) heritage(n id) *val {
	c := w.t.nodes[n].first
	switch {
	case c == 0:
		return unknown
	case w.t.kind(c) == kExtends:
		return w.first(c)
	}
	return w.expr(c)
}

// decorators calls what stands before a class or member with an @.
func (w *walk) decorators(n id, target *val) {
	w.t.each(n, func(d id) {
		if w.t.kind(d) == kDecorator {
			w.apply(w.first(d), &site{n: d, args: []*val{target}, open: true, how: "decorator"})
		}
	})
}

// decorateMethod calls the decorators of a method with what they get: the method
// itself, or a name and a descriptor that has it.
func (w *walk) decorateMethod(n id, key string, f *val) {
	d := &object{role: plain}
	d.set("value", f)
	args := []*val{f, text(key), {ref: d}}
	call := func(d id) { w.apply(w.first(d), &site{n: d, args: args, open: true, how: "decorator"}) }
	for _, d := range w.before {
		call(d)
	}
	w.before = nil
	w.t.each(n, func(d id) {
		if w.t.kind(d) == kDecorator {
			call(d)
		}
	})
}

// decorateField is that for a field, of which nothing is handed over.
func (w *walk) decorateField(n id) {
	for _, d := range w.before {
		w.apply(w.first(d), &site{n: d, args: []*val{unknown}, open: true})
	}
	w.before = nil
	if w.t.kind(n) == kField {
		w.decorators(n, unknown)
	}
}

func (w *walk) classMember(m id, c *object, v *val) {
	static := false
	w.t.each(m, func(t id) {
		if w.t.kind(t) == kToken {
			static = static || w.t.text(t) == "static" || w.t.text(t) == "static get"
		}
	})
	switch w.t.kind(m) {
	case kMethod:
		f := w.function(m)
		f.ref.fn.home = c
		key, ok := w.key(w.t.child(m, fName))
		f.ref.fn.symbol = ownSymbol(key)
		w.decorateMethod(m, key, f)
		switch {
		case !ok:
			c.loose = append(c.loose, f)
		case static:
			f.ref.fn.this = v
			c.set(key, f)
		case key == "constructor":
			c.fn = f.ref.fn
		case f.ref.fn.setter:
			c.proto[setterOf+key] = f
		default:
			c.proto[key] = f
		}
	case kField:
		w.decorateField(m)
		if !static {
			c.decl.fields = append(c.decl.fields, m)
			return
		}
		name := w.t.child(m, fProperty)
		if name == 0 {
			name = w.t.child(m, fName)
		}
		value := undefined
		if at := w.t.child(m, fValue); at != 0 {
			value = w.withThis(v, func() *val { return w.expr(at) })
		}
		if key, ok := w.key(name); ok {
			c.set(key, value)
		}
	case kStaticBlock:
		w.withThis(v, func() *val { w.stmt(w.t.child(m, fBody)); return nil })
	case kDecorator:
		w.before = append(w.before, m)
	default: // nothing that a class is given
	}
}

// withThis evaluates what has a this of its own.
func (w *walk) withThis(this *val, f func() *val) *val {
	outer := w.act
	w.act = &activation{this: this}
	if outer != nil {
		w.act.fn = outer.fn
	}
	v := f()
	w.act = outer
	return v
}

// construct makes an instance of a class.
func (w *walk) construct(v *val, s *site) *val {
	c := v.ref
	o := &val{ref: &object{role: instance, base: v}}
	c.made = o
	if r := w.initialise(c, o, s, 6); r != nil && !r.isNone() && (r.ref != nil && r.ref != o.ref || r.name != "") {
		return r // a constructor may give back another object
	}
	return o
}

// initialise runs the fields and the constructor of a class for an instance.
func (w *walk) initialise(c *object, o *val, s *site, depth int) *val {
	if depth == 0 || w.b.Full() {
		return nil
	}
	if c.base != nil && (c.fn == nil || c.base.ref == nil) {
		w.initialiseBase(c, o, s, depth)
	}
	if len(c.decl.fields) > 0 {
		saved := w.frame
		w.frame = frame{t: c.decl.tree, sc: &scope{up: c.decl.scope}, cond: w.cond, base: w.base, late: w.late, depth: w.depth + 1}
		w.act = &activation{this: o}
		w.sc.call = w.act
		if w.depth <= maxCalls {
			for _, f := range c.decl.fields {
				w.field(f, o)
			}
		}
		w.frame = saved
	}
	if c.fn != nil {
		return w.invoke(c.fn, o, s.args, s.n)
	}
	return nil
}

func (w *walk) field(f id, o *val) {
	name := w.t.child(f, fProperty)
	if name == 0 {
		name = w.t.child(f, fName)
	}
	value := undefined
	if at := w.t.child(f, fValue); at != 0 {
		value = w.expr(at)
	}
	if key, ok := w.key(name); ok {
		nameFunction(value, key)
		o.ref.set(key, value)
	}
}

// initialiseBase does for the class that c extends what super(…) does.
func (w *walk) initialiseBase(c *object, o *val, s *site, depth int) {
	switch {
	case c.base.ref != nil && c.base.ref.role == class:
		w.initialise(c.base.ref, o, s, depth-1)
	case c.base.name != "" && c.fn == nil:
		w.apply(c.base, &site{n: s.n, args: s.args, open: s.open, new: true})
	}
}

// constructOld makes an instance by a plain function.
func (w *walk) constructOld(v *val, s *site) *val {
	o := &val{ref: &object{role: instance, base: v}}
	v.ref.made = o
	if r := w.invoke(v.ref.fn, o, s.args, s.n); r.ref != nil && r.ref != o.ref && r.ref.role != closure {
		return r
	}
	return o
}

// super is an object with the methods of the class above.
func (w *walk) super() *val {
	base := w.above()
	if base == nil {
		return unknown
	}
	if base.ref == nil || base.ref.role != class {
		return base
	}
	return &val{ref: &object{role: instance, base: base}}
}

// above is what the class around the current place extends.
func (w *walk) above() *val {
	if w.act == nil || w.act.fn == nil || w.act.fn.home == nil {
		return nil
	}
	return w.act.fn.home.base
}

// superCall runs the constructor of the class above for the current instance.
func (w *walk) superCall(s *site) *val {
	base := w.above()
	switch {
	case base == nil:
	case base.ref != nil && base.ref.role == class:
		w.initialise(base.ref, w.thisValue(), s, 6)
	default:
		s.new = true
		w.apply(base, s)
	}
	return undefined
}
