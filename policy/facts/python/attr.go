package python

import (
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

func (it *interp) attributeExpr(n *node, s *scope) *val {
	obj := it.evalOr(n.child("object"), s)
	return it.attribute(obj, identifier(it.t.text(n.child("attribute"))), n, s)
}

// attribute is v.name.
func (it *interp) attribute(v *val, name string, n *node, s *scope) *val {
	if v.kind == kAlt {
		var out *val
		for _, b := range v.x.alts {
			out = join(out, it.attribute(b, name, n, s))
		}
		return out
	}
	if members[name] {
		it.ownModule(v)
	}
	it.symbol(v, name, n)
	if got := it.gadget(v, name, n); got != nil {
		return got
	}
	switch v.kind {
	case kInst, kClass:
		return it.attributeOf(v, name, n, s)
	case kRef:
		return it.attributeOfRef(v, name, n)
	case kObj:
		return it.attributeOfObj(v, name)
	case kFunc:
		switch name {
		case "__name__", "__qualname__":
			if v.x.fn.lambda {
				return unknown
			}
			return str(v.x.fn.name)
		case "__doc__":
			if d := it.documentation(v.x.fn.t, v.x.fn.body); d != nil {
				return d
			}
		case "__code__":
			return &val{kind: kObj, text: "function.__code__", x: &extra{fn: v.x.fn, self: v}}
		case "__globals__":
			return &val{kind: kSpace}
		case "__call__", "__wrapped__", "__func__":
			return v
		}
		return unknown
	case kWrap:
		return attributeOfWrap(v, name)
	case kSpace:
		if own := it.module.vars[name]; own != nil && v.x == nil && v.text == "" {
			return own // of the module itself as an object
		}
		if !keyed[name] {
			it.ownModule(v)
		}
		it.shaken = it.shaken || ofBuiltins(v) && !reading[name]
		return &val{kind: kRef, text: "dict." + name, x: &extra{self: v}}
	case kDict:
		if !reading[name] && (n == nil || n.field != "function" || name != "update" && name != "setdefault") {
			v.open = true // who has that can put anything into it
		}
	default: // a method of its type, below
	}
	if name == "value" || name == "_value_" {
		switch v.kind {
		case kStr, kBytes, kInt, kFloat, kBool, kList, kTuple, kDict:
			return v // a member of an enumeration stands for its value
		default: // no member
		}
	}
	if t := methodType(v); t != "" {
		return &val{kind: kRef, text: t + "." + name, from: v.from, x: &extra{self: v}}
	}
	// Something unknown: a method of it, so that what folds still folds.
	return &val{kind: kRef, text: "?." + name, from: v.from, x: &extra{self: v}}
}

func (it *interp) attributeOfObj(v *val, name string) *val {
	if v.x != nil && v.x.dict[name] != nil {
		return v.x.dict[name]
	}
	if got := pathAttribute(v, name); got != nil {
		return got
	}
	if name == "pid" && children[v.text] {
		return &val{from: []string{"own_process"}}
	}
	if strings.HasSuffix(v.text, "Server") && (name == "server_address" || name == "server_port") {
		return &val{from: []string{facts.FromOwnAddress}}
	}
	return it.member(v.text, name, v)
}

func attributeOfWrap(v *val, name string) *val {
	switch {
	case v.text == "program":
		return v // .run(), .popen(), & FG
	case name == "func" && v.x.self != nil:
		return v.x.self
	}
	return unknown
}

// keyed are methods of a namespace that give nothing of it, or by a key.
var keyed = map[string]bool{
	"get": true, "keys": true, "update": true, "setdefault": true, "clear": true, "__contains__": true, "__getitem__": true, "__setitem__": true,
}

// reading are methods of a dictionary that put nothing into it.
var reading = set("get items keys values copy pop popitem clear fromkeys __getitem__ __contains__ __len__ __iter__ __class__ value _value_ name")

// ofBuiltins: a namespace is that of what every program has.
func ofBuiltins(v *val) bool {
	return v.kind == kSpace && v.x != nil && v.x.self != nil && v.x.self.kind == kRef && canonical(v.x.self.text) == "builtins"
}

// methodType names the class that a constant's methods stand under.
func methodType(v *val) string {
	switch v.kind {
	case kStr:
		return "str"
	case kBytes:
		return "bytes"
	case kInt, kBool:
		return "int"
	case kFloat:
		return "float"
	case kList, kTuple:
		return "list"
	case kSet:
		return "set"
	case kDict:
		return "dict"
	default: // a type without methods that are known
	}
	return ""
}

// member is a method of an object of something outside, under its type's name.
func (it *interp) member(typ, name string, self *val) *val {
	full := typ + "." + name
	if strings.Count(full, ".") > 7 || len(full) > 120 {
		return &val{kind: kRef, text: "?." + name, from: self.from, x: &extra{self: self}}
	}
	return &val{kind: kRef, text: full, from: self.from, x: &extra{self: self}}
}

func (it *interp) attributeOfRef(v *val, name string, n *node) *val {
	if v.x != nil && v.x.self != nil && strings.HasPrefix(v.text, "?.") {
		it.symbol(unknown, name, n)
		return &val{kind: kRef, text: "?." + name, from: v.from, x: &extra{self: v.x.self}}
	}
	switch name {
	case "__call__", "__func__", "__wrapped__":
		return v
	case "__name__", "__qualname__", "__module__":
		if v.text[0] == '?' {
			return unknown
		}
		return str(v.text[strings.LastIndexByte(v.text, '.')+1:])
	case "__dict__":
		it.relocates = true
		return &val{kind: kSpace, x: &extra{self: v}}
	case "__setattr__":
		it.relocates = true
	case moduleFile:
		if f := it.ownFile(v); f != nil {
			return f
		}
	case "__self__":
		if builtins[v.text] {
			it.dynamic(facts.DynReflection, v.text+".__self__", n)
			return ref("builtins", "attr")
		}
	}
	how := ""
	if v.x != nil {
		how = v.x.how
	}
	full := canonical(v.text + "." + name)
	if p := it.patched[full]; p != nil {
		return p
	}
	out := ref(full, how)
	var self *val
	if v.x != nil && v.x.self != nil {
		self = v.x.self
		out.x = &extra{self: self, how: how}
	}
	if c, ok := constants[full]; ok {
		return c
	}
	if full == "ctypes.pythonapi" || v.text == "ctypes.cdll" && name != "LoadLibrary" {
		return &val{kind: kObj, text: cLibrary, x: &extra{}}
	}
	if module, flag, _ := strings.Cut(full, "."); self == nil && (module == "os" && strings.HasPrefix(flag, "O_") || module == "socket" && (strings.HasPrefix(flag, "SOCK_") || strings.HasPrefix(flag, "AF_"))) {
		return str(flag)
	}
	if from, ok := sources[full]; ok {
		if argv := it.argv(); argv != nil && full == "sys.argv" {
			return argv
		}
		out.from = from
	}
	return out
}

// children are objects that stand for a process which the program started.
var children = map[string]bool{
	"subprocess.Popen": true, "multiprocessing.Process": true, "asyncio.create_subprocess_exec": true,
	"asyncio.create_subprocess_shell": true, "pexpect.spawn": true,
}

// innards are attributes by which a program reaches the interpreter's own
// namespaces from any object.
var innards = map[string]bool{
	"__globals__": true, "__builtins__": true, "f_globals": true, "f_builtins": true, "f_locals": true, "func_globals": true,
	"gi_frame": true, "cr_frame": true, "ag_frame": true, "tb_frame": true, "__getattribute__": true,
}

// gadget is an attribute that leads from an object to classes and namespaces;
// nil where name is an ordinary one.
func (it *interp) gadget(v *val, name string, n *node) *val {
	if (name == "mapping" || name == "_mapping") && slices.Contains(v.from, everyVariable) {
		return ref("os.environ", "attr") // a view of names leads back to all of them
	}
	if len(name) < 6 || name[0] != '_' && name[0] != 'f' && name[1] != '_' && !strings.HasSuffix(name, "_frame") {
		return nil
	}
	class := v.kind == kRef && v.x != nil && v.x.how == "class"
	switch {
	case name == "__class__" && v.kind != kInst && v.kind != kClass:
		return ref("?class", "class")
	case class && (name == "__base__" || name == "__bases__" || name == "__mro__"), v.kind == kRef && builtins[v.text] && (name == "__mro__" || strings.HasPrefix(name, "__bas")):
		return ref("object", "class")
	case class && v.text == "?class" && name == "mro":
		return ref("object", "class")
	case name == "__subclasses__" && v.kind == kRef && (builtins[v.text] || class && v.text != "?class"):
		it.dynamic(facts.DynReflection, name, n)
		return &val{kind: kRef, text: "?." + name, x: &extra{self: unknown}}
	case name == "__getattribute__" || name == "__getattr__":
		if v.kind == kInst || v.kind == kClass || v.kind == kUnknown || v.kind == kRef && (v.text == "object" || v.text == "type") {
			return nil
		}
		if class {
			return ref("object.__getattribute__", "attr")
		}
		return &val{kind: kWrap, x: &extra{self: ref("getattr", "attr"), items: []*val{v}}}
	case innards[name]:
		if v.kind == kInst || v.kind == kClass || v.kind == kFunc {
			return nil
		}
		if strings.HasSuffix(name, "_frame") {
			return unknown
		}
		if name == "__builtins__" || v.isConst() {
			it.dynamic(facts.DynReflection, name, n)
		}
		if name == "__builtins__" {
			return ref("builtins", "attr")
		}
		return &val{kind: kSpace, text: "?"}
	}
	return nil
}

// fromSomewhere is what a name that is not known stands for in a namespace:
// calling it is worth a fact.
var fromSomewhere = &val{from: []string{"namespace"}}

// lookup is a name in a namespace taken as a dictionary.
func (it *interp) lookup(v, key *val, n *node, s *scope) *val {
	if key.kind == kAlt {
		var out *val
		for _, k := range key.x.alts {
			out = join(out, it.lookup(v, k, n, s))
		}
		return out
	}
	it.began(true)
	var self *val
	if v.x != nil {
		self = v.x.self
	}
	names := []string{}
	if key.kind == kStr && !key.open {
		names = key.all()
	}
	if len(names) == 0 {
		if self == nil {
			it.own = true
		}
		switch {
		case self != nil && self.kind == kRef && it.dangerous(self.text):
			it.dynamic(facts.DynAttr, self.text, n, key.origins(0)...)
		case self == nil && v.text == "":
			return it.startingWith(head(key), s)
		case self == nil:
			return fromSomewhere
		}
		return unknown
	}
	var out *val
	for _, name := range names {
		name = identifier(name)
		switch {
		case self != nil:
			out = join(out, withHow(it.attribute(self, name, n, s), "subscript"))
		case v.text == "?":
			got := it.anyName(name)
			if got.kind == kRef && !it.idleByItself(name) {
				it.dynamic(facts.DynReflection, "namespace of a function or frame: "+name, n)
			}
			out = join(out, got)
		default:
			out = join(out, withHow(it.name(name, s), "subscript"))
		}
	}
	return out
}

// idleByItself: all that a function does is to give an object, and what is done
// with that is told by itself.
func (it *interp) idleByItself(name string) bool {
	api, known := it.b.API(name)
	return known && api.Returns != "" && len(api.Effects) == 0
}

// startingWith is what the module's names that begin so stand for.
func (it *interp) startingWith(start string, s *scope) *val {
	if len(start) < 3 {
		return it.ownCallable()
	}
	for name := range builtins {
		if strings.HasPrefix(name, start) {
			return fromSomewhere
		}
	}
	var out *val
	for _, name := range slices.Sorted(maps.Keys(it.module.vars)) {
		if strings.HasPrefix(name, start) {
			out = join(out, it.name(name, s))
		}
	}
	if out == nil || out.kind == kUnknown {
		return fromSomewhere
	}
	return out
}

// ownCallable is what any name of the module stands for, where these are few
// and all known. Modules are no functions.
func (it *interp) ownCallable() *val {
	if len(it.star) > 0 || it.b.Depth() > 0 {
		return fromSomewhere
	}
	var out *val
	n := 0
	for _, name := range slices.Sorted(maps.Keys(it.module.vars)) {
		for _, v := range it.module.vars[name].branches() {
			switch v.kind {
			case kFunc, kClass, kWrap:
				out = join(out, v)
				n++
			case kRef:
				if strings.Contains(v.text, ".") || builtins[v.text] { // else it is a module
					out = join(out, v)
					n++
				}
			default: // nothing that could be called, or that is told by a call
			}
		}
	}
	if out == nil || n > facts.MaxAlts {
		return fromSomewhere
	}
	return out
}

// anyName is what a name most likely is in a namespace that is not known.
func (it *interp) anyName(name string) *val {
	if name == "__builtins__" {
		return ref("builtins", "subscript")
	}
	if builtins[name] || it.dangerous(name) {
		return ref(canonical(name), "subscript")
	}
	return unknown
}

func withHow(v *val, how string) *val {
	if v.kind != kRef {
		return v
	}
	c := *v
	if c.x == nil {
		c.x = &extra{how: how}
	} else {
		x := *c.x
		x.how = how
		c.x = &x
	}
	return &c
}

// eachText joins f over the alternatives of a text.
func (it *interp) eachText(v *val, f func(string) *val) *val {
	var out *val
	for _, s := range v.all() {
		out = join(out, f(s))
	}
	if v.open {
		out = join(out, &val{from: v.from})
	}
	return out
}
