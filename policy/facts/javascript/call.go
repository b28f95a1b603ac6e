package javascript

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// site is one call as it is about to happen.
type site struct {
	n    id
	name string // of a callee that is not the program's own
	how  string
	this *val
	args []*val
	recv []facts.Value
	open bool // there are more arguments than args, not known
	new  bool
	tag  bool // a template was given
	// parts are what a function of the program is given of the template.
	parts []*val
}

func (s *site) arg(i int) *val {
	switch {
	case i < len(s.args):
		return s.args[i]
	case s.open:
		return unknown
	}
	return undefined
}

// origins are where the arguments and the receiver come from.
func (s *site) origins() []string {
	var from []string
	if s.this != nil {
		from = s.this.From
	}
	for _, a := range s.args {
		from = merge(from, a.origins())
	}
	return from
}

// call evaluates a call expression.
func (w *walk) call(n id) *val {
	fn, argNode := w.t.child(n, fFunction), w.t.child(n, fArguments)
	for w.t.kind(fn) == kParen && w.t.nodes[fn].first != 0 {
		inner := w.t.nodes[fn].first
		if k := w.t.kind(inner); k != kMember && k != kSubscript && k != kParen {
			break
		}
		fn = inner
	}
	s := &site{n: n}
	if k := w.t.kind(fn); k == kMember || k == kSubscript {
		filters := w.filtersCall(w.t.text(w.t.child(fn, fProperty)), argNode)
		if filters {
			w.picks++
		}
		obj := w.expr(w.t.child(fn, fObject))
		if filters {
			w.picks--
		}
		key, ok := w.memberKey(fn)
		if !ok {
			return w.callAny(obj, w.indexValue(fn), fn, argNode, s)
		}
		how := ""
		if k == kSubscript {
			how = "subscript"
		}
		w.arguments(argNode, s)
		if w.t.kind(w.t.child(fn, fObject)) == kSuper {
			s.this = w.thisValue()
			return w.apply(w.member(obj, key, how, fn), s)
		}
		if calling[key] && key != "bind" && w.endsBefore(obj, argNode, s) {
			return unknown
		}
		return w.callMethod(obj, key, how, fn, s)
	}
	if w.t.kind(fn) == kSuper {
		w.arguments(argNode, s)
		return w.superCall(s)
	}
	callee := w.expr(fn)
	w.arguments(argNode, s)
	if w.endsBefore(callee, argNode, s) {
		return unknown
	}
	switch w.t.kind(fn) {
	case kFunction, kIdentifier:
		s.this = named(globalName, "")
	case kParen:
		if callee.ref != nil && callee.ref.role == closure {
			s.this = &val{name: globalName, page: true, plain: true}
		}
	default: // called for something else, or not known
	}
	return w.apply(callee, s)
}

// callAny calls a member of obj whose name is one of several, or not known.
func (w *walk) callAny(obj, index *val, fn, argNode id, s *site) *val {
	names := index.keyTexts()
	var rest *val
	if len(names) == 0 || !index.Known() {
		rest = w.unknownMember(obj, index, fn)
		w.calledByAny(obj)
	}
	w.arguments(argNode, s)
	var out *val
	for _, k := range names {
		c := *s
		out = union(out, w.callMethod(obj, k, "subscript", fn, &c))
	}
	if rest != nil {
		s.this = obj
		out = union(out, w.apply(rest, s))
	}
	return out
}

// arguments evaluates what a call is given.
func (w *walk) arguments(n id, s *site) {
	if n == 0 {
		return
	}
	if w.t.kind(n) == kTemplate { // a tagged template: the text, then what stands in it
		parts := w.templateParts(n)
		v := text("")
		for _, p := range parts {
			v = plus(v, p)
		}
		s.args, s.tag, s.parts = append(s.args, v), true, w.tagged(n, parts)
		return
	}
	w.t.each(n, func(c id) {
		v := w.expr(c)
		if w.t.kind(c) != kSpread {
			s.args = append(s.args, v)
			return
		}
		items, open := elements(w.iterated(v, n))
		s.args = append(s.args, items...)
		if open {
			s.args = append(s.args, itemOf(v))
			s.open = true
		}
	})
	if len(s.args) > maxItems {
		s.args, s.open = s.args[:maxItems], true
	}
}

