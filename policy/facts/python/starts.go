package python

import (
	"slices"
	"strings"
)

// A program that starts nothing only offers: it imports, defines, and keeps
// constants. What its functions do is then done for whoever calls them, with
// what that one hands over, whatever names them within it.

// began notes, if is, that what is followed is of the module's own doing and
// may have something out of sight call functions of the program.
func (it *interp) began(is bool) { it.starts = it.starts || is && it.opening && it.quiet == 0 }

// expressionStatement evaluates what stands for itself.
func (it *interp) expressionStatement(n *node, s *scope) {
	n.each(func(c *node) {
		if c.kind == "call" || c.kind == "await" {
			it.bare = c
			if c.kind == "await" {
				it.bare = c.nth(0)
			}
		}
		it.eval(c, s)
	})
}

// callsOut: a function of something outside is called. It starts something if
// that is all that the call is for, if it is a method of what the program made,
// if it runs code, or if it gets something of the program that can be called.
func (it *interp) callsOut(name string, self *val, a *arguments, n *node) {
	if !it.opening || it.starts || a.how == "decorator" {
		return
	}
	if registers(name) {
		return
	}
	root, _, _ := strings.Cut(name, ".")
	quiet := builtins[name] || quietModules[root]
	it.began(it.runs(name) || !quiet && (n == it.bare || self != nil) || !wraps[name] && slices.ContainsFunc(a.all(), callable))
}

func callable(v *val) bool {
	return slices.ContainsFunc(v.branches(), func(b *val) bool { return b.kind == kFunc || b.kind == kClass || b.kind == kInst || b.kind == kWrap })
}

// quietModules call nothing of the program that they are not given.
var quietModules = map[string]bool{
	"logging": true, "re": true, "warnings": true, "collections": true, "functools": true, "typing": true, "os": true, "sys": true, "string": true,
	"enum": true, "abc": true, "itertools": true, "operator": true, "time": true, "copy": true, "str": true, "list": true, "dict": true, "set": true,
	"math": true, "struct": true, "json": true, "datetime": true, "platform": true, "locale": true, "types": true, "io": true, "pathlib": true,
}

// but are the arguments without the one that such a function only looks at, or
// gives back, and then it is followed.
func (a *arguments) but(name string) *arguments {
	i, ok := looked[name]
	if !ok || i >= len(a.pos) {
		return a
	}
	rest := *a
	rest.pos = slices.Concat(a.pos[:i], a.pos[i+1:])
	return &rest
}

// looked is where functions have an argument that they call nothing of, and
// keep nowhere.
var looked = map[string]int{"hasattr": 0, "getattr": 0, "setattr": 0, "typing.cast": 1}

// onlyLooks reports a method that looks at an object which is not known, or
// gathers something in it, by a name that nothing in the program has.
func (it *interp) onlyLooks(method string, a *arguments) bool {
	return (calmMethods[method] || method == "update") && it.definitions(method) == 0 && !it.mayHave(method) && !slices.ContainsFunc(a.all(), callable)
}

// mayHave reports that the program gives some object an attribute of that name,
// or has the name as a text, by which it may do so.
func (it *interp) mayHave(name string) bool {
	may, ok := it.had[name]
	if !ok {
		it.assigned()
		may = it.attributes[name] || strings.Contains(it.t.src, `"`+name+`"`) || strings.Contains(it.t.src, "'"+name+"'")
		if it.had == nil {
			it.had = map[string]bool{}
		}
		it.had[name] = may
	}
	return may
}

// registers: a class of Python's own that others register with, so that they pass for
// heirs: it calls nothing of these.
func registers(name string) bool {
	root, _, _ := strings.Cut(name, ".")
	return strings.HasSuffix(name, ".register") && (root == "collections" || root == "_collections_abc" || root == "numbers")
}

// wraps are functions that give what they are given in another form, as
// decorators do.
var wraps = set(`property staticmethod classmethod isinstance issubclass hasattr len id functools.wraps functools.lru_cache
	typing.cast typing.TypeVar super inspect.signature`)

// makes reports that a metaclass is not one that runs none of the program.
func makes(v *val) bool {
	return v != nil && (v.kind != kRef || v.text != "abc.ABCMeta" && v.text != "enum.EnumMeta" && v.text != "type")
}

// quietMethods are special methods that nothing but making an object runs, which
// is followed.
var quietMethods = set(`__init__ __new__ __post_init__ __slots__ __doc__ __module__ __qualname__ __name__ __annotations__ __dict__
	__weakref__ __all__ __version__`)

