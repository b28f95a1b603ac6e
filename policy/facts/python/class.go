package python

import (
	"slices"
	"strings"
)

// class is a class of the program. Its instances share what is known of their
// attributes.
type class struct {
	name  string
	bases []*val
	scope *scope
	// derived: another class of the program has it as a base.
	derived bool
	attrs   map[string]*val
	// fields are annotated names in order, which arguments are bound to where
	// nothing else takes them; tuple says that they can be unpacked.
	fields []string
	tuple  bool
	value  *val // the class itself
	meta   *class
	self   *val // the one instance that stands for all
	module bool // it is no class but a module of the workspace, see load
}

func (it *interp) currentClass(s *scope) *class {
	for i := len(it.classes) - 1; i >= 0; i-- {
		if it.classes[i].scope == s {
			return it.classes[i]
		}
	}
	return nil
}

// documentation is the text that a body begins with, or nil.
func (it *interp) documentation(t *tree, body *node) *val {
	if body == nil || t != it.t || body.nth(0) == nil || !docstring(body.nth(0)) || !strings.Contains(t.src, "__doc__") {
		return nil
	}
	return it.eval(body.nth(0).nth(0), it.module)
}

func (it *interp) defineClass(n *node, s *scope, decorators []*node) {
	c := &class{name: identifier(it.t.text(n.child("name"))), attrs: map[string]*val{}, scope: newScope(s)}
	c.scope.class = true
	c.value = &val{kind: kClass, x: &extra{cls: c}}
	if sup := n.child("superclasses"); sup != nil {
		a := it.arguments(sup, s)
		c.bases = a.pos
		it.began(a.open || slices.ContainsFunc(a.all(), func(v *val) bool { return v.kind != kClass && v.kind != kRef && v.kind != kBool }) || makes(a.kw["metaclass"]))
		if m := a.kw["metaclass"]; m != nil && m.kind == kClass {
			c.meta = m.x.cls
		}
		for _, b := range a.pos {
			if b.kind == kClass {
				b.x.cls.derived = true
			}
		}
	}
	it.classes = append(it.classes, c)
	it.defined(c.name)
	it.set(s, c.name, c.value)
	for _, b := range c.bases {
		if b.kind == kClass {
			c.fields = append(c.fields, b.x.cls.fields...)
			c.tuple = c.tuple || b.x.cls.tuple
		}
		c.tuple = c.tuple || b.kind == kRef && b.text == "typing.NamedTuple"
	}
	c.fields = append(c.fields, it.annotated(n.child("body"))...)
	it.block(n.child("body"), c.scope)
	for name := range hooks {
		it.began(!laterHooks[name] && c.scope.vars[name] != nil && it.lively(c.scope.vars[name]))
	}
	if d := it.documentation(it.t, n.child("body")); d != nil {
		it.set(c.scope, "__doc__", d)
	}
	for i := len(decorators) - 1; i >= 0; i-- {
		it.decorate(decorators[i], c.value, s)
		it.began(!marks(decorator(it.t.text(decorators[i]))))
	}
}

// method is what a function of the program becomes that is put into a class from
// without: one that gets the object.
func (c *class) method(v *val) *val {
	if v.kind != kFunc || v.x.fn.cls != nil || c.module {
		return v
	}
	f := *v.x.fn
	f.cls, f.memo, f.opaque = c, nil, nil
	return &val{kind: kFunc, from: v.from, x: &extra{fn: &f, self: v.x.self}}
}

// instance stands for every instance of c.
func (c *class) instance() *val {
	if c == nil {
		return unknown
	}
	if c.self == nil {
		c.self = &val{kind: kInst, x: &extra{cls: c}}
	}
	return c.self
}

// member looks an attribute up in the instance, the class, and its bases.
func (c *class) member(name string, depth int) *val {
	if c == nil || depth > 8 {
		return nil
	}
	if v := c.attrs[name]; v != nil {
		return v
	}
	if v := c.scope.vars[name]; v != nil {
		return v
	}
	for _, b := range c.bases {
		if b.kind == kClass {
			if v := b.x.cls.member(name, depth+1); v != nil {
				return v
			}
		}
	}
	return nil
}

// outside is the first base that the program does not define, or nil.
func (c *class) outside(depth int) *val {
	if c == nil || depth > 8 {
		return nil
	}
	for _, b := range c.bases {
		if b.kind == kRef {
			return b
		}
		if b.kind == kClass {
			if o := b.x.cls.outside(depth + 1); o != nil {
				return o
			}
		}
	}
	return nil
}

// outsider reports that code which is not the program's may call the methods
// of c: that of a base.
func (c *class) outsider(depth int) bool {
	if c == nil {
		return false
	}
	return depth > 8 || slices.ContainsFunc(c.bases, func(b *val) bool {
		if b.kind == kClass {
			return b.x.cls.outsider(depth + 1)
		}
		return b.kind != kRef || !callsNothing[b.text]
	})
}

