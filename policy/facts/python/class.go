package python

import "strings"

// class is a class of the program. Its instances share what is known of their
// attributes.
type class struct {
	name  string
	bases []*val
	scope *scope
	attrs map[string]*val
	value *val // the class itself
	self  *val // the one instance that stands for all
}

func (it *interp) currentClass(s *scope) *class {
	for i := len(it.classes) - 1; i >= 0; i-- {
		if it.classes[i].scope == s {
			return it.classes[i]
		}
	}
	return nil
}

func (it *interp) defineClass(n *node, s *scope, decorators []*node) {
	c := &class{name: identifier(it.t.text(n.child("name"))), attrs: map[string]*val{}, scope: newScope(s)}
	c.scope.class = true
	c.value = &val{kind: kClass, x: &extra{cls: c}}
	if sup := n.child("superclasses"); sup != nil {
		a := it.arguments(sup, s)
		c.bases = a.pos
	}
	it.classes = append(it.classes, c)
	it.set(s, c.name, c.value)
	it.block(n.child("body"), c.scope)
	for i := len(decorators) - 1; i >= 0; i-- {
		it.decorate(decorators[i], c.value, s)
	}
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

// instantiate makes an instance: __init__ is followed.
func (it *interp) instantiate(c *class, a *arguments, n *node, s *scope) *val {
	self := c.instance()
	made := false
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
		if !strings.HasSuffix(o.text, "Exception") && !strings.HasSuffix(o.text, "Error") {
			it.call(o, a, n, s)
		}
	}
	it.fields(c, a)
	return self
}

// fields binds arguments to annotated names, as dataclasses do.
func (it *interp) fields(c *class, a *arguments) {
	for _, k := range a.keys {
		c.attrs[k] = prefer(c.attrs[k], a.kw[k])
	}
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
	if m == nil {
		if o := c.outside(0); o != nil {
			return &val{kind: kRef, text: canonical(o.text + "." + name), x: &extra{self: &val{kind: kObj, text: o.text}}}
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
