package python

import (
	"maps"
	"slices"
	"strings"
)

// reach is what of a text may run by itself: the bodies of functions that the
// module, or what it reaches, names in any way. A name counts wherever it
// stands, in strings too; a function is idle only where nothing says its name.
// A method that Python itself calls is named by the name of its class.
type reach struct {
	t      *tree
	types  bool // the text looks at its annotations
	wild   bool // names are put together while it runs: anything may be called
	module bool // the text can get hold of its own module as an object
	doc    bool // it looks at its docstrings
	code   bool // it may run a text of several lines
	words  map[string]bool
	named  map[string][]place // bodies by the name that reaches them
	bodies map[*node]bool
	loose  map[string]bool // words that stand elsewhere than where they are called
	plain  map[*node]bool  // bodies that nothing but a call of them runs
	todo   []place
}

// place is a body, or a part of one, and where that stands.
type place struct {
	n     *node
	class string // around it
	open  bool   // it is the class itself, and not a method of it
	heir  bool   // the class has bases, whose code may call its methods
	made  bool   // something else than Python makes the class
}

// anyMethod is a name that reaches all methods; after it stands a class, or
// nothing for all classes. No identifier has it.
const anyMethod = "."

// lookups are functions that reach others by names that need not stand in the
// text, and members are attributes that do. What is found in a namespace
// (globals(), a module, a frame) is followed, see ownModule.
var (
	lookups = map[string]bool{"vars": true, "getattr": true, "attrgetter": true, "methodcaller": true, "getmembers": true, "get_objects": true}
	members = map[string]bool{
		"__dict__": true, "__getattribute__": true, "attrgetter": true, "methodcaller": true, "getmembers": true,
		"__subclasses__": true, "get_objects": true, "get_referrers": true,
	}
	// ofObject are those that reach into an object, and no further.
	ofObject = map[string]bool{
		"getattr": true, "__dict__": true, "vars": true, "__getattribute__": true, "attrgetter": true, "methodcaller": true, "getmembers": true,
	}
	// runners are words of texts that run other texts.
	runners = []string{"exec", "eval", "compile", "timeit", "Profile", "profile", "runsource", "runcode", "pdb", "bdb", "Interpreter", "Console"}
	// modules are words of texts that may get hold of their own module in a way
	// that is not followed.
	modules = []string{"__loader__", "__spec__", "runpy"}
)

// harmless are decorators that do not run what they are given by themselves.
var harmless = map[string]bool{
	"staticmethod": true, "classmethod": true, "property": true, "abstractmethod": true, "cached_property": true,
	"contextmanager": true, "asynccontextmanager": true, "lru_cache": true, "cache": true, "overload": true, "wraps": true,
	"dataclass": true, "total_ordering": true, "singledispatch": true, "final": true, "unique": true, "fixture": true,
	"setter": true, "getter": true, "deleter": true,
}

// reached follows t; own says that it gets hold of its own module as an object.
func reached(t *tree, own bool) *reach {
	r := &reach{
		t: t, words: map[string]bool{}, loose: map[string]bool{}, named: map[string][]place{}, bodies: map[*node]bool{}, plain: map[*node]bool{},
	}
	r.doc = strings.Contains(t.src, "__doc__")
	r.code = slices.ContainsFunc(runners, func(w string) bool { return strings.Contains(t.src, w) })
	r.types = strings.Contains(t.src, "__annotations__") || strings.Contains(t.src, "get_type_hints")
	r.module = own || slices.ContainsFunc(modules, func(w string) bool { return strings.Contains(t.src, w) })
	if own {
		r.anything()
	}
	r.walk(place{n: t.root})
	for len(r.todo) > 0 {
		p := r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		r.walk(p)
	}
	return r
}

// idle reports that nothing in the text reaches this body.
func (r *reach) idle(body *node) bool { return !r.bodies[body] }

// anything: from here on, all that is defined is reached.
func (r *reach) anything() {
	if r.wild {
		return
	}
	r.wild = true
	for _, name := range slices.Sorted(maps.Keys(r.named)) {
		for _, p := range r.named[name] {
			r.body(p)
		}
	}
}

func (r *reach) body(p place) {
	if p.n != nil && !r.bodies[p.n] {
		r.bodies[p.n] = true
		r.todo = append(r.todo, p)
	}
}

