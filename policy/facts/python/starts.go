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

// wraps are functions that give what they are given in another form, as
// decorators do.
var wraps = set(`property staticmethod classmethod isinstance issubclass hasattr len id functools.wraps functools.lru_cache
	typing.cast typing.TypeVar super`)

// makes reports that a metaclass is not one that runs none of the program.
func makes(v *val) bool {
	return v != nil && (v.kind != kRef || v.text != "abc.ABCMeta" && v.text != "enum.EnumMeta" && v.text != "type")
}

// quietMethods are special methods that nothing but making an object runs, which
// is followed.
var quietMethods = set(`__init__ __new__ __post_init__ __slots__ __doc__ __module__ __qualname__ __name__ __annotations__ __dict__
	__weakref__ __all__ __version__`)

// reacts reports that objects of c have methods that are run by other than
// calls: by operators, statements, names, or the end of an object.
func (c *class) reacts(depth int) bool {
	if depth > 8 {
		return true
	}
	for name, v := range c.scope.vars {
		if special(name) && !quietMethods[name] || v != nil && v.kind == kFunc && v.x.fn.prop {
			return true
		}
	}
	return slices.ContainsFunc(c.bases, func(b *val) bool { return b.kind == kClass && b.x.cls.reacts(depth+1) })
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
				if b.x.fn.runs == 0 || b.x.fn.lambda {
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
