package javascript

import (
	"math"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// builtinMethod calls a method that every value of a type has. It reports false where obj is not of such a type, or the
// method is not one of them.
func (w *walk) builtinMethod(obj *val, key string, s *site) (*val, bool) {
	switch {
	case obj.alts != nil:
		return nil, false
	case obj.isArray():
		if obj.ref.props[key] != nil {
			return nil, false
		}
		return w.arrayMethod(obj, key, s)
	case obj.ref != nil:
		return w.objectMethod(obj, key, s)
	case obj.name != "":
		return nil, false
	case obj.isBytes() || obj.Type == "bytes":
		return w.bytesMethod(obj, key, s)
	case obj.isNumber():
		return numberMethod(obj, key, s)
	case obj.Type == "str":
		return w.textMethod(obj, key, s)
	case obj.foreign():
		return w.foreignMethod(obj, key, s)
	}
	return w.unknownMethod(obj, key, s)
}

// foreignMethod is a method of what a call outside the program gave, where every value has that method.
func (w *walk) foreignMethod(obj *val, key string, s *site) (*val, bool) {
	if obj.Type == "TextDecoder" && key == "decode" {
		return toEncoding(s.arg(0), ""), true
	}
	if obj.Type == "TextEncoder" && key == "encode" {
		return asBytes(s.arg(0)), true
	}
	if _, ok := w.b.API(obj.Type + "." + key); ok {
		return nil, false
	}
	switch {
	case keepsOrigin[key]:
		w.handOver(s, obj.From)
		return opaque(merge(obj.From, s.origins())), true
	case iterates[key]:
		return w.unknownMethod(obj, key, s)
	}
	return nil, false
}

// keepsOrigin are methods of texts and arrays that give a part of what they are called on.
var keepsOrigin = map[string]bool{
	"toString": true, "trim": true, "trimEnd": true, "trimStart": true, "split": true, "slice": true, "substring": true,
	"substr": true, "replace": true, "replaceAll": true, "toLowerCase": true, "toUpperCase": true, "concat": true,
	"join": true, "match": true, "matchAll": true, "charAt": true, "at": true, "padStart": true, "padEnd": true,
	"repeat": true, "includes": true, "startsWith": true, "endsWith": true, "indexOf": true, "pop": true, "shift": true,
	"valueOf": true, "toJSON": true, "text": true, "json": true, "arrayBuffer": true, "subarray": true, "charCodeAt": true,
	"reverse": true, "sort": true, "toFixed": true, "keys": true, "values": true, "entries": true, "codePointAt": true,
}

// iterates are methods that call what they are given once for each item.
var iterates = map[string]bool{
	"map": true, "forEach": true, "filter": true, "find": true, "findIndex": true, "findLast": true, "some": true,
	"every": true, "flatMap": true, "reduce": true, "reduceRight": true,
}

// unknownMethod is a method of something that is not known: what it calls back gets something from there.
func (w *walk) unknownMethod(obj *val, key string, s *site) (*val, bool) {
	from := merge(obj.From, s.origins())
	if !iterates[key] && !callsBack[key] || len(s.args) == 0 {
		if key == "constructor" {
			return nil, false
		}
		w.handOver(s, from)
		return opaque(from), true
	}
	if key == "pipe" {
		s.name = "pipe"
		w.pipes(s)
	}
	item := opaque(obj.From)
	for _, f := range s.args {
		f.all(func(f *val) {
			if f.name != "" && !pureName(f.name) {
				w.apply(f, &site{n: s.n, args: []*val{item}, open: true, how: "value"})
			}
		})
	}
	w.handOver(s, from)
	return opaque(from), true
}

func numberMethod(obj *val, key string, s *site) (*val, bool) {
	f, ok := obj.float()
	switch {
	case !ok:
		return opaque(obj.From), true
	case key == "toString":
		base := 10
		if b, ok := s.arg(0).integer(); ok {
			base = b
		}
		if t, ok := inBase(f, base); ok {
			return text(t), true
		}
	case key == "toFixed":
		if f == math.Trunc(f) && s.arg(0).isNone() {
			return text(spell(f)), true
		}
	case key == "valueOf":
		return obj, true
	}
	return opaque(obj.From), true
}

// objectMethod is a method that objects, functions, regular expressions and collections have.
func (w *walk) objectMethod(obj *val, key string, s *site) (*val, bool) {
	o := obj.ref
	if o.props[key] != nil {
		return nil, false
	}
	switch {
	case o.role == regex:
		return w.regexMethod(obj, key, s), true
	case o.collection():
		return w.collectionMethod(obj, key, s), true
	case key == "toString" && o.role == closure && o.fn != nil && o.proto == nil:
		nd := o.fn.tree.nodes[o.fn.at]
		return text(o.fn.tree.src[nd.start:nd.end]), true
	case key == "hasOwnProperty" && o.role != instance:
		return unknown, true
	case o.role == promise:
		return unknown, true
	}
	return nil, false
}

func (w *walk) regexMethod(obj *val, key string, s *site) *val {
	if key == "test" {
		if re, _, ok := goRegexp(obj); ok {
			if t, ok := s.arg(0).one(); ok && s.arg(0).isText() {
				return boolean(re.MatchString(t))
			}
		}
		return unknown
	}
	if key == "toString" {
		return plus(plus(text("/"), obj.ref.items[0]), plus(text("/"), obj.ref.items[1]))
	}
	return w.lost(s)
}

func (w *walk) collectionMethod(obj *val, key string, s *site) *val {
	o := obj.ref
	switch key {
	case "get":
		if k, ok := s.arg(0).keyText(); ok {
			if v := o.props[k]; v != nil {
				return v
			}
		}
		return anyMember(obj)
	case "set":
		if k, ok := s.arg(0).keyText(); ok {
			o.set(k, s.arg(1))
		} else {
			o.set("@?", union(o.props["@?"], s.arg(1)))
		}
		o.from = merge(o.from, s.origins())
		return obj
	case "add":
		o.set("@"+spell(float64(len(o.keys))), s.arg(0))
		o.from = merge(o.from, s.origins())
		return obj
	case "forEach":
		return w.back(s.arg(0), []*val{anyMember(obj), unknown}, s.n)
	case "values", "keys", "entries", "@@Symbol.iterator":
		return &val{ref: &object{role: array, open: true, from: o.from, items: o.members()}}
	}
	w.handOver(s, o.from)
	return opaque(o.from)
}

func (w *walk) bytesMethod(obj *val, key string, s *site) (*val, bool) {
	switch key {
	case "toString":
		enc, _ := s.arg(0).one()
		if s.arg(0).isNone() {
			enc = ""
		}
		return toEncoding(obj, enc), true
	case "slice", "subarray":
		return of(obj.Map(func(t string) (string, bool) {
			a, b, ok := bounds(s, len(t))
			return t[a:max(a, b)], ok
		})), true
	case "reverse":
		return of(obj.Map(func(t string) (string, bool) {
			b := []byte(t)
			for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
				b[i], b[j] = b[j], b[i]
			}
			return string(b), true
		})), true
	case "map", "forEach", "reduce", "filter":
		items, open := elements(obj)
		v, ok := w.arrayMethod(&val{ref: &object{role: array, items: items, open: open, from: obj.From}}, key, s)
		if b, isBytes := bytesOf(v); key == "map" && isBytes {
			return b, ok
		}
		return v, ok
	case "write", "fill", "copy", "set":
		return opaque(merge(obj.From, s.origins())), true
	}
	return opaque(obj.From), true
}

