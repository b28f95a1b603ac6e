package python

import (
	"maps"
	"slices"
	"strings"
)

// function is a def or a lambda of the program.
type function struct {
	name   string
	params []param
	body   *node
	t      *tree
	scope  *scope // where it stands
	module *scope
	cls    *class
	lambda bool
	static bool
	clsArg bool // a classmethod
	prop   bool

	runs   int // how often it was followed
	active int
	memo   map[string]*val
	opaque *val     // what it gives for arguments that are not known
	given  []string // where these came from
	kept   []string // names of attributes that it was put under, of objects that are not known
	// version and novel are the interpreter's, when memo and opaque were made.
	version int
	novel   int
	matters bool     // it, or what it calls, does something that the tables know
	news    int      // the last of its runs, after the first many, that did something else than those before
	inside  []string // keys of the arguments of calls that are going on
	itself  *bool    // see callsItself
	later   bool     // something outside was given it, see postpones
}

type param struct {
	name       string
	def        *val
	star, kw   bool // *args, **kwargs
	onlyByName bool
}

// arguments are those of one call.
type arguments struct {
	pos  []*val
	kw   map[string]*val
	keys []string // of kw, in order
	open bool     // there may be more: *args of unknown length
	rest []string // origins of those
	how  string   // how the callee was found, where that is said
	// later: the callee calls none of them before the program starts something.
	later bool
}

func (a *arguments) at(i int, name string) *val {
	if i >= 0 && i < len(a.pos) {
		return a.pos[i]
	}
	return a.kw[name]
}

func (a *arguments) get(i int, name string) *val {
	if v := a.at(i, name); v != nil {
		return v
	}
	if a.open {
		return &val{from: a.rest}
	}
	return nil
}

func (a *arguments) set(name string, v *val) {
	if a.kw == nil {
		a.kw = map[string]*val{}
	}
	if _, ok := a.kw[name]; !ok {
		a.keys = append(a.keys, name)
	}
	a.kw[name] = v
}

// all are the arguments in order, as parts of a derived value.
func (a *arguments) all() []*val {
	out := append([]*val(nil), a.pos...)
	for _, k := range a.keys {
		out = append(out, a.kw[k])
	}
	if a.open {
		out = append(out, &val{from: a.rest})
	}
	return out
}

// define binds a def; decorators are applied from the inside out.
func (it *interp) define(n *node, s *scope, decorators []*node) {
	name := identifier(it.t.text(n.child("name")))
	f := &function{name: name, body: n.child("body"), t: it.t, scope: s, module: it.module}
	f.params = it.parameters(n.child("parameters"), s)
	it.evalOr(n.child("return_type"), s)
	if s.class {
		f.cls = it.currentClass(s)
	}
	it.pending = append(it.pending, f)
	it.defined(name)
	v := &val{kind: kFunc, x: &extra{fn: f}}
	it.set(s, name, v)
	for i := len(decorators) - 1; i >= 0; i-- {
		v = it.decorate(decorators[i], v, s)
	}
	it.set(s, name, v)
}

// decorate applies one decorator. One that is not of the program gives the
// function back, so that calls of it are still followed.
func (it *interp) decorate(d *node, v *val, s *scope) *val {
	expr := d.nth(0)
	if expr == nil {
		return v
	}
	f := v.fn()
	text := it.t.text(expr)
	if f != nil {
		switch text {
		case "staticmethod":
			f.static = true
			return v
		case "classmethod":
			f.clsArg = true
			return v
		case "property", "cached_property", "functools.cached_property":
			f.prop = true
			return v
		}
		if strings.HasSuffix(text, ".setter") || strings.HasSuffix(text, ".getter") || strings.HasSuffix(text, ".deleter") {
			return v
		}
	}
	dec := it.eval(expr, s)
	if (dec.kind == kRef || dec.kind == kObj) && marks(dec.text) {
		if f != nil && strings.HasSuffix(dec.text, ".parametrize") {
			it.began(true) // a test, which is run
			it.parametrize(f, expr.child("arguments"), s)
		}
		return v // it runs nothing by itself
	}
	runs := 0
	if f != nil {
		runs = f.runs
	}
	got := it.call(dec, &arguments{pos: []*val{v}, how: "decorator", later: it.postpones(it.decorates(dec, expr, s))}, expr, s)
	if got.kind == kFunc || got.kind == kClass || got.kind == kWrap {
		return got
	}
	if f != nil && dec.kind != kFunc {
		f.runs = runs // a callback that was run with nothing known: its real calls still count
	}
	return v
}