// callsNothing are bases whose code calls no method of what is derived.
var callsNothing = set(`object Exception ValueError RuntimeError abc.ABC typing.Protocol typing.NamedTuple enum.Enum enum.IntEnum
	typing.Generic`)

// instantiate makes an instance: __init__ is followed.
func (it *interp) instantiate(c *class, a *arguments, n *node, s *scope) *val {
	self := c.instance()
	it.began(c.outsider(0) || it.reacts(c))
	made := false
	if c.member("__init__", 0) == nil {
		it.bindFields(c, a)
	}
	for _, name := range []string{"__new__", "__init__", "__post_init__"} {
		m := c.member(name, 0)
		if m == nil || m.kind != kFunc {
			continue
		}
		made = made || name != "__post_init__"
		if name == "__post_init__" {
			a = &arguments{}
		}
		it.follow(m.x.fn, a, self, n)
	}
	if made {
		return self
	}
	if o := c.outside(0); o != nil {
		// An exception, a thread, a dictionary: the base's constructor sees the arguments.
		it.objects++ // the base may have been replaced by what is derived from it
		defer func() { it.objects-- }()
		if !strings.HasSuffix(o.text, "Exception") && !strings.HasSuffix(o.text, "Error") && it.objects < maxObjects {
			it.call(o, a, n, s)
		}
	}
	return self
}

// annotated are the names that a class body annotates, in order.
func (it *interp) annotated(body *node) []string {
	if body == nil {
		return nil
	}
	var out []string
	body.each(func(c *node) {
		a := c.nth(0)
		if c.kind != "expression_statement" || a == nil || a.kind != "assignment" || a.child("type") == nil {
			return
		}
		if l := a.child("left"); l != nil && l.kind == "identifier" && !strings.Contains(it.t.text(a.child("type")), "ClassVar") {
			out = append(out, identifier(it.t.text(l)))
		}
	})
	return out
}

// bindFields binds arguments to annotated names, as dataclasses do.
func (it *interp) bindFields(c *class, a *arguments) {
	for i, v := range a.pos {
		if i < len(c.fields) {
			it.bindField(c, c.fields[i], v)
		}
	}
	for _, k := range a.keys {
		it.bindField(c, k, a.kw[k])
	}
}

func (it *interp) bindField(c *class, name string, v *val) {
	now := prefer(c.attrs[name], v)
	if old := c.attrs[name]; old != nil && !same(old, now) {
		it.changed(name, v)
	}
	c.attrs[name] = now
}

// attributeOf is v.name for instances and classes of the program.
func (it *interp) attributeOf(v *val, name string, n *node, s *scope) *val {
	c := v.x.cls
	switch name {
	case "__class__":
		return c.value
	case "__dict__":
		return &val{kind: kSpace, x: &extra{self: v}}
	case "__name__", "__qualname__":
		return str(c.name)
	}
	m := c.member(name, 0)
	if m == nil && (name == "value" || name == "_value_") {
		if all, ok := c.members(); ok && len(all) > 0 {
			return widest(all, v)
		}
	}
	if m == nil {
		if got := it.madeUp(v, name, n); got != nil {
			return got
		}
		if o := c.outside(0); o != nil {
			return &val{kind: kRef, text: canonical(o.text + "." + name), x: &extra{self: &val{kind: kObj, text: o.text}}}
		}
		if g := c.member("__getattr__", 0); g != nil && g.kind == kFunc && v.kind == kInst && !special(name) && !it.assigns(name) {
			return it.follow(g.x.fn, &arguments{pos: []*val{str(name)}}, v, n)
		}
		if !it.assigns(name) {
			return &val{from: []string{"param"}} // whoever makes or derives from it gives it that
		}
		return unknown
	}
	if m.kind != kFunc || v.kind == kClass && !m.x.fn.clsArg {
		return m
	}
	f := m.x.fn
	if f.prop && v.kind == kInst {
		return it.follow(f, &arguments{}, v, n)
	}
	if f.static || f.cls == nil {
		return m
	}
	self := v
	if f.clsArg {
		self = c.value
	}
	return &val{kind: kFunc, x: &extra{fn: f, self: self}}
}

// madeUp is an attribute that __getattr__ makes, of an object or, by way of its
// metaclass, of a class; nil where nothing is known of it.
func (it *interp) madeUp(v *val, name string, n *node) *val {
	c := v.x.cls
	if v.kind == kClass {
		c = c.meta
	}
	m := c.member("__getattr__", 0)
	if m == nil || m.kind != kFunc || m.x.fn.active > 0 {
		return nil
	}
	got := it.follow(m.x.fn, &arguments{pos: []*val{str(name)}}, v, n)
	if got.kind < kRef || got.kind > kWrap {
		return nil
	}
	return got
}
