package javascript

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

func nativeArray(w *walk, s *site) (*val, bool) {
	if len(s.args) == 1 && s.arg(0).isNumber() {
		if n, ok := s.arg(0).integer(); ok && n >= 0 && n <= 256 {
			o := &object{role: array}
			for range n {
				o.items = append(o.items, undefined)
			}
			return &val{ref: o}, true
		}
		return &val{ref: &object{role: array, open: true}}, true
	}
	return nativeArrayOf(w, s)
}

func nativeArrayOf(_ *walk, s *site) (*val, bool) {
	return &val{ref: &object{role: array, items: s.args, open: s.open}}, true
}

func nativeIsArray(_ *walk, s *site) (*val, bool) {
	if s.arg(0).ref != nil {
		return boolean(s.arg(0).isArray()), true
	}
	return unknown, true
}

func nativeArrayFrom(w *walk, s *site) (*val, bool) {
	src := s.arg(0)
	items, open := elements(src)
	if src.ref != nil && src.ref.role == plain {
		n, ok := w.member(src, "length", "", s.n).integer()
		if items, open = nil, !ok || n > 256; open {
			n = 0
		}
		for range max(0, n) {
			items = append(items, undefined)
		}
	}
	o := &object{role: array, open: open, from: src.From}
	for i, it := range items {
		if len(s.args) > 1 {
			it = w.back(s.arg(1), []*val{it, numeric(float64(i))}, s.n)
		}
		o.items = append(o.items, it)
	}
	if open && len(s.args) > 1 {
		o.items = append(o.items, w.back(s.arg(1), []*val{itemOf(src), unknown}, s.n))
	}
	return &val{ref: o}, true
}

// keysOf are the names of the members of v.
func (w *walk) keysOf(v *val, n id) ([]*val, bool) {
	switch {
	case v.name == envName:
		if w.picks > 0 {
			w.env("filter", unknown, nil, n)
		} else {
			w.env("dump", unknown, nil, n)
		}
		return nil, true
	case v.isArray():
		var keys []*val
		for i := range v.ref.items {
			keys = append(keys, text(strconv.Itoa(i)))
		}
		return keys, v.ref.open
	case v.ref != nil:
		var keys []*val
		for _, k := range v.ref.keys {
			keys = append(keys, text(k))
		}
		return keys, v.ref.open
	}
	return nil, true
}

func nativeKeys(w *walk, s *site) (*val, bool) {
	keys, open := w.keysOf(s.arg(0), s.n)
	return &val{ref: &object{role: array, items: keys, open: open, from: s.arg(0).From}}, true
}

func nativeValues(w *walk, s *site) (*val, bool) {
	v := s.arg(0)
	if v.isArray() {
		return v, true
	}
	keys, open := w.keysOf(v, s.n)
	o := &object{role: array, open: open, from: v.From}
	for _, k := range keys {
		name, _ := k.one()
		o.items = append(o.items, w.member(v, name, "subscript", s.n))
	}
	if v.name != "" && v.name != envName {
		o.items = append(o.items, w.unknownMember(v, unknown, s.n))
	}
	return &val{ref: o}, true
}

func nativeEntries(w *walk, s *site) (*val, bool) {
	v := s.arg(0)
	keys, open := w.keysOf(v, s.n)
	o := &object{role: array, open: open, from: v.From}
	for _, k := range keys {
		name, _ := k.one()
		o.items = append(o.items, list([]*val{k, w.member(v, name, "subscript", s.n)}))
	}
	if v.name != "" && v.name != envName {
		o.items = append(o.items, list([]*val{unknown, w.unknownMember(v, unknown, s.n)}))
	}
	return &val{ref: o}, true
}

func nativeFromEntries(w *walk, s *site) (*val, bool) {
	items, open := elements(s.arg(0))
	o := &object{role: plain, open: open, from: s.origins()}
	for _, it := range items {
		pair, _ := elements(it)
		if len(pair) < 2 {
			o.open = true
			continue
		}
		if k, ok := pair[0].keyText(); ok {
			o.set(k, pair[1])
		} else {
			w.loosen(o, pair[1])
		}
	}
	return &val{ref: o}, true
}

