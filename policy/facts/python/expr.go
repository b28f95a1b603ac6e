package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

type expressionFunc func(it *interp, n *node, s *scope) *val

// newExpressions says what each kind of expression gives. What is not here is
// something unknown made of its children.
func newExpressions() map[string]expressionFunc {
	constant := func(v *val) expressionFunc { return func(*interp, *node, *scope) *val { return v } }
	first := func(it *interp, n *node, s *scope) *val { return it.evalOr(n.nth(0), s) }
	sequence := func(k kind) expressionFunc {
		return func(it *interp, n *node, s *scope) *val { return it.sequence(k, n, s) }
	}
	return map[string]expressionFunc{
		"true": constant(yes), "false": constant(no), "none": constant(none), "ellipsis": constant(unknown),
		"comment": constant(none), "string_content": constant(unknown),
		"integer":                  func(it *interp, n *node, s *scope) *val { return number(it.t.text(n)) },
		"float":                    func(it *interp, n *node, s *scope) *val { return number(it.t.text(n)) },
		"identifier":               func(it *interp, n *node, s *scope) *val { return it.name(identifier(it.t.text(n)), s) },
		"string":                   (*interp).stringLiteral,
		"concatenated_string":      (*interp).strings,
		"expression_statement":     first,
		"parenthesized_expression": first,
		"await":                    first,
		"interpolation":            first,
		"keyword_argument":         func(it *interp, n *node, s *scope) *val { return it.evalOr(n.child("value"), s) },
		"list":                     sequence(kList),
		"tuple":                    sequence(kTuple),
		"expression_list":          sequence(kTuple),
		"pattern_list":             sequence(kTuple),
		"set":                      sequence(kSet),
		"dictionary":               (*interp).dictionary,
		"binary_operator":          (*interp).binary,
		"boolean_operator":         (*interp).boolean,
		"not_operator":             (*interp).not,
		"unary_operator":           (*interp).unary,
		"comparison_operator":      (*interp).comparison,
		"conditional_expression":   (*interp).conditional,
		"lambda":                   (*interp).lambda,
		"call":                     (*interp).callExpr,
		"attribute":                (*interp).attributeExpr,
		"subscript":                (*interp).subscriptExpr,
		"assignment":               (*interp).assignment,
		"augmented_assignment":     (*interp).augmented,
		"named_expression":         (*interp).named,
		"yield":                    (*interp).yield,
		"list_comprehension":       func(it *interp, n *node, s *scope) *val { return it.comprehension(kList, n, s) },
		"generator_expression":     func(it *interp, n *node, s *scope) *val { return it.comprehension(kList, n, s) },
		"set_comprehension":        func(it *interp, n *node, s *scope) *val { return it.comprehension(kSet, n, s) },
		"dictionary_comprehension": func(it *interp, n *node, s *scope) *val { return it.comprehension(kDict, n, s) },
		"block":                    func(it *interp, n *node, s *scope) *val { it.block(n, s); return unknown },
		"ERROR":                    func(it *interp, n *node, s *scope) *val { it.block(n, s); return unknown },
	}
}

func (it *interp) evalOr(n *node, s *scope) *val {
	if n == nil {
		return unknown
	}
	return it.eval(n, s)
}

// eval gives the value of an expression. It is never nil.
func (it *interp) eval(n *node, s *scope) *val {
	if n == nil || !it.enter(n) {
		return unknown
	}
	defer it.leave()
	if f, ok := it.x.expressions[n.kind]; ok {
		return f(it, n, s)
	}
	if f, ok := it.x.statements[n.kind]; ok {
		f(it, n, s)
		return unknown
	}
	var parts []*val
	for c := n.first; c != nil; c = c.next {
		if c.named {
			parts = append(parts, it.eval(c, s))
		}
	}
	return derived(parts...)
}

