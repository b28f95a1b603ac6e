package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// tamer looks at a text that the program runs as code.
type tamer struct {
	it    *interp
	t     *tree
	s     *scope
	lone  bool            // s is a namespace of its own
	kept  bool            // and what gets out of it is followed
	bound map[string]bool // names that the text binds; true: as functions
	calls bool            // functions of the program are called
	apart []*val          // the dictionaries that the text has its names in; nil for those of the program
	words bool            // it has texts that may be more than names
	// hollow: some names stand for any, see placeholder.
	hollow bool
}

// tame reports that a text names nothing but what it binds itself, values,
// functions and classes of the program, which are followed, and what every
// program has and only computes; and that it calls nothing that it is given. lone
// says that s is a namespace of its own, and kept that what gets out of it is
// followed, so that it may call what it is given.
func (it *interp) tame(t *tree, s *scope, lone, kept bool) bool {
	if it.shaken {
		return false
	}
	for name := range it.patched {
		if builtins[name] {
			return false
		}
	}
	c := &tamer{it: it, t: t, s: s, lone: lone, kept: kept, bound: map[string]bool{}}
	c.binds(t.root)
	return c.check(t.root) && (!c.calls || !c.words)
}

// tameApart is tame for a text that has names of its own: what it defines is
// not followed, so that it may use nothing of the program but values.
func (it *interp) tameApart(t *tree, spaces []*val) bool {
	if slices.ContainsFunc(spaces, func(v *val) bool {
		return v.kind != kDict || v.open && v.x.dict["?:"] != fromSomewhere || v.otherBuiltins()
	}) || len(it.patched) > 0 || it.shaken {
		return false
	}
	c := &tamer{it: it, t: t, apart: spaces, bound: map[string]bool{}}
	c.binds(t.root)
	return c.check(t.root)
}

// find is what a name stands for that the text does not bind.
func (c *tamer) find(name string) (*val, bool) {
	if c.apart == nil {
		return c.it.find(c.s, name)
	}
	for _, d := range c.apart {
		if v := d.x.dict[dictKey(str(name))]; v != nil {
			return v, true
		}
	}
	return nil, false
}

// binds gathers the names that the text binds.
func (c *tamer) binds(n *node) {
	switch n.kind {
	case "function_definition", "class_definition":
		c.bound[c.t.text(n.child("name"))] = true
	case "parameters", "lambda_parameters":
		n.each(func(p *node) {
			if name := p.child("name"); name != nil {
				p = name
			} else if p.kind != "identifier" && p.kind != "tuple_pattern" && p.nth(0) != nil {
				p = p.nth(0)
			}
			c.names(p)
		})
	case "assignment", "augmented_assignment", "for_statement", "for_in_clause":
		c.names(n.child("left"))
	case "named_expression":
		c.names(n.child("name"))
	case "import_statement", "import_from_statement":
		n.each(func(k *node) {
			if k.field != "name" {
				return
			}
			name, alias := c.imported(k)
			if alias == "" {
				alias, _, _ = strings.Cut(name, ".")
			}
			c.bound[alias] = false
		})
	case "as_pattern_target":
		c.names(n)
	}
	for k := n.first; k != nil; k = k.next {
		c.binds(k)
	}
}

// names binds the names of a target.
func (c *tamer) names(n *node) {
	if n == nil || n.kind == "attribute" || n.kind == "subscript" || n.kind == "call" {
		return
	}
	if n.kind == "identifier" {
		if name := c.t.text(n); !c.bound[name] {
			c.bound[name] = false
		}
		return
	}
	n.each(c.names)
}