// word notes a name that stands in what is reached, and not as what is called.
func (r *reach) word(w string) {
	r.loose[w] = true
	r.mention(w)
}

func (r *reach) mention(w string) {
	if r.words[w] {
		return
	}
	r.words[w] = true
	for _, p := range r.named[w] {
		r.body(p)
	}
}

// define notes a body; any of the names reaches it.
func (r *reach) define(p place, names ...string) {
	if p.n == nil {
		return
	}
	for _, name := range names {
		if r.wild || r.words[name] {
			r.body(p)
			return
		}
		r.named[name] = append(r.named[name], p)
	}
}

// walk notes the words of a place, and the functions that are defined there.
func (r *reach) walk(p place) {
	if p.n == nil {
		return
	}
	for c := p.n.first; c != nil; c = c.next {
		at := p
		at.n = c
		switch c.kind {
		case "comment", "import_statement", "future_import_statement":
		case "import_from_statement":
			r.imported(c)
		case "expression_statement":
			if r.doc || !docstring(c) {
				r.walk(at)
			}
		case "identifier":
			r.identifier(p, c)
		case "string":
			r.text(at)
		case "type":
			r.annotation(at)
		case "decorated_definition":
			r.decorated(at)
		case "function_definition":
			r.function(at, false)
		case "class_definition":
			r.class(at, false)
		case "assignment", "augmented_assignment":
			r.assignment(at)
		case "call":
			r.call(at)
		case "keyword_argument", "default_parameter", "typed_default_parameter":
			at.n = wrapped(c.child("value"))
			r.walk(at)
			if t := c.child("type"); t != nil {
				r.annotation(place{n: t})
			}
		default:
			if c.size > 1 {
				r.walk(at)
			}
		}
	}
}

// call: what is only exported is not reached by that.
func (r *reach) call(p place) {
	if f := p.n.child("function"); f == nil || !strings.HasPrefix(r.t.text(f), "__all__.") {
		r.walk(p)
	}
}

// assignment: what only gets another name is reached by that.
func (r *reach) assignment(p place) {
	left, right := p.n.child("left"), p.n.child("right")
	switch {
	case left != nil && r.t.text(left) == "__all__":
	case left != nil && right != nil && left.kind == "identifier" && right.kind == "identifier" && !special(r.t.text(left)):
		p.n = wrapped(right)
		r.loose[identifier(r.t.text(right))] = true
		r.define(p, identifier(r.t.text(left)))
		if t := p.n.child("type"); t != nil {
			r.annotation(place{n: t})
		}
	default:
		r.walk(p)
	}
}

// docstring: a statement that is a text without holes.
func docstring(n *node) bool {
	s := n.nth(0)
	return s != nil && s.kind == "string" && s.next == nil && !holes(s)
}

func holes(n *node) bool {
	for c := n.first; c != nil; c = c.next {
		if c.kind == "interpolation" {
			return true
		}
	}
	return false
}

// imported: a lookup under another name is one whose use is not seen.
func (r *reach) imported(n *node) {
	for c := n.first; c != nil; c = c.next {
		if c.field == "name" && c.kind == "aliased_import" && lookups[r.t.text(c.child("name"))] {
			r.anything()
		}
	}
}

func (r *reach) identifier(p place, c *node) {
	switch p.n.kind {
	case "parameters", "lambda_parameters", "typed_parameter", "list_splat_pattern", "dictionary_splat_pattern":
		return // it is bound there
	}
	w := identifier(r.t.text(c))
	attribute := p.n.kind == "attribute" && c.field == "attribute"
	switch {
	case attribute && members[w]:
		r.lookup(p, p.n.child("object"), w)
	case !attribute && lookups[w] && !r.fixed(p.n, c, w):
		var of *node
		if args := p.n.child("arguments"); args != nil && c.field == "function" {
			of = args.nth(0)
		}
		r.lookup(p, of, w)
	}
	if attribute && p.n.field == "function" || !attribute && c.field == "function" && p.n.kind == "call" {
		r.mention(w)
		return
	}
	r.word(w)
}

// lookup: something of an object is reached by a name that need not stand in
// the text. What self has reaches methods of its class alone; what another
// object has, methods; and a function of the module only where the text can
// get hold of that.
func (r *reach) lookup(p place, of *node, how string) {
	switch {
	case of != nil && ofObject[how] && p.class != "" && (r.t.text(of) == "self" || r.t.text(of) == "cls"):
		r.word(anyMethod + p.class)
	case how == "vars" && of == nil: // a namespace
	case !ofObject[how] || r.module:
		r.anything()
	default:
		r.word(anyMethod)
	}
}