// marks reports that a decorator runs nothing by itself.
func marks(name string) bool {
	return harmless[lastPart(name)] || strings.HasPrefix(name, "pytest.mark.")
}

// parametrize notes what the test runner hands to a test: what stands in the
// decorator, after the names of the parameters.
func (it *interp) parametrize(f *function, args *node, s *scope) {
	if args == nil {
		return
	}
	a := it.arguments(args, s)
	if len(a.pos) > 0 {
		a.pos = a.pos[1:]
	}
	it.passes(f.name, a)
}

func (v *val) fn() *function {
	if v.kind == kFunc {
		return v.x.fn
	}
	return nil
}

func (it *interp) decorated(n *node, s *scope) {
	var decorators []*node
	n.each(func(c *node) {
		switch c.kind {
		case "decorator":
			decorators = append(decorators, c)
		case "function_definition":
			it.define(c, s, decorators)
		case "class_definition":
			it.defineClass(c, s, decorators)
		}
	})
}

// parameters reads a parameter list and evaluates its defaults.
func (it *interp) parameters(n *node, s *scope) []param {
	if n == nil {
		return nil
	}
	var out []param
	byName := false
	n.each(func(c *node) {
		p := param{onlyByName: byName}
		it.evalOr(c.child("type"), s)
		switch c.kind {
		case "identifier":
			p.name = it.t.text(c)
		case "default_parameter", "typed_default_parameter":
			p.name = it.t.text(c.child("name"))
			if d := c.child("value"); d != nil {
				p.def = it.eval(d, s)
			}
		case "typed_parameter":
			inner := c.nth(0)
			if inner == nil {
				return
			}
			p.star, p.kw = inner.kind == "list_splat_pattern", inner.kind == "dictionary_splat_pattern"
			p.name = strings.TrimLeft(it.t.text(inner), "* ")
		case "list_splat_pattern":
			p.star, p.name, byName = true, strings.TrimLeft(it.t.text(c), "* "), true
		case "dictionary_splat_pattern":
			p.kw, p.name = true, strings.TrimLeft(it.t.text(c), "* ")
		case "keyword_separator":
			byName = true
			return
		case "tuple_pattern":
			p.name = "" // Python 2
		default:
			return
		}
		p.name = identifier(strings.TrimSpace(p.name))
		out = append(out, p)
	})
	return out
}

func (it *interp) lambda(n *node, s *scope) *val {
	f := &function{name: "<lambda>", lambda: true, body: n.child("body"), t: it.t, scope: s, module: it.module}
	f.params = it.parameters(n.child("parameters"), s)
	it.pending = append(it.pending, f)
	return &val{kind: kFunc, x: &extra{fn: f}}
}

// bind gives the parameters of f their values for one call.
func (f *function) bind(a *arguments, self *val) map[string]*val {
	vars := make(map[string]*val, len(f.params)+1)
	pos := a.pos
	if self != nil {
		pos = append([]*val{self}, pos...)
	}
	used := map[string]bool{}
	for _, p := range f.params {
		switch {
		case p.star:
			vars[p.name] = &val{kind: kTuple, open: a.open, from: a.rest, x: &extra{items: pos}}
			pos = nil
		case p.kw:
			d := &val{kind: kDict, open: a.open, x: &extra{dict: map[string]*val{}}}
			for _, k := range a.keys {
				if !used[k] {
					d.put(str(k), a.kw[k])
				}
			}
			vars[p.name] = d
		case !p.onlyByName && len(pos) > 0:
			vars[p.name], pos = pos[0], pos[1:]
		case a.kw[p.name] != nil:
			vars[p.name] = a.kw[p.name]
			used[p.name] = true
		case a.open:
			vars[p.name] = prefer(p.def, &val{from: a.rest})
		case p.def != nil:
			vars[p.name] = p.def
		default:
			vars[p.name] = unknown
		}
	}
	return vars
}

// follow runs a function of the program with these arguments.
func (it *interp) follow(f *function, a *arguments, self *val, n *node) *val {
	if f.active > 1 || len(it.calls) >= maxCalls {
		if f.active == 0 {
			return it.callUnknown(f, it.origins(a)...)
		}
		return derived(a.all()...)
	}
	it.refresh(f)
	key, plain := a.key()
	plain = plain && (self == nil || self.kind == kInst && self == self.x.cls.self)
	if plain {
		if v, ok := f.memo[key]; ok {
			return v
		}
	}
	if f.body == nil || f.runs >= max(minRuns, runNodes/int(f.body.size)) {
		return it.callUnknown(f, it.origins(a)...)
	}
	if plain && f.runs > sameRuns && slices.Contains(f.inside, key) {
		return derived(a.all()...) // within itself, for the same
	}
	vars := f.bind(a, self)
	f.inside = append(f.inside, key)
	v := it.enterFunction(f, vars, n)
	f.inside = f.inside[:len(f.inside)-1]
	if it.refresh(f); plain && it.quiet == 0 {
		if f.memo == nil {
			f.memo = map[string]*val{}
		}
		f.memo[key] = v
	}
	return v
}

