package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

func (it *interp) callExpr(n *node, s *scope) *val {
	fn := n.child("function")
	if splatted(n) {
		fn = fn.nth(0)
	}
	f := it.evalOr(fn, s)
	if f.kind == kRef && f.text == "len" && it.countsObjects(n.child("arguments"), s) {
		return unknown
	}
	a := it.arguments(n.child("arguments"), s)
	return it.call(f, a, n, s)
}

// countsObjects: of all objects that there are, no more is taken than their number.
func (it *interp) countsObjects(args *node, s *scope) bool {
	if args == nil || args.nth(1) != nil {
		return false
	}
	c := args.nth(0)
	if c == nil || c.kind != "call" || c.child("arguments").nth(0) != nil {
		return false
	}
	f := it.evalOr(c.child("function"), s)
	return f.kind == kRef && f.text == "gc.get_objects"
}

// splatted: the grammar takes the star of *f(x) for a part of f.
func splatted(n *node) bool {
	if n.kind != "call" {
		return false
	}
	fn := n.child("function")
	return fn != nil && (fn.kind == "list_splat" || fn.kind == "dictionary_splat")
}

// arguments evaluates an argument list.
func (it *interp) arguments(n *node, s *scope) *arguments {
	a := &arguments{}
	if n == nil {
		return a
	}
	if n.kind == "generator_expression" {
		a.pos = []*val{it.eval(n, s)}
		return a
	}
	n.each(func(c *node) {
		switch c.kind {
		case "keyword_argument":
			a.set(identifier(it.t.text(c.child("name"))), it.evalOr(c.child("value"), s))
		case "list_splat":
			v := it.evalOr(c.nth(0), s)
			items, ok := it.iterate(v, c)
			a.pos = append(a.pos, items...)
			if !ok {
				a.open, a.rest = true, mix(a.rest, v.origins(0))
			}
		case "dictionary_splat":
			v := it.evalOr(c.nth(0), s)
			if v.kind == kSpace && it.t.text(c) != "**locals()" {
				it.ownModule(v)
			}
			a.spread(v)
		default:
			v := it.eval(c, s)
			if !splatted(c) {
				a.pos = append(a.pos, v)
				return
			}
			items, ok := it.iterate(v, c)
			a.pos = append(a.pos, items...)
			if !ok {
				a.open, a.rest = true, mix(a.rest, v.origins(0))
			}
		}
	})
	return a
}

func (a *arguments) spread(d *val) {
	if d.kind == kDict {
		for _, k := range d.x.order {
			if _, name, ok := strings.Cut(k, ":"); ok && name != "" {
				a.set(name, d.x.dict[k])
			}
		}
		if !d.open {
			return
		}
	}
	a.open, a.rest = true, mix(a.rest, d.origins(0))
}

// maxObjects bounds objects that are called by way of others.
const maxObjects = 16

// call is f(a).
func (it *interp) call(f *val, a *arguments, n *node, s *scope) *val {
	if it.over {
		return unknown
	}
	switch f.kind {
	case kAlt:
		var out *val
		for _, b := range f.x.alts {
			out = join(out, it.call(b, a, n, s))
		}
		return out
	case kFunc:
		if f.x.fn.cls != nil && f.x.fn.cls.derived {
			it.began(true)
			it.passes(f.x.fn.name, a) // to the method of a derived class
		}
		return it.follow(f.x.fn, a, f.x.self, n)
	case kClass:
		return it.instantiate(f.x.cls, a, n, s)
	case kInst:
		switch m := f.x.cls.member("__call__", 0); {
		case m == nil:
		case m.kind == kFunc:
			return it.follow(m.x.fn, a, f, n)
		default: // staticmethod(os.system), a partial, an object that is called itself
			it.objects++
			defer func() { it.objects-- }()
			if it.objects < maxObjects {
				return it.call(m, a, n, s)
			}
		}
	case kWrap:
		return it.callWrap(f, a, n, s)
	case kRef:
		return it.callRef(f, a, n, s)
	case kObj:
		if f.text == "ctypes.CFUNCTYPE" {
			return it.callback(a, n, s)
		}
		if _, ok := it.b.API(f.text + ".__call__"); ok {
			return it.report(f.text+".__call__", a, f, n)
		}
	default: // nothing known is called
	}
	it.began(a.how != "decorator")
	it.calledUnknown(f, a, n)
	it.passes(anyFunction, a)
	it.handOver("", a, n)
	return derived(append(a.all(), f)...)
}