// fixed: getattr(x, "name") says which name it is.
func (r *reach) fixed(n, c *node, w string) bool {
	if w != "getattr" || n.kind != "call" || c.field != "function" {
		return false
	}
	args := n.child("arguments")
	if args == nil {
		return false
	}
	name := args.nth(1)
	return name != nil && name.kind == "string" && !holes(name) && !strings.Contains(r.t.text(name), "\\")
}

// text notes the words of a string, and what an f-string evaluates.
func (r *reach) text(p place) {
	if !p.n.named {
		return
	}
	if holes(p.n) {
		r.walk(p)
	}
	if s := r.t.text(p.n); !r.code && strings.ContainsRune(s, '\n') {
		return
	}
	for _, w := range strings.FieldsFunc(r.t.text(p.n), func(c rune) bool { return c < 128 && !wordRune(c) }) {
		r.word(identifier(w))
	}
}

func wordRune(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// annotation: a type that only names classes makes nothing of them.
func (r *reach) annotation(p place) {
	if r.types || strings.Contains(r.t.text(p.n), "(") {
		r.walk(p)
	}
}

func (r *reach) decorated(p place) {
	runs, marked := false, false
	for c := p.n.first; c != nil; c = c.next {
		at := p
		at.n = c
		switch c.kind {
		case "decorator":
			name := decorator(r.t.text(c))
			if strings.HasSuffix(name, ".parametrize") {
				marked = true // a test, which is run
			}
			runs = runs || !marks(name)
			r.walk(place{n: c})
		case "function_definition":
			r.function(at, runs)
			if body := c.child("body"); marked {
				at.n, r.plain[body] = body, !runs && !p.made
				r.body(at)
			}
		case "class_definition":
			r.class(at, runs)
		}
	}
}

// decorator is the name in the text of a decorator.
func decorator(text string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(text, "@")), "(")
	return name
}

func special(name string) bool { return strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") }

// hooks run where a class is made or derived from, before anything names it.
var hooks = map[string]bool{"__init_subclass__": true, "__set_name__": true, "__prepare__": true, "__class_getitem__": true}

func (r *reach) function(p place, runs bool) {
	name := identifier(r.t.text(p.n.child("name")))
	r.walk(place{n: p.n.child("parameters"), class: p.class})
	if t := p.n.child("return_type"); t != nil {
		r.annotation(place{n: t})
	}
	body := place{n: p.n.child("body"), class: p.class}
	switch {
	case runs, special(name) && !p.open, hooks[name]:
		r.body(body)
	case !p.open:
		r.plain[body.n] = true
		r.define(body, name)
	case special(name):
		r.plain[body.n] = name == "__init__"
		r.define(body, p.class)
	case p.heir:
		r.plain[body.n] = !p.made
		r.define(body, name, p.class, anyMethod, anyMethod+p.class)
	default:
		r.plain[body.n] = true
		r.define(body, name, anyMethod, anyMethod+p.class)
	}
}

// class: its body runs as it stands; its bases are code of it that runs when
// there are objects of it, while a metaclass runs at once.
func (r *reach) class(p place, runs bool) {
	name := identifier(r.t.text(p.n.child("name")))
	heir, made := runs, runs
	if bases := p.n.child("superclasses"); bases != nil {
		for c := bases.first; c != nil; c = c.next {
			switch {
			case !c.named || c.kind == "comment":
			case c.kind == "identifier" || c.kind == "attribute":
				heir = heir || r.t.text(c) != "object"
				r.define(place{n: wrapped(c)}, name)
			default:
				heir, made = true, true
				r.walk(place{n: wrapped(c)})
			}
		}
	}
	if runs {
		r.word(name)
	}
	r.walk(place{n: p.n.child("body"), class: name, open: true, heir: heir, made: made})
}

// wrapped is a node whose only child is a copy of n, so that n itself is
// walked as a child.
func wrapped(n *node) *node {
	if n == nil {
		return nil
	}
	c := *n
	c.next = nil
	return &node{kind: "argument_list", first: &c, size: n.size + 1}
}