// postpones reports a decorator that is a function of something outside, or what
// one gave, of which no more is known: it puts what it is given somewhere, for
// whoever uses the module. An object that the program made is used by itself.
func (it *interp) postpones(f *val) bool {
	if !it.waits() || f.kind != kRef && f.kind != kObj || f.text == "" || f.text[0] == '?' || f.x.selfOrNil() != nil {
		return false
	}
	_, known := it.b.API(f.text)
	return !known
}

// decorates is what made a decorator, where no more is known of it than that.
func (it *interp) decorates(dec *val, expr *node, s *scope) *val {
	if dec.kind == kUnknown && expr.kind == "call" {
		return it.evalOr(expr.child("function"), s)
	}
	return dec
}

// aside follows a function for what it leaves behind, and nothing that it does:
// that is told when it is known whether something is started.
func (it *interp) aside(f *function) {
	runs, opening := f.runs, it.opening
	it.quiet++
	it.opening = false
	it.callUnknown(f, fromOutside)
	it.quiet--
	it.opening = opening
	f.runs, f.opaque, f.later = runs, nil, true
	it.version++ // what was followed within it is told again
}

// handOver follows the program's own functions that are given to something
// outside, which will call them with arguments that are not known, and reports
// callables from outside that run things.
func (it *interp) handOver(name string, a *arguments, n *node) {
	applied := it.does(name, "apply")
	given := a.all()
	if name == "" {
		given = heldBy(given)
	}
	for i, v := range given {
		if !scoped[name] {
			it.ownModule(v)
		}
		if v.kind == kUnknown && v.text == lookedUp {
			it.passes(anyFunction, a)
		}
		for _, b := range v.branches() {
			switch b.kind {
			case kFunc:
				if !applied {
					it.called(b, a.pos[min(i+1, len(a.pos)):], n)
				}
				switch {
				case b.x.fn.runs > 0 && !b.x.fn.lambda:
				case a.later:
					it.aside(b.x.fn)
				default:
					it.callUnknown(b.x.fn, "handed")
				}
			case kClass:
				it.passes(b.x.cls.name, a)
			case kInst:
				if m := b.x.cls.member("run", 0); m != nil && m.kind == kFunc && m.x.fn.runs == 0 {
					it.follow(m.x.fn, &arguments{}, b, n)
				}
			case kRef:
				if rest := a.pos[min(i+1, len(a.pos)):]; !applied && len(rest) > 0 && rest[0].isText() && it.startsCommands(b.text) {
					it.report(b.text, &arguments{pos: rest, how: "value"}, b.x.selfOrNil(), n)
				}
				if !applied && it.runs(b.text) && it.quiet == 0 {
					it.report(b.text, &arguments{pos: []*val{{from: []string{"param", "handed"}}}, how: "value"}, b.x.selfOrNil(), n)
				}
			default: // nothing that could be called
			}
		}
	}
}

// startsCommands: what stands behind such a function, where both are handed on,
// is a command. Text behind eval is mostly none: tests see that it is refused.
func (it *interp) startsCommands(name string) bool {
	return it.does(name, "shell", "argv")
}

// called follows a function that something outside is given with a text right
// behind it, as what calls it later, or within something, mostly hands it just
// that and what follows.
func (it *interp) called(f *val, rest []*val, n *node) {
	if len(rest) > 0 && len(rest) <= len(f.x.fn.params) && rest[0].isText() && it.ofTexts(rest[0].all()) > nothingOfIt {
		it.follow(f.x.fn, &arguments{pos: rest, how: "value"}, f.x.self, n)
	}
}

// scoped are functions that look at a module, and give nothing of it.
var scoped = set(`print repr str len id hasattr isinstance issubclass bool exec eval __import__ hash callable`)

// heldBy are values, and the functions from outside that lists among them hold:
// whatever is called gets these too.
func heldBy(values []*val) []*val {
	out := values
	for _, v := range values {
		if !v.isSeq() && v.kind != kDict || len(out) > maxHeld {
			continue
		}
		items := v.x.items
		for _, k := range v.x.order {
			items = append(slices.Clip(items), v.x.dict[k])
		}
		for _, item := range items[:min(len(items), maxHeld)] {
			if item.kind == kRef {
				out = append(slices.Clip(out), item)
			}
		}
	}
	return out
}

const maxHeld = 64
