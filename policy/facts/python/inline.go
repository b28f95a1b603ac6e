package python

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// evaluate is eval or exec of a text: the builder scans it, and it is followed
// here where it is known.
func (c *invocation) evaluate(code *val) (got, v *val) {
	if each := code.each(); len(each) > 1 && len(c.pos) > 0 && c.pos[0] == code {
		return c.evaluateEach(code, each)
	}
	if got := c.evaluateMarked(code); got != nil {
		return got, got
	}
	if got := c.evaluateSkeleton(code); got != nil {
		return got, got
	}
	t := c.it.inlinable(code)
	s, d := c.s, (*val)(nil)
	own := t != nil && c.ownNames()
	if t != nil && !own {
		if lone, names := c.loneNames(); lone != nil {
			s, d, own = lone, names, true
		}
	}
	if t != nil && c.makesNames() {
		c.it.dynamic(facts.DynOpaqueCode, c.it.t.text(c.n), c.n)
	}
	known := t != nil && len(code.origins(0)) == 0
	tame := known && own && c.it.tame(t, s, d != nil, c.keepsNames(t, d))
	apart := known && !tame && (!own || d != nil) && !c.open && c.it.tameApart(t, c.all()[1:])
	m := c.it.b.Mark()
	c.it.b.Offers(own)
	got = c.it.report(c.name, c.arguments, nil, c.n)
	c.it.b.Offers(false)
	if t == nil {
		return got, nil
	}
	v = c.it.inline(t, c, s)
	if d != nil {
		d.bind(s)
	}
	switch {
	case c.it.quiet > 0:
	case (tame || apart) && !c.it.b.Told(m) && (tame || c.name == "eval" || c.opensNames()):
		c.it.b.Tame(m)
	case len(code.origins(0)) == 0 && c.it.imports(t) && (own && d == nil || c.opensNames()):
		c.it.b.Imports(m)
	case known && own && d == nil && c.names(t, v) && !c.it.b.Told(m):
		c.it.b.Tame(m)
	}
	return got, v
}

// evaluateEach is evaluate of a text that is one of several.
func (c *invocation) evaluateEach(code *val, texts []string) (got, v *val) {
	for _, s := range texts {
		one := *c
		given := *c.arguments
		given.pos = slices.Clone(c.pos)
		given.pos[0] = text(code.kind, s).with(code.from)
		one.arguments = &given
		g, w := one.evaluate(given.pos[0])
		if w == nil {
			w = g.with(code.origins(0))
		}
		got, v = join(got, g), join(v, w)
	}
	return got, v
}

// measured is a statement as text that is run among the names of the module, to
// see how long it takes.
func (c *invocation) measured() *val {
	statement := c.get(0, "statement")
	if statement == nil || c.open {
		return nil
	}
	among := *c
	among.s, among.arguments = c.it.module, &arguments{pos: []*val{statement}, how: c.how}
	among.evaluate(statement)
	return none
}

// measuredAmong is that among names that the call says, as exec has them.
func (c *invocation) measuredAmong() *val {
	among := &arguments{how: c.how, open: c.open, rest: c.rest}
	for i, key := range []string{"statement", "globals", "locals"} {
		if v := c.get(i, key); v != nil {
			among.pos = append(among.pos, v)
		}
	}
	return c.it.call(ref("exec", ""), among, c.n, c.s)
}

// timed is a statement as text that is run among names that the call says; it
// is scanned by itself as well.
func (c *invocation) timed() *val {
	names := c.kw["globals"]
	if names == nil {
		return nil
	}
	s := c.it.module
	if names.kind != kSpace {
		among := invocation{arguments: &arguments{pos: []*val{none, names}}}
		if s, _ = among.loneNames(); s == nil {
			return nil
		}
	}
	for _, text := range []*val{c.get(1, "setup"), c.get(0, "stmt")} {
		if text == nil {
			continue
		}
		if t := c.it.inlinable(text); t != nil {
			c.it.inline(t, c, s)
		}
	}
	return nil
}

// opensNames: the text puts what it imports or defines into dictionaries of the
// program, which may hold any function from then on.
func (c *invocation) opensNames() bool {
	spaces := c.all()[1:]
	if c.open || slices.ContainsFunc(spaces, func(v *val) bool { return v.kind != kDict }) {
		return false
	}
	for _, v := range spaces {
		v.put(unknown, fromSomewhere)
	}
	return true
}

// imports reports that a text does nothing but import modules, none of which
// does anything that matters by itself.
func (it *interp) imports(t *tree) bool {
	for c := t.root.first; c != nil; c = c.next {
		switch c.kind {
		case "comment", "future_import_statement":
		case "import_statement", "import_from_statement":
			if !it.importsPlain(t, c) {
				return false
			}
		default:
			return false
		}
	}
	return t.root.first != nil
}

// ordinary reports that a module, or what a module has, is not known to do
// anything that matters.
func (it *interp) ordinary(name string) bool {
	root, _, _ := strings.Cut(name, ".")
	_, known := it.b.API(canonical(name))
	return !known && !it.dangerous(root) && !it.dangerous(name) && !stdPackages[root] && !builtins[root] && !it.b.Busy(root)
}