func nativeAssign(w *walk, s *site) (*val, bool) {
	target := s.arg(0)
	if target.ref == nil {
		for _, a := range from(s.args, 1) {
			if a.ref != nil {
				for _, k := range a.ref.keys {
					w.inherited(target, k, s.n)
				}
			}
		}
		if target.name == envName {
			for _, a := range from(s.args, 1) {
				if a.ref != nil {
					for _, k := range a.ref.keys {
						w.env("write", text(k), a.ref.props[k], s.n)
					}
				}
			}
		}
		return target, true
	}
	for _, a := range from(s.args, 1) {
		w.spreadInto(target.ref, a)
	}
	return target, true
}

func nativeCreate(_ *walk, s *site) (*val, bool) {
	o := &object{role: plain}
	if !s.arg(0).isNone() {
		o.base = s.arg(0)
		o.open = o.base.ref == nil
	}
	return &val{ref: o}, true
}

func nativeDescriptor(w *walk, s *site) (*val, bool) {
	o := &object{role: plain}
	if key, ok := s.arg(1).keyText(); ok {
		o.set("value", w.member(s.arg(0), key, "attr", s.n))
	} else {
		o.set("value", w.unknownMember(s.arg(0), s.arg(1), s.n))
	}
	o.set("get", unknown)
	return &val{ref: o}, true
}

func nativeReflectGet(w *walk, s *site) (*val, bool) {
	if key, ok := s.arg(1).keyText(); ok {
		return w.member(s.arg(0), key, "attr", s.n), true
	}
	return w.unknownMember(s.arg(0), s.arg(1), s.n), true
}

func nativeReflectApply(w *walk, s *site) (*val, bool) {
	items, open := elements(s.arg(2))
	return w.apply(s.arg(0), &site{n: s.n, this: s.arg(1), args: items, open: open}), true
}

func nativeReflectConstruct(w *walk, s *site) (*val, bool) {
	items, open := elements(s.arg(1))
	return w.apply(s.arg(0), &site{n: s.n, args: items, open: open, new: true}), true
}

func nativeRegExp(_ *walk, s *site) (*val, bool) {
	if s.arg(0).ref != nil {
		return s.arg(0), true
	}
	flags := s.arg(1)
	if flags.isNone() {
		flags = text("")
	}
	return &val{ref: &object{role: regex, items: []*val{s.arg(0), flags}}}, true
}

// nativeMap is a collection whose members are not told apart by key.
func nativeMap(w *walk, s *site) (*val, bool) {
	o := &object{role: plain, open: true, from: s.origins()}
	items, _ := elements(s.arg(0))
	for i, it := range items {
		pair, _ := elements(it)
		if strings.HasSuffix(s.name, "Map") && len(pair) > 1 {
			if k, ok := pair[0].keyText(); ok {
				o.set(k, pair[1])
				continue
			}
			it = pair[1]
		}
		o.set("@"+strconv.Itoa(i), it)
	}
	o.made = yes // marks a collection: no is one with keys
	if strings.HasSuffix(s.name, "Map") {
		o.made = no
	}
	return &val{ref: o}, true
}

// nativeError is an object that things can be put on.
func nativeError(w *walk, s *site) (*val, bool) {
	o := &object{role: plain, open: true, from: s.origins()}
	o.set("message", s.arg(0))
	return &val{ref: o}, true
}

// collection reports that o is a Map or a Set.
func (o *object) collection() bool { return o.role == plain && (o.made == yes || o.made == no) }

// members are the items of a collection, as a loop over it gets them.
func (o *object) members() []*val {
	out := make([]*val, 0, len(o.keys))
	for _, k := range o.keys {
		v := o.props[k]
		if o.made == no {
			v = list([]*val{text(k), v})
		}
		out = append(out, v)
	}
	return out
}

// nativePathJoin joins parts of a path.
func nativePathJoin(w *walk, s *site) (*val, bool) {
	if s.open || len(s.args) == 0 {
		return opaque(s.origins()), true
	}
	parts := make([]facts.Value, 0, 2*len(s.args))
	for i, a := range s.args {
		if t, ok := a.one(); ok && t == "" && a.isText() {
			continue
		}
		if i > 0 {
			parts = append(parts, facts.Text("/"))
		}
		parts = append(parts, joinable(a))
	}
	return w.outward(s.arg(0), of(cleaned(facts.Concat(parts...)))), true
}

