package javascript

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// memberOf evaluates a member expression: the object, and its member.
func (w *walk) memberOf(n id) (obj, v *val) {
	objNode := w.t.child(n, fObject)
	obj = w.expr(objNode)
	key, ok := w.memberKey(n)
	how := ""
	if w.t.kind(n) == kSubscript {
		how = "subscript"
	}
	if ok {
		return obj, w.member(obj, key, how, n)
	}
	index := w.indexValue(n)
	var out *val
	for _, k := range index.keyTexts() {
		out = union(out, w.member(obj, k, how, n))
	}
	if out == nil || !index.Known() {
		out = union(out, w.unknownMember(obj, index, n))
	}
	return obj, out
}

// keyTexts are the names of a member that v may be, where there are several.
func (v *val) keyTexts() []string {
	if !v.simple() {
		return nil
	}
	return v.Alts
}

// memberKey is the name of the member that n takes.
func (w *walk) memberKey(n id) (string, bool) {
	if w.t.kind(n) == kMember {
		p := w.t.child(n, fProperty)
		if p == 0 {
			return "", false
		}
		return w.identText(w.t.text(p), p), true
	}
	return w.indexValue(n).keyText()
}

// indexValue evaluates what stands in the brackets of a subscript; once, however often it is asked.
func (w *walk) indexValue(n id) *val {
	if w.indexAt == n && w.indexTree == w.t && w.indexStep == w.steps {
		return w.index
	}
	v := w.expr(w.t.child(n, fIndex))
	w.indexAt, w.indexTree, w.index, w.indexStep = n, w.t, v, w.steps
	return v
}

// children are functions that give a process which the program started.
var children = map[string]bool{
	"child_process.spawn": true, "child_process.fork": true, "child_process.exec": true, "child_process.execFile": true, "cluster.fork": true,
}

// member is the member of v with that name.
func (w *walk) member(v *val, key, how string, n id) *val {
	switch {
	case key == "pid" && children[v.Type]:
		return opaque([]string{"own_process"})
	case v.alts != nil:
		var out *val
		for _, a := range v.alts {
			out = union(out, w.member(a, key, how, n))
		}
		return out
	case v.ref != nil:
		if m := w.memberRef(v, key, how, n, 8); m != nil {
			return m
		}
		for _, proto := range []string{"Object", "Array", "Function"} {
			if m := w.extra[proto+".prototype."+key]; m != nil {
				return m
			}
		}
		if v.ref == w.top && !present[key] { // the module's exports, or the global object, which has no such name
			if m := w.exports.ref.props[key]; m != nil {
				return m
			}
			return undefined
		}
		if v.ref.open || v.ref.from != nil {
			return opaque(v.ref.from)
		}
		return undefined
	case v.name != "":
		return w.foreignMember(v, key, how, n)
	case v.foreign():
		if o := w.extraOf[v]; o != nil && o.props[key] != nil {
			return o.props[key]
		}
		if key == "constructor" {
			return named(v.Type, how)
		}
		return &val{name: joinName(v.Type, key), how: how, recv: recvOf(v), this: v, Value: facts.Value{From: v.From}}
	}
	return w.memberSimple(v, key)
}

// recvOf are the arguments that the object of a member was made with.
func recvOf(v *val) []facts.Value {
	if v.Fields == nil {
		return v.Recv
	}
	return append(v.Recv[:len(v.Recv):len(v.Recv)], facts.Value{Type: "dict", Fields: v.Fields})
}

// memberSimple is a member of a text, a number, or of something unknown.
func (w *walk) memberSimple(v *val, key string) *val {
	proto := ""
	switch {
	case v.Type == "str":
		proto = "String"
	case v.Type == "bytes":
		proto = "Buffer"
	case v.isNumber():
		proto = "Number"
	case v.Type == "bool":
		proto = "Boolean"
	}
	if proto != "" {
		return w.memberText(v, key, proto)
	}
	switch key {
	case "constructor":
		return &val{name: unknownConstructor, how: "constructor", this: v}
	case "__proto__":
		return v
	}
	if v.Fields != nil {
		if f, ok := v.Fields[key]; ok {
			return of(f)
		}
	}
	if v.From != nil {
		return opaque(v.From)
	}
	return unknown
}