// new evaluates a constructor call.
func (w *walk) new(n id) *val {
	s := &site{n: n, new: true}
	callee := w.expr(w.t.child(n, fConstructor))
	w.arguments(w.t.child(n, fArguments), s)
	return w.apply(callee, s)
}

// callMethod calls the member of obj with that name.
func (w *walk) callMethod(obj *val, key, how string, at id, s *site) *val {
	if obj.alts != nil {
		var out *val
		for _, a := range obj.alts {
			c := *s
			out = union(out, w.callMethod(a, key, how, at, &c))
		}
		return out
	}
	s.this = obj
	if v, ok := w.thenable(obj, key, s); ok {
		return v
	}
	if v, ok := w.builtinMethod(obj, key, s); ok {
		w.handOver(s, nil)
		return v
	}
	if obj.foreign() && runners[key] && slices.Contains(obj.From, "module") {
		w.dynamic(facts.DynCall, key+" of a module that is not known", s.n, obj.From...)
	}
	return w.apply(w.member(obj, key, how, at), s)
}

// runners are members of modules that run programs or code.
var runners = map[string]bool{
	"exec": true, "execSync": true, "spawn": true, "spawnSync": true, "execFile": true, "execFileSync": true, "fork": true,
	"runInThisContext": true, "runInNewContext": true, "runInContext": true, "Script": true, "compileFunction": true, "_load": true,
}

// apply calls a value.
func (w *walk) apply(callee *val, s *site) *val {
	if callee.alts != nil {
		var out *val
		for _, a := range callee.alts {
			c := *s
			out = union(out, w.apply(a, &c))
		}
		return out
	}
	switch {
	case callee.name != "":
		s.name, s.how = callee.name, callee.how
		if s.this == nil || callee.this != nil && s.this.name == globalName {
			s.this = callee.this
		}
		s.recv = callee.recv
		return w.applyName(callee, s)
	case callee.ref != nil:
		return w.applyRef(callee, s)
	}
	from := s.origins()
	w.handOver(s, from)
	return opaque(merge(callee.From, from))
}

func (w *walk) applyRef(callee *val, s *site) *val {
	o := callee.ref
	switch o.role {
	case class:
		return w.construct(callee, s)
	case closure:
		if s.new {
			return w.constructOld(callee, s)
		}
		if s.tag {
			s.args, s.tag = s.parts, false
		}
		return w.invoke(o.fn, s.this, s.args, s.n)
	case bound:
		c := *s
		c.args = append(o.items[:len(o.items):len(o.items)], s.args...)
		c.this = o.made
		if name := o.base.name; name != "" && !calling[last(name)] { // its own object is known
			c.this = nil
		}
		return w.apply(o.base, &c)
	case proxy:
		how, args := "apply", []*val{unknown, list(s.args)}
		if s.new {
			how, args = "construct", []*val{list(s.args)}
		}
		if v, ok := w.proxied(callee, how, args, s.n); ok {
			return v
		}
		return w.apply(o.items[0], s)
	case resolver:
		if o.base != nil && o.base.ref != nil {
			w.resolve(o.base.ref, settled(s.arg(0)))
		}
		return undefined
	default: // nothing that can be called
	}
	return w.lost(s)
}

// anyGlobal calls a global whose name is not known.
func (w *walk) anyGlobal(callee *val, s *site) *val {
	switch {
	case callee.page && !w.defines && len(w.pages) < maxKept:
		if w.quiet == 0 {
			w.pages = append(w.pages, w.pos(s.n))
		}
		return opaque(s.origins())
	case s.new && !s.open && !slices.ContainsFunc(s.args, w.notSized):
		// new Array(2), whichever array that is: nothing that text could say. It may be a function of the program's own.
		w.wild = w.wild || !w.idle
		return of(facts.Value{Type: s.name, From: s.origins()})
	}
	w.dynamic(facts.DynCall, "a global whose name is not known", s.n, s.origins()...)
	return w.lost(s)
}

// notSized reports what is neither a number nor room for bytes.
func (w *walk) notSized(v *val) bool {
	switch v.Type {
	case "ArrayBuffer", "SharedArrayBuffer":
		return !v.simple() || w.extraOf[v] != nil
	case "int", "float", "bool", "none":
		return !v.simple() || !v.Known()
	}
	return true
}

// lost gives what comes of a call of which nothing is known.
func (w *walk) lost(s *site) *val {
	from := s.origins()
	w.handOver(s, from)
	return opaque(from)
}