// callWrap calls what a partial, an attrgetter or a methodcaller holds.
func (it *interp) callWrap(f *val, a *arguments, n *node, s *scope) *val {
	b := &arguments{open: a.open, rest: a.rest, how: "value"}
	b.pos = append(append(b.pos, f.x.items...), a.pos...)
	for _, k := range f.x.order {
		b.set(k, f.x.dict[k])
	}
	for _, k := range a.keys {
		b.set(k, a.kw[k])
	}
	switch f.text {
	case "attrgetter", "itemgetter", "methodcaller":
		return it.getter(f, a, n, s)
	case "option":
		return it.withDefault(f, a)
	case "program":
		return it.runProgram(f.x.items, a, n)
	}
	return it.call(f.x.self, b, n, s)
}

// getter applies operator.attrgetter and its like to the first argument.
func (it *interp) getter(f *val, a *arguments, n *node, s *scope) *val {
	obj := a.get(0, "obj")
	if obj == nil || len(f.x.items) == 0 {
		return unknown
	}
	name := f.x.items[0]
	if f.text == "itemgetter" {
		return it.item(obj, name, n, s)
	}
	got := it.attributeNamed(obj, name, n, s)
	if f.text == "attrgetter" {
		return got
	}
	return it.call(got, &arguments{pos: f.x.items[1:], kw: f.x.dict, keys: f.x.order, how: "value"}, n, s)
}

// attributeNamed is getattr(v, name), where name may hold dots.
func (it *interp) attributeNamed(v, name *val, n *node, s *scope) *val {
	it.symbolNamed(v, name, n)
	if name.kind != kStr {
		it.began(v.kind != kFunc)
		it.ownModule(v)
		if slices.ContainsFunc(v.branches(), it.holdsAny) {
			it.opaqueAttribute(v, name, n)
		}
		out := &val{text: lookedUp, from: derived(v, name).from}
		if v.kind == kRef && mild[v.text] {
			return out.with([]string{"namespace"})
		}
		return out
	}
	it.began(v.kind != kRef && v.kind != kFunc)
	out := it.eachText(name, func(text string) *val {
		got := v
		for _, part := range strings.Split(text, ".") {
			got = it.attribute(got, identifier(part), n, s)
		}
		return withHow(got, "getattr")
	})
	if name.open {
		it.ownModule(v)
		it.opaqueAttribute(v, name, n)
	}
	return out
}

// mild are modules whose attributes matter only once they are called.
var mild = map[string]bool{"sys": true, "socket": true, "pickle": true, "marshal": true, "requests": true}

// holdsAny reports a module of which any attribute matters.
func (it *interp) holdsAny(b *val) bool {
	return b.kind == kRef && (b.x == nil || b.x.self == nil && b.x.how != "type") && it.dangerous(b.text) && !mild[b.text]
}

// opaqueAttribute: of a module that matters, an attribute whose name is not
// known can be anything.
func (it *interp) opaqueAttribute(v, name *val, n *node) {
	for _, b := range v.branches() {
		if it.holdsAny(b) {
			it.dynamic(facts.DynAttr, b.text, n, name.origins(0)...)
		}
	}
}

// callRef calls something outside.
func (it *interp) callRef(f *val, a *arguments, n *node, s *scope) *val {
	name := f.text
	var self *val
	if f.x != nil {
		self = f.x.self
		if a.how == "" {
			a.how = f.x.how
		}
	}
	if p := it.patched[name]; p != nil && (p.kind != kRef || builtins[name] && it.patched[p.text] == nil) {
		return it.call(p, a, n, s)
	}
	if p := it.programOf(name); p != "" && it.x.programs(it.b.Tables(), p) {
		return it.runProgram([]*val{str(p)}, a, n)
	}
	it.printsTo(name, a, n, s)
	c := &invocation{it: it, name: name, self: self, arguments: a, n: n, s: s}
	it.feed(name, a, self)
	c.unpickles()
	c.builds()
	c.fills()
	c.types()
	if h, ok := it.x.handlers[name]; ok {
		if v := h(c); v != nil {
			if !harmless[lastPart(name)] {
				it.keptAll(a.but(name))
			}
			return v
		}
	}
	if self != nil {
		if v := c.method(); v != nil {
			it.keptAll(a)
			return v
		}
	}
	it.passes(lastPart(name), a)
	if v := c.listed(); v != nil {
		return v
	}
	if name[0] == '?' || name[0] == '.' {
		if name[0] == '.' && self == nil {
			it.callsOut(name, nil, a, n) // of another module of the package
		} else {
			it.began(!it.onlyLooks(name[2:], a))
		}
		given := len(a.pos)+len(a.keys) > 0 || a.open // none of these does anything with nothing
		if given && (slices.Contains(f.from, "namespace") || slices.Contains(f.from, "module")) && it.b.Tables().Runners(facts.Python)[name[1:]] {
			it.calledMethod(name[2:], f, a, n)
		}
		it.saves(name, a, n)
		it.handOver("", a, n)
		return derived(append(a.all(), f)...)
	}
	it.callsOut(name, self, a, n)
	it.applyOwn(name, a, n, s)
	v := it.report(name, it.eachCommand(name, a, self, n), self, n)
	it.handOver(name, a, n)
	if self != nil && self.kind == kObj && v.kind == kObj && ofText[lastPart(name)] && v.text == name {
		return derived(append(a.all(), self, v)...) // another text, and not one that its arguments stand for
	}
	if c.says(v) {
		v.x.how = ofTheirs
	}
	return v
}