// outward is a path made of the program's own folder. Where that leaves what the
// folder was taken for, the program lies deeper, as likely as not.
func (w *walk) outward(base, v *val) *val {
	p, ok := v.one()
	cwd := w.b.Cwd()
	if base != w.own || cwd == "" || !ok || p == cwd || strings.HasPrefix(p, cwd+"/") || !strings.HasPrefix(p, "/") {
		return v
	}
	return of(facts.Text(strings.TrimSuffix(cwd+p, "/")).WithFrom(append(slices.Clone(v.From), facts.FromAbove)...))
}

func cleaned(v facts.Value) facts.Value {
	if v.Known() {
		return v.Map(func(p string) (string, bool) { return path.Clean(p), true })
	}
	if p := v.Head(); strings.Contains(p, "/") {
		dir, base := path.Split(p)
		v.Prefix = strings.TrimSuffix(path.Clean(dir), "/") + "/" + base
		if !strings.HasPrefix(p, "/") {
			v.Prefix = strings.TrimPrefix(v.Prefix, "/")
		}
	}
	v.Type = "str"
	return v
}

// nativePathResolve starts over at each absolute part.
func nativePathResolve(w *walk, s *site) (*val, bool) {
	if s.open {
		return opaque(s.origins()), true
	}
	parts := []facts.Value{facts.Text(w.b.Cwd())}
	if w.b.Cwd() == "" {
		parts[0] = facts.Opaque()
	}
	for _, a := range s.args {
		p := joinable(a)
		if h := p.Head(); strings.HasPrefix(h, "/") || strings.HasPrefix(h, "~") {
			parts = parts[:0]
		} else {
			parts = append(parts, facts.Text("/"))
		}
		parts = append(parts, p)
	}
	return w.outward(s.arg(0), of(cleaned(facts.Concat(parts...)))), true
}

func nativePathDir(w *walk, s *site) (*val, bool) {
	if v := s.arg(0); v.simple() && v.Prefix == w.b.Cwd()+"/" && v.Suffix == "" && slices.Contains(v.From, "self") {
		return w.here(""), true // of the program's own file
	}
	if v := s.arg(0); v.simple() && !v.Known() && strings.HasPrefix(v.Prefix, "/") {
		return of(facts.Partial(v.Prefix, "").WithFrom(v.From...)), true
	}
	return w.outward(s.arg(0), mapText(s.arg(0), func(p string) (string, bool) { return path.Dir(p), true })), true
}

func nativePathBase(_ *walk, s *site) (*val, bool) {
	cut, _ := s.arg(1).one()
	return mapText(s.arg(0), func(p string) (string, bool) { return strings.TrimSuffix(path.Base(p), cut), true }), true
}

func nativePathExt(_ *walk, s *site) (*val, bool) {
	return mapText(s.arg(0), func(p string) (string, bool) { return path.Ext(p), true }), true
}

func nativeHome(w *walk, s *site) (*val, bool) { return text("~"), true }

func nativeTmp(w *walk, s *site) (*val, bool) { return text("/tmp"), true }

func nativeCwd(w *walk, s *site) (*val, bool) {
	if cwd := w.b.Cwd(); cwd != "" {
		return text(cwd), true
	}
	return unknown, true
}

func nativeFilePath(w *walk, s *site) (*val, bool) {
	if s.arg(0).name == "import.meta.url" {
		return w.global("__filename"), true
	}
	return mapText(s.arg(0), func(p string) (string, bool) { return strings.TrimPrefix(p, "file://"), true }), true
}

// nativeURL keeps an address as the text that it is.
func nativeURL(_ *walk, s *site) (*val, bool) {
	base, ok := s.arg(1).one()
	if !ok || !s.arg(1).isText() {
		return plus(text(""), s.arg(0)), true
	}
	return mapText(s.arg(0), func(t string) (string, bool) {
		if strings.Contains(t, "://") {
			return t, true
		}
		return strings.TrimSuffix(base, "/") + "/" + strings.TrimPrefix(t, "/"), true
	}), true
}