// check walks the text.
func (c *tamer) check(n *node) bool {
	if n == nil {
		return true
	}
	switch n.kind {
	case "global_statement":
		return !c.lone && c.each(n, nil)
	case "import_statement", "import_from_statement", "future_import_statement":
		return c.imports(n)
	case "identifier":
		return c.known(identifier(c.t.text(n)), false)
	case "string_content":
		c.words = c.words || c.it.ofText(c.t.text(n)) > nothingOfIt
		return true
	case "attribute":
		return c.member(n) && (!c.hollow || !hollowName(c.t.text(n)) || c.outside(n.child("object"), 0)) && c.check(n.child("object"))
	case "keyword_argument":
		return c.check(n.child("value"))
	case "expression_statement":
		return docstring(n) && !looksAtDocs(c.t.src) && !looksAtDocs(c.it.t.src) || c.each(n, nil)
	case "call":
		args := n.child("arguments")
		return c.callee(n.child("function"), args != nil && args.nth(0) == nil) && c.check(args)
	case "decorator":
		return c.callee(n.nth(0), false)
	case "function_definition":
		return c.each(n, n.child("name"))
	case "assignment":
		return !c.hollow && c.alias(n) || c.each(n, nil)
	}
	return c.each(n, nil)
}

// looksAtDocs reports that a program may do something with its docstrings.
func looksAtDocs(src string) bool {
	return strings.Contains(src, "doc__") || strings.Contains(src, "getdoc") || strings.Contains(src, "getsource") || strings.Contains(src, "func_doc")
}

// imported is what one name of an import stands for, and the name it gets.
func (c *tamer) imported(n *node) (name, alias string) {
	if n.kind == "aliased_import" {
		return c.t.text(n.child("name")), identifier(c.t.text(n.child("alias")))
	}
	return c.t.text(n), ""
}

// imports reports that nothing but modules that compute are imported, into a
// namespace of its own.
func (c *tamer) imports(n *node) bool {
	if !c.lone || n.kind == "future_import_statement" {
		return false
	}
	if from := n.child("module_name"); from != nil {
		return facts.OnlyComputes(c.t.text(from)) && !strings.Contains(c.t.text(n), "*")
	}
	calm := true
	n.each(func(k *node) {
		name, _ := c.imported(k)
		calm = calm && (k.field != "name" || facts.OnlyComputes(name))
	})
	return calm
}

func (c *tamer) each(n, but *node) bool {
	for k := n.first; k != nil; k = k.next {
		if k != but && !c.check(k) {
			return false
		}
	}
	return true
}

// member reports that an attribute leads nowhere out of the object.
func (c *tamer) member(n *node) bool {
	name := identifier(c.t.text(n.child("attribute")))
	return !innards[name] && (c.apart == nil || !handedOn[strings.TrimLeft(name, "_")]) && !strings.HasPrefix(name, "__") && !strings.HasSuffix(name, "_frame") && !strings.HasPrefix(name, "f_")
}

// callee reports that what is called is followed, or only computes; nothing says
// that it is given nothing to run.
func (c *tamer) callee(n *node, nothing bool) bool {
	switch {
	case n == nil:
		return false
	case n.kind == "identifier":
		return c.known(identifier(c.t.text(n)), true)
	case n.kind == "attribute":
		name := identifier(c.t.text(n.child("attribute")))
		object := n.child("object")
		plain := c.member(n) && !c.it.dangerous(name)
		runs := c.it.b.Tables().Runners(facts.Python)["."+name] // as a method
		c.calls = c.calls || hollowName(name)
		calm := calmMethods[name] || plain && ((nothing || !runs) && c.outside(object, 0) || c.own(object, name) || !runs && (c.inner(n, name) || c.given(object, name)))
		return calm && c.check(n.child("object"))
	}
	return false
}

// inner reports a method that an object has for itself, as its name says, of
// the first parameter of a function that the text defines: none of a module.
func (c *tamer) inner(n *node, name string) bool {
	return c.apart != nil && strings.HasPrefix(name, "_") && c.t.text(n.child("object")) == "self" && !slices.ContainsFunc(running, func(w string) bool { return strings.Contains(name, w) })
}

// own reports a method that an object of the program has of its class, which is
// followed.
func (c *tamer) own(object *node, name string) bool {
	if object == nil || object.kind != "identifier" || c.apart != nil || c.hollow {
		return false
	}
	v, ok := c.find(identifier(c.t.text(object)))
	if !ok || slices.ContainsFunc(v.branches(), func(b *val) bool {
		if b.kind != kInst {
			return true
		}
		m := b.x.cls.member(name, 0)
		return m == nil || m.kind != kFunc
	}) {
		return false
	}
	c.calls = true
	return true
}

