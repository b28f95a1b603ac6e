package python

import (
	"strings"
)

// reach is what of a text may run by itself: the bodies of functions that the
// module, or what it reaches, names in any way. A name counts wherever it
// stands, in strings too; a function is idle only where nothing says its name.
type reach struct {
	t      *tree
	wild   bool // names are put together while it runs: anything may be called
	words  map[string]bool
	named  map[string][]*node // bodies by the name that reaches them
	bodies map[*node]bool
	todo   []*node
}

// lookups are functions that reach others by names that need not stand in the
// text, and members are attributes that do.
var (
	lookups = map[string]bool{
		"globals": true, "locals": true, "vars": true, "eval": true, "exec": true, "getattr": true, "__import__": true, "import_module": true,
		"attrgetter": true, "methodcaller": true, "getmembers": true, "get_objects": true, "__builtins__": true, "settrace": true, "setprofile": true,
	}
	members = map[string]bool{
		"__dict__": true, "__getattribute__": true, "attrgetter": true, "methodcaller": true, "getmembers": true, "__subclasses__": true,
		"modules": true, "import_module": true, "_getframe": true, "get_objects": true, "get_referrers": true, "settrace": true, "setprofile": true,
		"f_globals": true, "f_locals": true, "__globals__": true, "tb_frame": true, "f_back": true,
	}
)

// harmless are decorators that do not run what they are given by themselves.
var harmless = map[string]bool{
	"staticmethod": true, "classmethod": true, "property": true, "abstractmethod": true, "abc.abstractmethod": true,
	"contextmanager": true, "contextlib.contextmanager": true, "cached_property": true, "functools.cached_property": true,
	"lru_cache": true, "functools.lru_cache": true, "cache": true, "functools.cache": true, "overload": true, "typing.overload": true,
}

func reached(t *tree) *reach {
	r := &reach{t: t, words: map[string]bool{}, named: map[string][]*node{}, bodies: map[*node]bool{}}
	r.walk(t.root, "", false)
	for len(r.todo) > 0 && !r.wild {
		n := r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		r.walk(n, "", false)
	}
	return r
}

// idle reports that nothing in the text reaches this body.
func (r *reach) idle(body *node) bool { return !r.wild && !r.bodies[body] }

func (r *reach) body(n *node) {
	if n != nil && !r.bodies[n] {
		r.bodies[n] = true
		r.todo = append(r.todo, n)
	}
}

// word notes a name that stands in what is reached.
func (r *reach) word(w string) {
	if r.words[w] {
		return
	}
	r.words[w] = true
	for _, n := range r.named[w] {
		r.body(n)
	}
}

// define notes a function; name is what reaches it.
func (r *reach) define(name string, body *node) {
	if body == nil {
		return
	}
	if r.words[name] {
		r.body(body)
		return
	}
	r.named[name] = append(r.named[name], body)
}

// walk notes the words of n, and the functions that are defined there. class
// is the class that n is the body of, heir that it has bases, whose code may
// call its methods.
func (r *reach) walk(n *node, class string, heir bool) {
	if n == nil || r.wild {
		return
	}
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "comment":
		case "identifier":
			w := identifier(r.t.text(c))
			attribute := n.kind == "attribute" && c.field == "attribute"
			r.wild = r.wild || attribute && members[w] || !attribute && lookups[w] && !r.fixed(n, c, w)
			r.word(w)
		case "string":
			r.text(c)
		case "decorated_definition":
			r.decorated(c, class, heir)
		case "function_definition":
			r.function(c, class, heir, false)
		case "class_definition":
			r.class(c, false)
		case "assignment":
			if l := c.child("left"); l == nil || r.t.text(l) != "__all__" {
				r.walk(c, class, heir)
			}
		default:
			if c.size > 1 {
				r.walk(c, class, heir)
			}
		}
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
	return name != nil && name.kind == "string" && name.child("interpolation") == nil && !strings.Contains(r.t.text(name), "\\")
}

// text notes the words of a string, and what an f-string evaluates.
func (r *reach) text(n *node) {
	if !n.named {
		return
	}
	for _, w := range strings.FieldsFunc(r.t.text(n), func(c rune) bool { return c < 128 && !wordRune(c) }) {
		r.word(identifier(w))
	}
}

func wordRune(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (r *reach) decorated(n *node, class string, heir bool) {
	runs := false
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "decorator":
			name, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(r.t.text(c), "@")), "(")
			last := name[strings.LastIndexByte(name, '.')+1:]
			if !harmless[name] && last != "setter" && last != "getter" && last != "deleter" {
				runs = true
			}
			r.walk(c, "", false)
		case "function_definition":
			r.function(c, class, heir, runs)
		case "class_definition":
			r.class(c, runs)
		}
	}
}

func (r *reach) function(n *node, class string, heir, runs bool) {
	name := identifier(r.t.text(n.child("name")))
	body := n.child("body")
	r.walk(n.child("parameters"), "", false)
	r.walk(n.child("return_type"), "", false)
	switch {
	case runs, strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__"):
		r.body(body)
	default:
		r.define(name, body)
		if heir {
			r.define(class, body)
		}
	}
}

func (r *reach) class(n *node, runs bool) {
	heir := runs
	if bases := n.child("superclasses"); bases != nil {
		heir = heir || strings.Trim(r.t.text(bases), "() \t\n") != "object"
		r.walk(bases, "", false)
	}
	name := identifier(r.t.text(n.child("name")))
	if runs {
		r.word(name)
	}
	r.walk(n.child("body"), name, heir)
}