// ofText are methods of texts alone, which make other texts of them.
var ofText = set(`replace strip lstrip rstrip lower upper title capitalize removeprefix removesuffix split rsplit splitlines partition rpartition expandtabs`)

// report hands a call to the builder, which knows what it does, and takes up
// what it gives back.
func (it *interp) report(name string, a *arguments, self *val, n *node) *val {
	_, known := it.b.API(name)
	if !known && builtins[name] {
		return derived(a.all()...)
	}
	if known {
		it.reported++
		it.noted(name, n, a)
	}
	if !known {
		it.saves(name, a, n)
	}
	if it.quiet > 0 {
		return it.typed(name, a, self, facts.Value{})
	}
	c := facts.Call{At: facts.At{Pos: it.pos(n)}, Name: name, How: a.how}
	one := it.oneOfEnv(name, a)
	for i, v := range a.pos {
		if i > 0 || !one {
			it.usesEnv(name, v, n)
		}
		if i < 64 {
			c.Args = append(c.Args, v.fact())
		}
	}
	if a.open {
		c.Args = append(c.Args, facts.Opaque(a.rest...))
	}
	if len(a.keys) > 0 {
		c.Kwargs = make(map[string]facts.Value, len(a.keys))
		for _, k := range a.keys {
			if k != "env" {
				it.usesEnv(name, a.kw[k], n)
			}
			c.Kwargs[k] = a.kw[k].fact()
		}
	}
	c.Recv = receiver(self)
	if self != nil && self.kind == kObj {
		it.usesEnv(name, self, n)
	}
	it.notice(name, a, n)
	out := it.b.Call(c)
	if !known && a.kw["env"] == nil && it.looksUp(name) && slices.ContainsFunc(a.all(), func(v *val) bool { return v.kind == kRef && v.text == "os.environ" }) {
		out.From = mix(out.From, []string{everyVariable})
	}
	if !known {
		out.From = mix(out.From, derived(a.all()...).from)
		if self != nil {
			out.From = mix(out.From, self.origins(0))
		}
	}
	return it.typed(name, a, self, out)
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// receiver is what a method's object was made of.
func receiver(self *val) []facts.Value {
	if self == nil {
		return nil
	}
	if self.kind != kObj {
		if self.isConst() {
			return []facts.Value{self.fact()}
		}
		return nil
	}
	if self.x == nil {
		return nil
	}
	out := self.x.recv
	if self.x.str != nil && isPath(self) {
		out = []facts.Value{self.x.str.fact()}
	}
	if len(self.x.fields) > 0 {
		out = append([]facts.Value(nil), out...)
		if len(out) == 0 {
			out = append(out, facts.Value{})
		}
		first := out[0]
		first.Fields = self.x.fields
		out[0] = first
	}
	return out
}

// typed is the result of a call: an object under the name of what made it.
func (it *interp) typed(name string, a *arguments, self *val, got facts.Value) *val {
	if got.Type == "" && it.quiet > 0 {
		got.Type, got.From = name, derived(a.all()...).from
	}
	if strings.Count(got.Type, ".") > 6 || len(got.Type) > 100 {
		got.Type = ""
	}
	if got.Type != "" && strings.Count(got.Type, ".") == 0 && builtins[got.Type] && got.Type != "open" && typedBuiltins[got.Type] {
		return fromFact(got)
	}
	v := fromFact(got)
	if v.kind == kObj {
		v.x.self = self
		if s := textOf(v.text, a, self); s != nil {
			v.x.str = s
		}
	}
	return v
}

var typedBuiltins = map[string]bool{"str": true, "bytes": true, "int": true, "float": true, "bool": true, "list": true, "dict": true}

func (x *extra) selfOrNil() *val {
	if x == nil {
		return nil
	}
	return x.self
}

// runs reports whether a function of something outside runs code or commands.
func (it *interp) runs(name string) bool { return it.does(name, "code", "shell", "argv") }

func (it *interp) does(name string, what ...string) bool {
	api, ok := it.b.API(name)
	if !ok {
		return false
	}
	for i := range api.Effects {
		if slices.Contains(what, api.Effects[i].Do) {
			return true
		}
	}
	return false
}

// invocation is one call of something outside, as handlers see it.
type invocation struct {
	*arguments
	it   *interp
	name string
	self *val
	n    *node
	s    *scope
}
