package python

import "github.com/caisson-dev/caisson/policy/facts"

func (it *interp) subscriptExpr(n *node, s *scope) *val {
	obj := it.evalOr(n.child("value"), s)
	var keys []*val
	var cut *node
	for c := n.first; c != nil; c = c.next {
		if c.field != "subscript" {
			continue
		}
		if c.kind == "slice" {
			cut = c
			keys = append(keys, unknown)
			continue
		}
		keys = append(keys, it.eval(c, s))
	}
	if len(keys) == 0 {
		return derived(obj)
	}
	if cut != nil && len(keys) == 1 {
		return it.slice(obj, cut, s)
	}
	key := keys[0]
	if len(keys) > 1 {
		key = list(kTuple, keys)
	}
	return it.item(obj, key, n, s)
}

// indexing is the hook that runs where a class is followed by brackets.
const indexing = "__class_getitem__"

// laterHooks are those that run where something is done with the class, or with
// an object of it, which is seen there.
var laterHooks = map[string]bool{indexing: true, "__set_name__": true}

// item is v[key].
func (it *interp) item(v, key *val, n *node, s *scope) *val {
	switch v.kind {
	case kAlt:
		var out *val
		for _, b := range v.x.alts {
			out = join(out, it.item(b, key, n, s))
		}
		return out
	case kSpace:
		return it.lookup(v, key, n, s)
	case kDict:
		return v.value(key)
	case kList, kTuple, kSet:
		return indexed(v, key)
	case kStr, kBytes:
		return indexText(v, key)
	case kRef:
		return it.itemOfRef(v, key, n)
	case kWrap:
		if v.text == "program" {
			return program(append(append([]*val(nil), v.x.items...), keyItems(key)...)...)
		}
	case kClass:
		it.began(v.x.cls.member(indexing, 0) != nil)
		if name, ok := key.oneText(); ok {
			if m := v.x.cls.member(name, 0); m != nil {
				return m
			}
		}
	case kInst:
		if v.x.cls.tuple {
			return indexed(list(kTuple, v.x.cls.items()), key)
		}
		if m := v.x.cls.member("__getitem__", 0); m != nil && m.kind == kFunc {
			return it.follow(m.x.fn, &arguments{pos: []*val{key}}, v, n)
		}
	case kObj:
		if v.text == cLibrary {
			return it.attributeNamed(v, key, n, s)
		}
		if field := recordField(v.text, key); field != "" {
			return it.attribute(v, field, n, s)
		}
		out := derived(v, key)
		if _, ok := it.b.API(v.text + ".__getitem__"); ok {
			return it.report(v.text+".__getitem__", &arguments{pos: []*val{key}}, v, n)
		}
		return out
	default: // nothing known is in it
	}
	return derived(v, key)
}

// keyItems are the words in x[a, b].
func keyItems(key *val) []*val {
	if key.isSeq() {
		return key.x.items
	}
	return []*val{key}
}

func (it *interp) itemOfRef(v, key *val, n *node) *val {
	if p := it.programOf(v.text); p != "" {
		return program(append([]*val{str(p)}, keyItems(key)...)...)
	}
	switch v.text {
	case "plumbum.local":
		return program(key)
	case "sys.modules":
		name, ok := key.oneText()
		if !ok {
			if key.kind == kStr {
				return it.eachText(key, func(s string) *val { return ref(canonical(s), "subscript") })
			}
			return fromSomewhere // one that is loaded already
		}
		if name == "__main__" {
			return &val{kind: kSpace}
		}
		if v := it.swap(name); v != nil {
			return v
		}
		it.importFact(n, facts.Import{Module: name, How: "dynamic"})
		return ref(canonical(name), "subscript")
	case "os.environ", "os.environb":
		it.env("read", key, nil, n)
		name, _ := key.oneText()
		if name == "HOME" {
			return str("~")
		}
		if v := it.variable(name); v != nil {
			return v
		}
		return &val{from: mix([]string{"env:" + name}, key.from)}
	case "builtins":
		return it.lookup(&val{kind: kSpace, x: &extra{self: v}}, key, n, it.module)
	case "object":
		return v // a class among __mro__ or __bases__
	case "ctypes.cdll", "ctypes.windll", "ctypes.pydll", "ctypes.oledll":
		return it.report(cLibrary, &arguments{pos: []*val{namedLibrary(key)}}, nil, n)
	}
	if i, ok := key.int(); ok && i == 0 && v.text == "sys.argv" {
		return fromFact(facts.OwnSource(".py", "argv"))
	}
	if len(v.from) > 0 {
		return derived(v, key)
	}
	if v.x == nil || v.x.self == nil {
		return v // List[int], Callable[[int], str]: a type
	}
	return derived(v, key)
}

// value is d[key].
func (v *val) value(key *val) *val {
	if k := dictKey(key); k != "" {
		if got := v.x.dict[k]; got != nil {
			if v.open && got.kind == kStr && len(v.from) > 0 {
				return join(got, derived(v)) // or what was put in its place
			}
			return got
		}
		if got := v.x.dict["?:"]; got != nil {
			return got
		}
		return &val{from: v.from}
	}
	var out *val
	for i, k := range v.x.order {
		if i >= facts.MaxAlts {
			out = join(out, derived(v))
			break
		}
		out = join(out, v.x.dict[k])
	}
	if out == nil {
		return derived(v, key)
	}
	if v.open && out.kind == kStr {
		out = join(out, derived(v)) // what else it holds
	}
	return out.with(key.from)
}

func indexed(v, key *val) *val {
	if i, ok := key.int(); ok && !v.open {
		if i < 0 {
			i += int64(len(v.x.items))
		}
		if i >= 0 && int(i) < len(v.x.items) {
			return v.x.items[i]
		}
		return unknown
	}
	var out *val
	for i, item := range v.x.items {
		if i >= facts.MaxAlts {
			return derived(v)
		}
		out = join(out, item)
	}
	if v.open {
		out = join(out, &val{from: v.from})
	}
	if out == nil {
		return derived(v)
	}
	return out
}