func (w *walk) memberText(v *val, key, proto string) *val {
	switch key {
	case "length":
		if s, ok := v.one(); ok && proto == "String" {
			return numeric(float64(len(units(s))))
		} else if ok {
			return numeric(float64(len(s)))
		}
		return unknown
	case "constructor":
		return named(proto, "constructor")
	case "__proto__":
		return named(proto+".prototype", "")
	}
	if m := w.extra[proto+".prototype."+key]; m != nil {
		return m
	}
	if i, ok := index(key); ok {
		if r, ok := charAt(v, i); ok {
			return r.with(v.From)
		}
		if v.Known() {
			return undefined
		}
		return opaque(v.From)
	}
	return &val{name: proto + ".prototype." + key, this: v, Value: facts.Value{From: v.From}}
}

// charAt is the character or byte at a place.
func charAt(v *val, i int) (*val, bool) {
	s, ok := v.one()
	if !ok {
		return nil, false
	}
	if v.Type == "bytes" {
		if i < 0 || i >= len(s) {
			return undefined, true
		}
		return numeric(float64(s[i])), true
	}
	if ascii(s) {
		if i < 0 || i >= len(s) {
			return undefined, true
		}
		return text(s[i : i+1]), true
	}
	u := units(s)
	if i < 0 || i >= len(u) {
		return undefined, true
	}
	return text(fromUnits(u[i : i+1])), true
}

// memberRef is a member of an object of the program, or nil.
func (w *walk) memberRef(v *val, key, how string, n id, depth int) *val {
	o := v.ref
	if m, ok := o.props[key]; ok {
		return w.got(m, v, n)
	}
	switch o.role {
	case proxy:
		if m, ok := w.proxied(v, "get", []*val{text(key), v}, n); ok {
			return m
		}
		return w.member(o.items[0], key, how, n)
	case array:
		if m := arrayMember(v, key); m != nil {
			return m
		}
	case regex:
		switch key {
		case "source":
			return o.items[0]
		case "flags":
			return o.items[1]
		}
		return unknown
	case closure, bound, resolver, class:
		if m := w.functionMember(v, key); m != nil {
			return m
		}
	case instance:
		if o.base != nil && o.base.ref != nil && depth > 0 {
			if m := w.protoMember(v, o.base.ref, key, how, n, depth); m != nil {
				return m
			}
			return nil
		}
	default: // only what it inherits is left
	}
	if o.base != nil && depth > 0 {
		if o.base.ref == nil {
			return w.member(o.base, key, how, n)
		}
		return w.memberRef(o.base, key, how, n, depth-1)
	}
	switch key {
	case "constructor":
		return named("Object", "constructor")
	case "__proto__":
		if o.role == plain && !o.open {
			return named("Object.prototype", how)
		}
		return v
	}
	return nil
}

// protoMember is a member that an instance has from its class.
func (w *walk) protoMember(v *val, c *object, key, how string, n id, depth int) *val {
	for ; c != nil && depth > 0; depth-- {
		if m, ok := c.proto[key]; ok {
			return w.got(m, v, n)
		}
		if key == "constructor" {
			return &val{ref: c}
		}
		switch {
		case c.base == nil:
			return nil
		case c.base.ref == nil && c.base.name != "":
			return &val{name: joinName(c.base.name, key), how: how, this: v, recv: v.recv}
		case c.base.ref == nil:
			return unknown
		}
		c = c.base.ref
	}
	return nil
}

// got runs a getter.
func (w *walk) got(m, this *val, n id) *val {
	if m.ref != nil && m.ref.fn != nil && m.ref.fn.getter {
		return w.invoke(m.ref.fn, this, nil, n)
	}
	return m
}

func arrayMember(v *val, key string) *val {
	o := v.ref
	if key == "length" {
		if o.open {
			return unknown
		}
		return numeric(float64(len(o.items)))
	}
	if i, ok := index(key); ok {
		if i < len(o.items) {
			return o.items[i]
		}
		if o.open {
			return opaque(o.from)
		}
		return undefined
	}
	if key == "constructor" {
		return named("Array", "constructor")
	}
	if arrayMethods[key] {
		return &val{name: "Array.prototype." + key, this: v}
	}
	return nil
}

func (w *walk) functionMember(v *val, key string) *val {
	switch key {
	case "constructor":
		return named("Function", "constructor")
	case "call", "apply", "bind", "toString":
		return &val{name: "Function.prototype." + key, this: v}
	case "name":
		if v.ref.fn != nil && v.ref.fn.name != "" {
			return text(v.ref.fn.name)
		}
		return unknown
	case "prototype":
		// Members given to the prototype are those of instances.
		if v.ref.proto == nil {
			v.ref.proto = make(map[string]*val)
		}
		p := &object{role: plain, props: v.ref.proto, base: &val{ref: &object{role: plain, props: map[string]*val{"constructor": v}}}}
		v.ref.set("prototype", &val{ref: p})
		return v.ref.props["prototype"]
	case "length":
		return unknown
	}
	return nil
}