func (it *interp) importsPlain(t *tree, n *node) bool {
	for c := n.first; c != nil; c = c.next {
		if c.kind == "aliased_import" && !it.importsPlain(t, c) {
			return false
		}
		if c.kind != "dotted_name" || n.kind == "aliased_import" && c.field != "name" || n.kind == "import_from_statement" && c.field != "module_name" {
			continue
		}
		if len(t.text(c)) > 200 || !it.ordinary(t.text(c)) {
			return false
		}
	}
	return true
}

// ownNames: the text is run among the names of the program.
func (c *invocation) ownNames() bool {
	return !c.open && !slices.ContainsFunc(append(slices.Clone(c.pos[min(1, len(c.pos)):]), c.all()[len(c.pos):]...), func(v *val) bool {
		return v.kind != kSpace || v.x != nil || v.text != ""
	})
}

// loneNames are those of a dictionary that the text is run among, and of which
// all is known, and the dictionary that gets what it binds. Names of the program
// mean nothing there.
func (c *invocation) loneNames() (*scope, *val) {
	spaces := append(slices.Clone(c.pos[min(1, len(c.pos)):]), c.all()[len(c.pos):]...)
	if c.open || len(spaces) == 0 || len(spaces) > 2 {
		return nil, nil
	}
	s := newScope(nil)
	for _, d := range spaces {
		if d.kind != kDict || d.open || len(d.x.order) > maxLoneNames || d.otherBuiltins() {
			return nil, nil
		}
		for _, key := range d.x.order {
			name, ok := strings.CutPrefix(key, textKey)
			if !ok {
				return nil, nil
			}
			if name != "__builtins__" {
				s.vars[name] = d.x.dict[key]
			}
		}
	}
	return s, spaces[len(spaces)-1]
}

// makesNames: the text is run among the names of something that makes up what it
// does not have.
func (c *invocation) makesNames() bool {
	return slices.ContainsFunc(c.all()[min(1, len(c.all())):], func(v *val) bool {
		switch v.kind {
		case kDict:
			made := v.x.dict["?:"]
			return made != nil && made.kind >= kRef && made.kind <= kWrap
		case kInst:
			return v.x.cls.member("__missing__", 0) != nil || v.x.cls.member("__getitem__", 0) != nil
		default:
			return false
		}
	})
}

// otherBuiltins: what every program has may mean something else to text that is
// run among the names of a dictionary.
func (v *val) otherBuiltins() bool {
	b := v.x.dict[textKey+"__builtins__"]
	return b != nil && b.kind != kNone && (b.kind != kDict || b.open || !b.someBuiltins()) && !ofBuiltins(b) && (b.kind != kRef || b.text != "builtins")
}

// someBuiltins reports a dictionary that has nothing but what every program has,
// under the same names.
func (v *val) someBuiltins() bool {
	for _, key := range v.x.order {
		name, ok := strings.CutPrefix(key, textKey)
		if b := v.x.dict[key]; !ok || b == nil || b.kind != kRef || b.text != name || !builtins[name] {
			return false
		}
	}
	return true
}

// maxLoneNames bounds what such a dictionary holds.
const maxLoneNames = 64

// textKey is how [dictKey] begins for a text.
var textKey = strconv.Itoa(int(kStr)) + ":"

// bind puts the names of a scope into a dictionary, as running text among them
// does, which adds those of every program.
func (v *val) bind(s *scope) {
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		if item := s.vars[name]; item != nil {
			v.put(str(name), item)
		}
	}
	v.put(str("__builtins__"), &val{kind: kSpace, x: &extra{self: ref("builtins", "attr")}})
}

// inlinable is code that can be followed here, nil where that is not so.
func (it *interp) inlinable(code *val) *tree {
	if code.kind == kObj && code.text == "code" && len(code.x.recv) > 0 {
		code = fromFact(code.x.recv[0])
	}
	text, ok := code.oneText()
	if !ok || len(text) > 8192 || it.inlined >= 3 || strings.Count(text, "(")+strings.Count(text, "[") > 400 {
		return nil
	}
	t := it.g.parse(strings.TrimSpace(text))
	if t == nil || t.root == nil || t.errors > 0 {
		return nil
	}
	return t
}

// inline follows code that the program made, among the names of s. What
// it does is reported only where it uses those names: the scan of the text by
// itself, which the builder starts, sees the rest.
func (it *interp) inline(t *tree, c *invocation, s *scope) *val {
	quiet := !it.usesOwn(t, t.root, s)
	before, at := it.t, it.at
	if at == nil {
		it.at = c.n
	}
	it.t = t
	it.inlined++
	it.limit += 4 * t.nodes
	if quiet {
		it.quiet++
	}
	defer func() {
		it.t, it.at = before, at
		it.inlined--
		if quiet {
			it.quiet--
		}
	}()
	if c.name == "eval" {
		return it.evalOr(t.root.nth(0), s)
	}
	it.block(t.root, s)
	return none
}

// usesOwn reports whether code names something of the program that is not a
// plain constant or module.
func (it *interp) usesOwn(t *tree, n *node, s *scope) bool {
	if n.kind == "identifier" {
		v, ok := it.find(s, identifier(t.text(n)))
		if !ok || n.field == "attribute" {
			return false
		}
		if v.kind == kRef {
			name := t.text(n)
			return v.text != name
		}
		return !v.isConst() || v.kind == kStr || v.kind == kBytes
	}
	for c := n.first; c != nil; c = c.next {
		if it.usesOwn(t, c, s) {
			return true
		}
	}
	return false
}