// name looks a name up: the program's own, then star imports, builtins, and
// modules that matter, which may have been imported out of sight.
func (it *interp) name(name string, s *scope) *val {
	if v, ok := it.find(s, name); ok {
		return v
	}
	for i := len(it.star) - 1; i >= 0; i-- {
		full := canonical(it.star[i] + "." + name)
		if _, ok := it.b.API(full); ok || starred[full] || it.dangerous(full) {
			return ref(full, "from")
		}
	}
	if len(it.calls) > 0 && !it.missed[name] {
		if it.missed == nil {
			it.missed = map[string]bool{}
		}
		it.missed[name] = true
	}
	if name == "__file__" {
		return fromFact(facts.OwnSource(".py"))
	}
	if builtins[name] {
		return ref(name, "")
	}
	if name != "name" && it.dangerous(name) {
		return ref(name, "")
	}
	return unknown
}

// dangerous reports that a module is one whose every use matters.
func (it *interp) dangerous(name string) bool {
	_, ok := it.b.Tables().Modules[facts.Python][name]
	return ok || dangerousModules[name]
}

func (it *interp) sequence(k kind, n *node, s *scope) *val {
	var items []*val
	v := &val{kind: k, x: &extra{}}
	n.each(func(c *node) {
		if c.kind == "list_splat" || c.kind == "list_splat_pattern" {
			more, ok := it.iterate(it.evalOr(c.nth(0), s), c)
			items = append(items, more...)
			v.open = v.open || !ok
			return
		}
		item := it.eval(c, s)
		if splatted(c) {
			more, ok := it.iterate(item, c)
			items = append(items, more...)
			v.open = v.open || !ok
			return
		}
		items = append(items, item)
	})
	v.x.items = items
	return v
}

func (it *interp) dictionary(n *node, s *scope) *val {
	d := &val{kind: kDict, x: &extra{dict: map[string]*val{}}}
	n.each(func(c *node) {
		if c.kind == "pair" {
			k := it.evalOr(c.child("key"), s)
			item := it.evalOr(c.child("value"), s)
			d.put(k, item)
			it.packageScript(k, item, c)
			return
		}
		d.merge(it.evalOr(c.nth(0), s))
	})
	return d
}

// packageScript follows a text that may become a script of a package.json.
func (it *interp) packageScript(key, v *val, n *node) {
	if it.quiet > 0 || !it.b.Packages() {
		return
	}
	if name, ok := key.oneText(); ok {
		it.b.Script(name, v.fact(), it.pos(n))
	}
}

// put binds a key of a dict; a key that is not known makes the dict open.
func (v *val) put(k, item *val) {
	key := dictKey(k)
	if key == "" {
		v.open = true
		key = "?:"
		item = prefer(v.x.dict[key], item)
	}
	if _, ok := v.x.dict[key]; !ok {
		v.x.order = append(v.x.order, key)
	}
	v.x.dict[key] = item
}

// store is put in the course of the program: what another branch stored there
// before may be there as well, where that can be called.
func (it *interp) store(d, k, item *val) {
	if old := d.x.dict[dictKey(k)]; old != nil && len(it.marks) > 0 && old.kind >= kRef && !same(old, item) {
		item = join(old, item)
	}
	d.put(k, item)
}

func (v *val) merge(o *val) {
	if o.kind != kDict {
		v.open = true
		v.from = mix(v.from, o.origins(0))
		return
	}
	for _, k := range o.x.order {
		if _, ok := v.x.dict[k]; !ok {
			v.x.order = append(v.x.order, k)
		}
		v.x.dict[k] = o.x.dict[k]
	}
	v.open = v.open || o.open
}

func (it *interp) boolean(n *node, s *scope) *val {
	a := it.evalOr(n.child("left"), s)
	b := it.evalOr(n.child("right"), s)
	is, certain := a.truth()
	or := false
	if op := n.child("operator"); op != nil {
		or = op.kind == "or"
	}
	switch {
	case certain && is == or:
		return a
	case certain:
		return b
	}
	return prefer(a, b)
}