// handOver says that functions given to a call will be called at some time, with something from there.
func (w *walk) handOver(s *site, from []string) {
	if w.withheld(s.name, s.args...) {
		return
	}
	for _, a := range s.args {
		w.giveFunction(a, from, 2)
		w.callNow(a, from, s.n)
	}
}

func (w *walk) giveFunction(a *val, from []string, depth int) {
	a.all(func(v *val) {
		switch {
		case v.ref == nil || depth == 0:
		case v.ref.fn != nil && v.ref.role == closure:
			v.ref.fn.handed = true
			if v.ref.fn.given == nil && from != nil {
				g := opaque(from)
				v.ref.fn.given = []*val{g, g, g}
			}
		case v.ref.role == instance && v.ref.base.ref != nil && v.ref.base.ref.role == class:
			w.giveMethods(v.ref.base.ref, from, depth)
		case v.ref.role == plain && depth > 1:
			for _, k := range v.ref.keys {
				w.giveFunction(v.ref.props[k], from, depth-1)
			}
		}
	})
}

// giveMethods says that an instance of a class was given away.
func (w *walk) giveMethods(c *object, from []string, depth int) {
	for _, m := range c.proto {
		w.giveFunction(m, from, depth-1)
	}
}

// applyName calls something that is not the program's own.
func (w *walk) applyName(callee *val, s *site) *val {
	if v, ok := w.reflected(callee, s); ok {
		return v
	}
	if sets[s.name] {
		w.setsGlobals(s.arg(0))
		w.disguises(s.arg(0))
	}
	w.defines = w.defines || strings.HasSuffix(s.name, ".__defineGetter__")
	if strings.HasSuffix(s.name, unknownSuffix) {
		owner := strings.TrimSuffix(s.name, unknownSuffix)
		if owner == globalName {
			return w.anyGlobal(callee, s)
		} else if class := w.module(owner); class != "" && !eager[class] {
			w.dynamic(facts.DynAttr, owner+"[…]", s.n, callee.From...)
		}
		return w.lost(s)
	}
	switch s.name {
	case unknownConstructor:
		return opaque(s.origins())
	case "Symbol":
		if v := w.symbol(s); v != nil {
			return v
		}
	}
	if f, ok := natives[s.name]; ok {
		if v, done := f(w, s); done {
			if !s.keeps() {
				w.handOver(s, nil)
			}
			return v
		}
	}
	for _, proto := range []string{"String", "Array", "Buffer", "Number"} {
		if key, ok := strings.CutPrefix(s.name, proto+".prototype."); ok && s.this != nil {
			if v, ok := w.builtinMethod(s.this, key, s); ok {
				return v
			}
			return w.lost(s)
		}
	}
	if pureName(s.name) && !w.known(s.name) {
		return w.lost(s)
	}
	return w.report(s)
}

// report tells the builder of a call, and gives what comes back.
func (w *walk) report(s *site) *val {
	v := w.emit(s)
	from := v.From
	if s.this != nil {
		from = merge(from, s.this.From)
	}
	w.handOver(s, from)
	w.callBacks(s, from)
	w.events(s)
	w.shapes(s)
	return v
}

// callBacks calls what is handed over where that is not a function of the program: on('data', eval).
func (w *walk) callBacks(s *site, from []string) {
	for i, a := range s.args {
		if i == 0 && len(s.args) == 1 && !callsBack[last(s.name)] || i > 4 {
			continue
		}
		a.all(func(f *val) {
			if f.name == "" || pureName(f.name) || !callsBack[last(s.name)] {
				return
			}
			c := &site{n: s.n, args: []*val{opaque(from)}, open: true}
			w.apply(&val{name: f.name, how: "value", recv: f.recv, this: f.this}, c)
		})
	}
}

// callsBack are methods that call what they are given.
var callsBack = map[string]bool{
	"on": true, "once": true, "addListener": true, "addEventListener": true, "prependListener": true, "then": true,
	"catch": true, "finally": true, "map": true, "forEach": true, "filter": true, "reduce": true, "some": true,
	"every": true, "find": true, "flatMap": true, "get": true, "subscribe": true, "pipe": true, "nextTick": true,
	"each": true, "use": true, "post": true, "readFile": true, "question": true, "request": true, "createServer": true,
}