// bounds reads the two arguments of slice.
func bounds(s *site, n int) (a, b int, ok bool) {
	clamp := func(v *val, def int) (int, bool) {
		if v.isNone() {
			return def, true
		}
		i, ok := v.integer()
		if i < 0 {
			i += n
		}
		return max(0, min(i, n)), ok
	}
	var okA, okB bool
	a, okA = clamp(s.arg(0), 0)
	b, okB = clamp(s.arg(1), n)
	return a, max(a, b), okA && okB
}

// textMethod is a method of a text.
func (w *walk) textMethod(obj *val, key string, s *site) (*val, bool) {
	switch key {
	case "toString", "valueOf", "normalize":
		return obj, true
	case "concat":
		v := obj
		for _, a := range s.args {
			v = plus(v, plus(text(""), a))
		}
		return v, true
	case "split":
		return w.split(obj, s), true
	case "replace", "replaceAll":
		return w.replace(obj, key == "replaceAll", s), true
	case "match", "matchAll", "search":
		if key == "search" {
			break
		}
		return match(obj, key == "matchAll", s), true
	case "trim", "trimEnd", "trimStart":
		if !obj.Known() {
			return obj, true
		}
	}
	if f, ok := textFolds[key]; ok {
		var out *val
		for _, t := range obj.Alts {
			r := f(t, s)
			if r == nil {
				out = union(out, unknown)
				continue
			}
			out = union(out, r)
		}
		if out == nil || obj.Open {
			return opaque(merge(obj.From, s.origins())), true
		}
		return out.with(obj.From), true
	}
	w.handOver(s, obj.From)
	return opaque(merge(obj.From, s.origins())), true
}

// fold is a method of a text that is known; nil where its arguments are not.
type fold func(t string, s *site) *val