func (it *interp) not(n *node, s *scope) *val {
	is, certain := it.evalOr(n.nth(0), s).truth()
	if !certain {
		return unknown
	}
	return boolean(!is)
}

func (it *interp) conditional(n *node, s *scope) *val {
	cond := it.evalOr(n.nth(1), s)
	a, b := it.evalOr(n.nth(0), s), it.evalOr(n.nth(2), s)
	if is, certain := cond.truth(); certain && cond.isConst() {
		if is {
			return a
		}
		return b
	}
	return prefer(a, b)
}

func (it *interp) named(n *node, s *scope) *val {
	v := it.evalOr(n.child("value"), s)
	if c := n.child("name"); c != nil {
		it.set(s, identifier(it.t.text(c)), v)
	}
	return v
}

func (it *interp) yield(n *node, s *scope) *val {
	v := it.evalOr(n.nth(0), s)
	s.endless = s.endless || it.loops > s.loops
	if v.isSeq() && strings.HasPrefix(it.t.text(n), "yield from") {
		s.yields = append(s.yields, v.x.items...)
		s.endless = s.endless || v.open
	} else {
		s.yields = append(s.yields, v)
	}
	return unknown
}

func (it *interp) assignment(n *node, s *scope) *val {
	left, right := n.child("left"), n.child("right")
	it.evalOr(n.child("type"), s) // an annotation is an expression that is evaluated
	if right == nil {
		return unknown
	}
	v := it.eval(right, s)
	it.assign(left, v, s)
	return v
}

func (it *interp) augmented(n *node, s *scope) *val {
	left, right, op := n.child("left"), n.child("right"), n.child("operator")
	if left == nil || right == nil || op == nil {
		return unknown
	}
	old := it.eval(left, s)
	v := it.eval(right, s)
	sign := strings.TrimSuffix(op.kind, "=")
	if old.kind == kRef && old.text == "sys.path" && sign == "+" {
		return it.report("sys.path.extend", &arguments{pos: []*val{v}}, nil, n)
	}
	if old.kind == kList && sign == "+" {
		if more, ok := it.iterate(v, n); ok && len(old.x.items)+len(more) <= 4096 {
			old.x.items = append(old.x.items, more...)
			return old
		}
	}
	it.feed("", &arguments{pos: []*val{v}}, old)
	v = it.operate(sign, old, v, n)
	it.assign(left, v, s)
	return v
}

// assign binds v to a target.
func (it *interp) assign(n *node, v *val, s *scope) {
	if n == nil || !it.enter(n) {
		return
	}
	defer it.leave()
	switch n.kind {
	case "identifier":
		it.set(s, identifier(it.t.text(n)), v)
	case "attribute":
		it.assignAttribute(n, v, s)
	case "subscript":
		it.assignItem(n, v, s)
	case "pattern_list", "tuple_pattern", "list_pattern", "tuple", "list", "expression_list":
		it.unpack(n, v, s)
	default: // as_pattern_target, parenthesized_expression, list_splat_pattern
		it.assign(n.nth(0), v, s)
	}
}

func (it *interp) unpack(n *node, v *val, s *scope) {
	items, ok := it.iterate(v, n)
	ok = ok || v.kind == kInst && len(items) > 0 // what it gives one after the other
	count := 0
	n.each(func(*node) { count++ })
	i := 0
	n.each(func(c *node) {
		switch {
		case !ok || i >= len(items):
			it.assign(c, partOf(v), s)
		case c.kind == "list_splat_pattern" || c.kind == "list_splat":
			take := max(0, len(items)-count+1)
			it.assign(c.nth(0), list(kList, items[i:min(len(items), i+take)]), s)
			i += take
		default:
			it.assign(c, items[i], s)
			i++
		}
	})
}