// refresh forgets results that were made when other names were bound. A
// function that did nothing in many runs, or nothing new in the last of many,
// and is called from others, is left at that: else libraries that keep
// registers cost more than they are worth.
func (it *interp) refresh(f *function) {
	switch {
	case f.version == it.version, len(it.calls) > 0 && f.runs > idleRuns && !f.matters,
		len(it.calls) > 0 && f.novel == it.novel && f.runs > max(f.news, sameRuns)+lateRuns:
		return
	}
	f.novel = it.novel
	f.version, f.memo, f.opaque, f.given = it.version, nil, nil, nil
}

// key names the arguments, where all are plain constants or unknown.
func (a *arguments) key() (string, bool) {
	if a.open {
		return "", false
	}
	var b strings.Builder
	put := func(v *val) bool {
		if v.kind == kUnknown && v.x == nil && (len(v.from) == 0 || len(v.from) == 1 && v.from[0] == "param") {
			b.WriteString("?;")
			return true
		}
		if !v.isConst() || len(v.more) > 0 || len(v.from) > 0 || len(v.text) > 200 || v.open {
			return false
		}
		b.WriteByte('0' + byte(v.kind))
		b.WriteString(v.text)
		b.WriteByte(0)
		return true
	}
	for _, v := range a.pos {
		if !put(v) {
			return "", false
		}
	}
	for _, k := range a.keys {
		b.WriteString(k)
		b.WriteByte('=')
		if !put(a.kw[k]) {
			return "", false
		}
	}
	return b.String(), true
}

// callUnknown follows a function once with arguments of which nothing but the
// defaults is known, beside where they come from.
func (it *interp) callUnknown(f *function, from ...string) *val {
	it.refresh(f)
	from = mix([]string{"param"}, from)
	if f.opaque != nil && !slices.ContainsFunc(from, func(s string) bool { return !slices.Contains(f.given, s) }) {
		return f.opaque
	}
	f.opaque, f.given = unknown, mix(f.given, from)
	vars := make(map[string]*val, len(f.params))
	for i, p := range f.params {
		v := &val{from: from}
		switch {
		case p.star:
			v = &val{kind: kTuple, open: true, from: v.from, x: &extra{}}
		case p.kw:
			v = &val{kind: kDict, open: true, from: v.from, x: &extra{dict: map[string]*val{}}}
		case i == 0 && f.cls != nil && !f.static:
			v = f.cls.instance()
			if f.clsArg {
				v = f.cls.value
			}
		case p.def != nil && p.def.isConst() && p.def.kind != kNone:
			c := *p.def
			c.open = true
			v = c.with(v.from)
		case p.def != nil && p.def.kind != kNone:
			v = join(p.def, v)
		}
		vars[p.name] = v
	}
	v := it.enterFunction(f, vars, f.body)
	f.version, f.opaque = it.version, v
	return v
}

// enterFunction runs the body in a scope of its own.
func (it *interp) enterFunction(f *function, vars map[string]*val, n *node) *val {
	if f.body == nil || !it.enter(n) {
		return unknown
	}
	defer it.leave()
	f.runs++
	f.active++
	reported, news := it.reported, it.news
	it.calls = append(it.calls, f)
	before, at, module := it.t, it.at, it.module
	if f.t != it.t {
		if at == nil {
			it.at = n
		}
		if at == nil && n == f.body && f.t.at != nil {
			it.at = f.t.at // nothing of this text calls it
		}
		it.t = f.t
	}
	it.module = f.module
	defer func() {
		it.t, it.at, it.module = before, at, module
		f.matters = f.matters || it.reported > reported
		if it.news > news {
			f.news = f.runs
		}
		f.active--
		it.calls = it.calls[:len(it.calls)-1]
	}()
	s := newScope(f.scope)
	s.vars, s.fn, s.loops = vars, f, it.loops
	s.given = maps.Clone(vars)
	if f.lambda {
		return it.eval(f.body, s)
	}
	it.block(f.body, s)
	if len(s.yields) > 0 {
		return &val{kind: kList, open: s.endless, x: &extra{items: s.yields}}
	}
	if s.returns == nil {
		return none
	}
	return s.returns
}