// given reports a method of what a function of the text will be given, or has
// of that, which is followed as if the program itself had that function.
func (c *tamer) given(object *node, name string) bool {
	for object != nil && object.kind == "attribute" {
		object = object.child("object")
	}
	if object == nil || object.kind != "identifier" || c.apart != nil || c.hollow {
		return false
	}
	function, ok := c.bound[identifier(c.t.text(object))]
	c.calls = true
	return ok && !function && !slices.ContainsFunc(running, func(w string) bool { return strings.Contains(name, w) })
}

// running are parts of the names by which modules themselves run things.
var running = strings.Fields("exec spawn system popen run fork kill start call_ args load")

// outside reports that n is an ordinary module, or something of one.
func (c *tamer) outside(n *node, depth int) bool {
	switch {
	case n == nil || depth > 4:
		return false
	case n.kind == "attribute":
		return !c.it.dangerous(identifier(c.t.text(n.child("attribute")))) && c.outside(n.child("object"), depth+1)
	case n.kind != "identifier":
		return false
	}
	v, ok := c.find(identifier(c.t.text(n)))
	return ok && c.apart == nil && v.kind == kRef && (v.x == nil || v.x.self == nil) && c.it.ordinary(v.text)
}

// known tells a name that the text may use, or call.
func (c *tamer) known(name string, called bool) bool {
	if function, ok := c.bound[name]; ok {
		return function || !called || c.kept // who hands it something to call is followed
	}
	v, ok := c.find(name)
	if !ok {
		_, shadowed := c.it.module.vars[name] // where setattr of builtins puts it
		if hollowName(name) {
			return false
		}
		return calmBuiltins[name] && !shadowed || c.apart == nil && !c.lone && c.starred(name)
	}
	return !slices.ContainsFunc(v.branches(), func(b *val) bool {
		switch b.kind {
		case kFunc, kClass:
			c.calls = c.calls || called
			return c.apart != nil || c.hollow
		case kRef:
			computes := c.apart != nil && !called && facts.OnlyComputes(b.text)
			return (b.text != name || !calmBuiltins[name]) && (b.x != nil && b.x.self != nil || !c.it.ordinary(b.text) && !computes)
		case kUnknown:
			return called || slices.Contains(b.from, "namespace") || slices.Contains(b.from, "module")
		case kInst, kObj, kNone, kBool, kInt, kFloat, kStr, kBytes, kList, kTuple, kSet, kDict:
			return called
		default:
			return true
		}
	})
}

// starred reports that a name is one of ordinary modules, of which the program
// has all names.
func (c *tamer) starred(name string) bool {
	return len(c.it.star) > 0 && !builtins[name] && !c.it.dangerous(name) && !slices.ContainsFunc(c.it.star, func(module string) bool {
		return !c.it.ordinary(module) || !c.it.ordinary(module+"."+name)
	})
}

// alias is another name for a function that every program has, in the module
// itself: who calls it by that name is followed.
func (c *tamer) alias(n *node) bool {
	l, r := n.child("left"), n.child("right")
	if c.apart != nil || c.s != c.it.module || l == nil || r == nil || l.kind != "identifier" || r.kind != "identifier" {
		return false
	}
	name := c.t.text(r)
	_, found := c.it.find(c.s, name)
	return builtins[name] && !found && !strings.HasPrefix(name, "__")
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// calmBuiltins only compute, and call nothing that they are given.
var calmBuiltins = set(`abs all any bool bytes bytearray chr complex dict divmod enumerate float format frozenset hash hex id int isinstance issubclass
	iter len list next object oct ord pow print property range repr reversed round set slice staticmethod classmethod str sum super tuple zip
	NotImplemented Ellipsis BaseException Exception KeyError ValueError TypeError RuntimeError AttributeError IndexError AssertionError
	StopIteration NotImplementedError ZeroDivisionError ArithmeticError LookupError OverflowError NameError`)

// calmMethods are methods that do the same of whatever has them.
var calmMethods = set(`append extend add get items keys values join split strip upper lower title format startswith endswith replace copy index count
	isalnum isalpha isdigit isspace islower isupper capitalize swapcase zfill lstrip rstrip splitlines pop setdefault reverse`)