func (it *interp) assignAttribute(n *node, v *val, s *scope) {
	obj := it.evalOr(n.child("object"), s)
	name := identifier(it.t.text(n.child("attribute")))
	for _, o := range obj.branches() {
		switch o.kind {
		case kClass:
			it.assignMember(o.x.cls, name, o.x.cls.method(v))
		case kInst:
			it.assignMember(o.x.cls, name, v)
		case kRef, kObj:
			it.patch(o, name, v, n)
			it.kept(v, name)
		case kFunc:
			if name == "__code__" && (v.kind != kObj || v.text != "function.__code__") {
				it.call(ref("exec", ""), &arguments{pos: []*val{v}}, n, s)
			}
			it.kept(v, name)
		default: // nothing that is followed into its members
			it.kept(v, name)
		}
	}
}

// assignMember sets an attribute that all instances share.
func (it *interp) assignMember(c *class, name string, v *val) {
	if c.module { // its own functions see it too
		it.set(c.scope, name, prefer(c.scope.vars[name], v))
		return
	}
	old := c.member(name, 0)
	now := prefer(c.attrs[name], v)
	if old != nil && !same(old, now) && v.kind != kUnknown {
		it.changed(name, v)
	}
	c.attrs[name] = now
}

// patch is an assignment to an attribute of something outside. The tables may
// know it as the call NAME.__set__.
func (it *interp) patch(o *val, name string, v *val, n *node) {
	full := canonical(o.text + "." + name)
	it.feed(full, &arguments{pos: []*val{v}}, nil)
	if _, ok := it.b.API(full + ".__set__"); ok {
		it.report(full+".__set__", &arguments{pos: []*val{v}}, o, n)
	}
	if full == "os.environ" {
		it.report("os.environ.update", &arguments{pos: []*val{v}}, nil, n)
	}
	if o.kind == kRef && (o.x == nil || o.x.self == nil) {
		if v.kind >= kRef && v.kind <= kWrap || name == moduleFile {
			if it.patched == nil {
				it.patched = map[string]*val{}
			}
			it.patched[full] = v
		}
	}
}

func (it *interp) assignItem(n *node, v *val, s *scope) {
	obj := it.evalOr(n.child("value"), s)
	key := it.evalOr(n.child("subscript"), s)
	it.packageScript(key, v, n)
	for _, o := range obj.branches() {
		it.swaps(o, key, v)
		it.feed("", &arguments{pos: []*val{key, v}}, o)
		switch {
		case o.kind == kDict:
			if old := o.x.dict[dictKey(key)]; old != nil && !same(old, v) && v.kind != kUnknown {
				it.changed("", key, v)
			}
			it.store(o, key, v)
		case o.kind == kList:
			i, ok := key.int()
			if ok && i < 0 {
				i += int64(len(o.x.items))
			}
			if ok && i >= 0 && int(i) < len(o.x.items) {
				o.x.items[i] = v
				it.changed("", key, v)
			} else {
				o.gains([]*val{v}, nil)
				o.from = mix(o.from, v.origins(0))
			}
		case o.kind == kRef && (o.text == "os.environ" || o.text == "os.environb"):
			it.env("write", key, v, n)
		case o.kind == kSpace && o.x == nil && o.text == "":
			if name, ok := key.oneText(); ok {
				it.set(it.module, name, v)
			}
		case ofBuiltins(o):
			it.shaken = true
		case o.kind == kRef || o.kind == kObj:
			if _, ok := it.b.API(o.text + ".__setitem__"); ok {
				it.report(o.text+".__setitem__", &arguments{pos: []*val{key, v}}, o, n)
			}
			it.kept(v, lastPart(o.text))
		}
	}
}

func (it *interp) env(op string, name, v *val, n *node) {
	if op == "read" && slices.Contains(name.from, everyVariable) {
		it.listEnv(n) // one after the other
	}
	if it.quiet == 0 {
		value := facts.Value{}
		if v != nil {
			value = v.fact()
		}
		it.b.Env(op, name.fact(), value, it.pos(n))
	}
}