var textFolds = map[string]fold{
	"toLowerCase":       func(t string, _ *site) *val { return text(strings.ToLower(t)) },
	"toUpperCase":       func(t string, _ *site) *val { return text(strings.ToUpper(t)) },
	"toLocaleLowerCase": func(t string, _ *site) *val { return text(strings.ToLower(t)) },
	"toLocaleUpperCase": func(t string, _ *site) *val { return text(strings.ToUpper(t)) },
	"trim":              func(t string, _ *site) *val { return text(strings.TrimSpace(t)) },
	"trimStart":         func(t string, _ *site) *val { return text(strings.TrimLeft(t, " \t\r\n\v\f")) },
	"trimEnd":           func(t string, _ *site) *val { return text(strings.TrimRight(t, " \t\r\n\v\f")) },
	"slice": func(t string, s *site) *val {
		u := units(t)
		a, b, ok := bounds(s, len(u))
		return okText(fromUnits(u[a:b]), ok)
	},
	"substring": foldSubstring, "substr": foldSubstr, "charAt": foldCharAt, "at": foldAt, "charCodeAt": foldCode,
	"codePointAt": foldCode, "repeat": foldRepeat, "padStart": foldPad(true), "padEnd": foldPad(false),
	"indexOf": func(t string, s *site) *val {
		sub, ok := s.arg(0).one()
		if !ok || !s.arg(1).isNone() || !ascii(t) {
			return nil
		}
		return numeric(float64(strings.Index(t, sub)))
	},
	"includes":   foldPredicate(strings.Contains),
	"startsWith": foldPredicate(strings.HasPrefix),
	"endsWith":   foldPredicate(strings.HasSuffix),
}

func okText(t string, ok bool) *val {
	if !ok {
		return nil
	}
	return text(t)
}

func foldPredicate(f func(t, sub string) bool) fold {
	return func(t string, s *site) *val {
		sub, ok := s.arg(0).one()
		if !ok || !s.arg(1).isNone() {
			return nil
		}
		return boolean(f(t, sub))
	}
}

func foldSubstring(t string, s *site) *val {
	u := units(t)
	clamp := func(v *val, def int) (int, bool) {
		if v.isNone() {
			return def, true
		}
		i, ok := v.integer()
		return max(0, min(i, len(u))), ok
	}
	a, okA := clamp(s.arg(0), 0)
	b, okB := clamp(s.arg(1), len(u))
	return okText(fromUnits(u[min(a, b):max(a, b)]), okA && okB)
}

func foldSubstr(t string, s *site) *val {
	u := units(t)
	a, ok := s.arg(0).integer()
	if a < 0 {
		a += len(u)
	}
	a = max(0, min(a, len(u)))
	n := len(u) - a
	if !s.arg(1).isNone() {
		m, okN := s.arg(1).integer()
		n, ok = max(0, min(n, m)), ok && okN
	}
	return okText(fromUnits(u[a:a+n]), ok)
}

func foldCharAt(t string, s *site) *val {
	i, ok := s.arg(0).integer()
	if !ok && !s.arg(0).isNone() {
		return nil
	}
	c, _ := charAt(text(t), i)
	if c.isNone() {
		return text("")
	}
	return c
}

func foldAt(t string, s *site) *val {
	i, ok := s.arg(0).integer()
	if !ok {
		return nil
	}
	if i < 0 {
		i += len(units(t))
	}
	c, _ := charAt(text(t), i)
	return c
}

func foldCode(t string, s *site) *val {
	i, ok := s.arg(0).integer()
	if !ok && !s.arg(0).isNone() {
		return nil
	}
	u := units(t)
	if i < 0 || i >= len(u) {
		return numeric(math.NaN())
	}
	return numeric(float64(u[i]))
}

func foldRepeat(t string, s *site) *val {
	n, ok := s.arg(0).integer()
	if !ok || n < 0 || n*len(t) > facts.MaxFolded {
		return nil
	}
	return text(strings.Repeat(t, n))
}

func foldPad(start bool) fold {
	return func(t string, s *site) *val {
		n, ok := s.arg(0).integer()
		pad := " "
		if !s.arg(1).isNone() {
			var okPad bool
			pad, okPad = s.arg(1).one()
			ok = ok && okPad
		}
		if !ok || n > facts.MaxFolded {
			return nil
		}
		fill := n - len(units(t))
		if fill <= 0 || pad == "" {
			return text(t)
		}
		u := units(strings.Repeat(pad, fill/len(units(pad))+1))[:fill]
		if start {
			return text(fromUnits(u) + t)
		}
		return text(t + fromUnits(u))
	}
}