// foreignMember is a member of a module or a global.
func (w *walk) foreignMember(v *val, key, how string, n id) *val {
	if v.name == envName {
		w.env("read", text(key), nil, n)
		if key == "HOME" {
			return text("~")
		}
		if known := w.variable(key); known != nil {
			return known
		}
		return opaque([]string{"env:" + key})
	}
	if v.name == globalName {
		if b, ok := w.root.vars[key]; ok {
			return b.get(w.late > 0)
		}
		m := w.global(key)
		if v.page && m.name == globalName {
			return v
		}
		if m.name != "" && how != "" {
			return &val{name: m.name, how: how, Value: m.Value}
		}
		return m
	}
	name, kept := canonical(v.name, key)
	switch {
	case key == "length":
		return opaque(v.From)
	case key == "__proto__":
		return v
	case key == "constructor" && strings.HasSuffix(v.name, ".prototype") && v.name != "Function.prototype":
		return &val{name: strings.TrimSuffix(v.name, ".prototype"), how: v.how}
	case name == "":
		return opaque(v.From)
	}
	if m := w.extra[name]; m != nil {
		return m
	}
	if name == "process.platform" {
		if os := w.platform(); os != nil {
			return os
		}
	}
	if v.name == "process.argv" && key == "1" {
		return of(facts.OwnSource(".js", "argv"))
	}
	if key == "constructor" {
		how = "constructor"
	}
	if how == "" && v.how != "alias" {
		how = v.how
	}
	m := &val{name: name, how: how, this: v, Value: facts.Value{From: v.From}}
	if kept {
		m.recv = v.recv
	}
	if argv := w.argv(name); argv != nil {
		return argv
	}
	if from := sourceOf[name]; from != "" {
		m.Value = m.WithFrom(from)
	}
	return m
}

// unknownMember is a member whose name is not known.
func (w *walk) unknownMember(v, key *val, n id) *val {
	from := merge(v.From, key.From)
	switch {
	case v.alts != nil:
		var out *val
		for _, a := range v.alts {
			out = union(out, w.unknownMember(a, key, n))
		}
		return out
	case v.ref != nil && v.ref.role == proxy:
		if m, ok := w.proxied(v, "get", []*val{key, v}, n); ok {
			return m
		}
		return w.unknownMember(v.ref.items[0], key, n)
	case v.ref != nil:
		return anyMember(v)
	case v.name == envName:
		w.env("read", key, nil, n)
		return opaque([]string{"env"})
	case v.name != "":
		if class := w.module(v.name); eager[class] {
			w.dynamic(facts.DynAttr, v.name+"["+key.Head()+"…]", n, key.From...)
		}
		return &val{name: v.name + unknownSuffix, how: "subscript", this: v, Value: facts.Opaque(from...), page: v.page}
	case v.Type == "str" && v.Known():
		return opaque(from)
	case v.foreign():
		return opaque(from)
	}
	return opaque(from)
}

// anyMember is any of the members of an object of the program.
func anyMember(v *val) *val {
	o := v.ref
	var out *val
	count := 0
	for _, it := range slices.Concat(o.items[:min(len(o.items), facts.MaxAlts+1)], o.loose[:min(len(o.loose), facts.MaxAlts)]) {
		if count++; count > facts.MaxAlts {
			break
		}
		out = union(out, it)
	}
	for _, k := range o.keys {
		if count++; count > facts.MaxAlts {
			break
		}
		out = union(out, o.props[k])
	}
	if o.base != nil && o.base.name != "" {
		out = union(out, itemOf(o.base))
	}
	if out == nil {
		return opaque(o.from)
	}
	if o.open || count > facts.MaxAlts {
		return out.opened()
	}
	return out
}

// eager are the classes of modules of which taking a member by a name that is not known is a fact, called or not.
var eager = map[string]bool{"process": true, "code": true, "import": true}

// joinName is the dotted name of a member; very long chains have none.
func joinName(base, key string) string {
	if len(base)+len(key) > 160 || strings.Count(base, ".") > 7 {
		return "…"
	}
	return base + "." + key
}
