package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// cLibrary is the type of a library of machine code that was loaded.
const cLibrary = "ctypes.CDLL"

// nativeHandlers load libraries, and make functions of addresses.
func nativeHandlers() map[string]handler {
	load := (*invocation).loadLibrary
	return map[string]handler{
		cLibrary: load, "ctypes.PyDLL": load, "ctypes.cdll.LoadLibrary": load, "ctypes.pydll.LoadLibrary": load, "cffi.FFI.dlopen": load,
		"ctypes.util.find_library": (*invocation).findLibrary,
		"ctypes.cast":              (*invocation).castFunction,
		"ctypes.memmove":           (*invocation).moveMemory,
		"cffi.FFI.cast":            (*invocation).castFunction,
		"mmap.mmap":                (*invocation).mapMemory,
		"os.mknod":                 (*invocation).makeNode,
	}
}

// loadLibrary marks what is the system's, or the caller's, by its origin.
func (c *invocation) loadLibrary() *val {
	if len(c.pos) > 0 {
		c.pos = append([]*val{c.it.toldLibrary(c.pos[0])}, c.pos[1:]...)
	} else if v := c.kw["name"]; v != nil {
		c.set("name", c.it.toldLibrary(v))
	}
	return nil
}

// toldLibrary is namedLibrary, and one that is loaded already.
func (it *interp) toldLibrary(v *val) *val {
	if it.loadedAlready(v) {
		return v.with([]string{facts.FromLibrary})
	}
	return namedLibrary(v)
}

// soname is the name of a library that is looked for where the system has its
// own, or a path to one of these.
var soname = lazyregexp.New(`^(?:/(?:usr/)?(?:local/)?lib(?:32|64)?/(?:[\w.+-]+/)*|/System/Library/(?:[\w.+-]+/)*)?[\w+-][\w.+-]*$`)

// namedLibrary adds the origin of libraries that are told by their names to one
// that can be nothing else: of the program itself, of the system, or the
// caller's choice.
func namedLibrary(v *val) *val {
	var out *val
	for _, b := range v.branches() {
		out = join(out, b.with([]string{facts.FromLibrary}))
		switch {
		case b.kind == kNone:
		case b.kind == kStr:
			if slices.ContainsFunc(b.all(), func(s string) bool { return !soname().MatchString(s) || strings.Contains(s, "..") }) {
				return v
			}
			if b.open && !ofCaller(b.from) {
				return v
			}
		case b.kind == kUnknown && b.x == nil && ofCaller(b.from):
		default:
			return v
		}
	}
	if v.kind == kAlt && v.open && !ofCaller(v.from) {
		return v
	}
	return out
}

// ofCaller: what starts the program says it.
func ofCaller(from []string) bool {
	return len(from) > 0 && !slices.ContainsFunc(from, func(f string) bool {
		return f != "argv" && f != "env" && f != "param" && f != facts.FromLibrary && !strings.HasPrefix(f, "env:")
	})
}

// findLibrary gives what the system calls a library.
func (c *invocation) findLibrary() *val {
	name := c.get(0, "name")
	if name == nil {
		return none
	}
	if name.isText() && !name.open {
		return name.mapText(kStr, func(s string) (string, bool) { return "lib" + s + ".so", true })
	}
	return &val{from: mix(name.origins(0), []string{facts.FromLibrary})}
}

// castFunction: an address is made a function.
func (c *invocation) castFunction() *val {
	to := c.nth(1)
	if c.name == "cffi.FFI.cast" {
		if s, ok := c.nth(0).oneText(); !ok || !strings.Contains(s, "(*") {
			return nil
		}
	} else if to.kind != kObj || to.text != "ctypes.CFUNCTYPE" {
		return nil
	}
	c.it.nativeCode("a function at an address", c.n)
	return unknown
}

// moveMemory writes to a place in memory: to a buffer that the program made for
// it, as to any other.
func (c *invocation) moveMemory() *val {
	if to := c.nth(0); to.kind == kObj && (to.text == "ctypes.create_string_buffer" || to.text == "ctypes.create_unicode_buffer") {
		return unknown
	}
	return nil
}

// mapMemory: memory that can be run.
func (c *invocation) mapMemory() *val {
	if prot := c.get(3, "prot"); prot != nil {
		if n, ok := prot.int(); ok && n&4 != 0 {
			c.it.nativeCode("memory that can be run", c.n)
		}
	}
	return nil
}

// callback is a call of a type of functions of C: with one of the program, it
// makes that known to a library; with a number, it makes a function of what lies
// there.
func (it *interp) callback(a *arguments, n *node, s *scope) *val {
	for _, v := range a.pos[:min(len(a.pos), 1)] {
		for _, b := range v.branches() {
			switch b.kind {
			case kFunc, kClass, kInst, kWrap, kNone:
			case kTuple:
				it.fromLibrary(b, n)
			case kRef:
				if strings.HasPrefix(b.text, "?.") {
					it.nativeCode("a function at an address", n)
				}
			default:
				if null, ok := b.int(); !handedIn(b.from) && (!ok || null != 0) {
					it.nativeCode("a function at an address", n)
				}
			}
		}
	}
	it.handOver("", a, n)
	if a.how == "decorator" && len(a.pos) > 0 {
		return a.pos[0]
	}
	return derived(a.all()...)
}

// handedIn: what a caller hands over, and nothing that the program hides.
func handedIn(from []string) bool {
	return slices.Contains(from, "param") && !slices.ContainsFunc(from, hides)
}

// outOfSight: no more than what callers hand over that are not seen.
func outOfSight(from []string) bool {
	return slices.Contains(from, "param") && !slices.ContainsFunc(from, func(f string) bool { return f != "param" && f != fromOutside })
}

// fromLibrary is ("name", library).
func (it *interp) fromLibrary(pair *val, n *node) {
	if len(pair.x.items) == 0 {
		return
	}
	it.symbolNamed(&val{kind: kObj, text: cLibrary}, pair.x.items[0], n)
}

func (it *interp) nativeCode(what string, n *node) {
	it.reported++
	if it.quiet == 0 {
		it.b.Action("native_code", what, "ctypes", it.pos(n))
	}
}

// symbolNamed notes a function of a library that is taken by a value.
func (it *interp) symbolNamed(v, name *val, n *node) {
	if name.isText() {
		for _, s := range name.all() {
			it.symbol(v, s, n)
		}
		if !name.open {
			return
		}
	}
	for _, b := range v.branches() {
		if b.kind == kObj && b.text == cLibrary && !outOfSight(name.from) || b.kind == kUnknown && slices.ContainsFunc(name.origins(0), hides) {
			it.takes("a function whose name is not known", b, n)
			return
		}
	}
}

// hides reports an origin of a name that the program keeps from sight.
func hides(from string) bool {
	kind, _, _ := strings.Cut(from, ":")
	switch kind {
	case "decoded", "encoded", "encrypted", "input", "stdin", "computed", "cut", "net", "file":
		return true
	}
	return false
}

// symbol notes a function that is taken from a library, or from something that
// may be one, if it acts by itself.
func (it *interp) symbol(v *val, name string, n *node) {
	it.readsClipboard(v, name, n)
	library := v.kind == kObj && v.text == cLibrary
	if !library && v.kind != kUnknown {
		return
	}
	if it.b.Tables().Acts(name, !library) {
		it.takes(name, v, n)
	}
}

// takes reports a function of a library; the origin tells one that is certainly
// of a library from a method of that name of something that is not known.
func (it *interp) takes(name string, v *val, n *node) {
	it.reported++
	if it.quiet > 0 {
		return
	}
	by := "" // may be one
	if v.kind == kObj {
		by = cLibrary
	}
	it.b.Action("native_symbol", name, by, it.pos(n))
}
