package javascript

// assignMode says where an assignment puts what it assigns.
type assignMode uint8

const (
	assignOnly assignMode = iota
	declareBlock
	declareCall // var
)

// assign gives v to a target: a name, a member, or a pattern of them.
func (w *walk) assign(target id, v *val, mode assignMode) {
	if target == 0 || !w.step() {
		return
	}
	switch w.t.kind(target) {
	case kIdentifier, kShorthandPattern, kShorthand:
		w.assignName(w.identText(w.t.text(target), target), v, mode)
	case kMember, kSubscript:
		w.assignMember(target, v)
	case kAssignPattern, kObjectAssignPattern:
		if v.isNone() || !known(v) {
			w.cond++
			d := w.expr(w.t.child(target, fRight))
			w.cond--
			if v.isNone() {
				v = d
			} else {
				v = union(d, v)
			}
		}
		w.assign(w.t.child(target, fLeft), v, mode)
	case kRest, kParen, kAs:
		for c := w.t.nodes[target].first; c != 0; c = w.t.nodes[c].next {
			if w.t.kind(c) != kToken {
				w.assign(c, v, mode)
				return
			}
		}
	case kArrayPattern, kArray:
		w.assignItems(target, v, mode)
	case kObjectPattern, kObject:
		w.assignMembers(target, v, mode)
	case kParam:
		w.assignParam(target, v, mode)
	default:
		w.expr(target)
	}
}

func known(v *val) bool { return v.Known() || v.ref != nil || v.name != "" || v.alts != nil }

func (w *walk) assignName(name string, v *val, mode assignMode) {
	switch mode {
	case declareBlock:
		if b := w.sc.vars[name]; b != nil && b.cond == w.cond && b.v.isNone() {
			b.v = v
			return
		}
		b := w.sc.declare(name, v, w.cond)
		if w.loops > 0 && w.base < w.cond {
			b.cond = w.cond
		}
		return
	case declareCall:
		s := w.sc.callScope()
		if b := s.vars[name]; b != nil {
			b.give(v, w.cond)
			return
		}
		s.declare(name, v, w.cond)
		return
	default: // an assignment, below
	}
	if b := w.sc.find(name); b != nil {
		b.give(v, w.cond)
		return
	}
	w.root.declare(name, v, w.cond)
}

func (w *walk) assignItems(target id, v *val, mode assignMode) {
	v = w.iterated(settled(v), target)
	items, open := elements(v)
	i := 0
	for c := w.t.nodes[target].first; c != 0; c = w.t.nodes[c].next {
		if w.t.kind(c) == kToken {
			continue
		}
		i = w.holes(target, c, i)
		switch {
		case w.t.kind(c) == kRest || w.t.kind(c) == kSpread:
			rest := &object{role: array, open: open, from: v.From}
			if i < len(items) {
				rest.items = items[i:]
			}
			w.assign(w.t.nodes[c].first, &val{ref: rest}, mode)
		case i < len(items):
			w.assign(c, items[i], mode)
		case open:
			w.assign(c, itemOf(v), mode)
		default:
			w.assign(c, undefined, mode)
		}
		i++
	}
}

// holes counts the items that a pattern leaves out before c ([, , x]): commas are not kept in the tree, so they are
// counted in the text between the items.
func (w *walk) holes(target, c id, i int) int {
	from := w.t.nodes[target].start + 1
	for s := w.t.nodes[target].first; s != c && s != 0; s = w.t.nodes[s].next {
		if w.t.kind(s) != kToken {
			from = w.t.nodes[s].end
		}
	}
	commas := 0
	for _, r := range w.t.src[from:w.t.nodes[c].start] {
		if r == ',' {
			commas++
		}
	}
	if w.t.nodes[target].start+1 != from && commas > 0 {
		commas--
	}
	return i + commas
}

func (w *walk) assignMembers(target id, v *val, mode assignMode) {
	v = settled(v)
	var taken []string
	w.t.each(target, func(c id) {
		switch w.t.kind(c) {
		case kShorthandPattern, kShorthand:
			name := w.identText(w.t.text(c), c)
			taken = append(taken, name)
			w.assign(c, w.member(v, name, "", c), mode)
		case kObjectAssignPattern, kAssignPattern:
			left := w.t.child(c, fLeft)
			m := unknown
			if k := w.t.kind(left); k == kShorthandPattern || k == kIdentifier {
				name := w.identText(w.t.text(left), left)
				taken = append(taken, name)
				m = w.member(v, name, "", c)
			}
			w.assign(c, m, mode)
		case kPairPattern, kPair:
			keyNode := w.t.child(c, fKey)
			key, ok := w.key(keyNode)
			how := ""
			if w.t.kind(keyNode) == kComputed {
				how = "subscript"
			}
			var m *val
			if ok {
				taken = append(taken, key)
				m = w.member(v, key, how, c)
			} else {
				m = w.unknownMember(v, unknown, c)
			}
			w.assign(w.t.child(c, fValue), m, mode)
		case kRest, kSpread:
			o := &object{role: plain}
			w.spreadInto(o, v)
			w.assign(w.t.nodes[c].first, &val{ref: o}, mode)
		default: // words and commas
		}
	})
}

// assignParam is a parameter of TypeScript, with its type left out.
func (w *walk) assignParam(target id, v *val, mode assignMode) {
	p := w.t.child(target, fPattern)
	if p == 0 {
		p = w.t.nodes[target].first
	}
	if d := w.t.child(target, fValue); d != 0 && (v.isNone() || !known(v)) {
		w.cond++
		dv := w.expr(d)
		w.cond--
		if v.isNone() {
			v = dv
		} else {
			v = union(dv, v)
		}
	}
	w.assign(p, v, mode)
}

func (w *walk) assignMember(target id, v *val) {
	objNode := w.t.child(target, fObject)
	obj := w.expr(objNode)
	key, ok := w.memberKey(target)
	w.put(obj, key, ok, v, target)
	if ok {
		w.packageScript(key, v, target)
	}
}

// packageScript follows a text that may become a script of a package.json.
func (w *walk) packageScript(key string, v *val, n id) {
	if w.quiet == 0 && w.b.Packages() && v.Known() && w.once("script "+key, n) {
		w.b.Script(key, v.Value, w.pos(n))
	}
}

// put gives obj a member; ok says that key is its name.
func (w *walk) put(obj *val, key string, ok bool, v *val, target id) {
	obj.all(func(o *val) {
		if o.ref != nil && o.ref == w.top {
			w.onTop[key] = w.onTop[key] || ok
		}
		switch {
		case o.ref != nil && o.ref.role == proxy:
			w.giveFunction(v, nil, 2)
			name := unknown
			if ok {
				name = text(key)
			}
			if _, done := w.proxied(o, "set", []*val{name, v}, target); !done {
				w.put(o.ref.items[0], key, ok, v, target)
			}
		case o.ref != nil && ok:
			if f := w.memberRef(o, setterOf+key, "", target, 4); f != nil && f.ref != nil && f.ref.fn != nil && f.ref.fn.setter {
				w.invoke(f.ref.fn, o, []*val{v}, target)
				return
			}
			w.setMember(o.ref, key, v)
		case o.ref != nil:
			w.loosen(o.ref, v)
			o.ref.from = merge(o.ref.from, v.origins())
			if o.ref.role == array && w.cond > w.base {
				return
			}
			if o.ref.role == array && len(o.ref.items) < maxItems {
				o.ref.items = append(o.ref.items, v)
			}
		case o.name == globalName && ok:
			w.assignName(key, v, assignOnly)
		case o.page && !o.plain: // nobody calls what is put there
		case o.name == globalName:
			w.setsGlobals(o)
			w.setForeign(o, key, ok, v, target)
		case o.name == "module" && ok && key == "exports":
			w.keepExtra(o, key, ok, v) // an export runs nothing by itself
		case o.name != "":
			w.setForeign(o, key, ok, v, target)
		case o.foreign() && ok:
			w.setForeign(o, key, ok, v, target)
		}
	})
}

// setterOf begins the names under which setters are kept.
const setterOf = "set "

// setMember gives an object of the program a member.
func (w *walk) setMember(o *object, key string, v *val) {
	if o.role == array {
		if i, ok := index(key); ok && i <= len(o.items) && i < maxItems {
			if i == len(o.items) {
				o.items = append(o.items, v)
				return
			}
			items := append([]*val(nil), o.items...)
			if w.cond > w.base {
				v = union(items[i], v)
			}
			items[i] = v
			o.items = items
			return
		}
		if _, ok := index(key); ok {
			w.loosen(o, v)
			return
		}
	}
	if old := o.props[key]; old != nil && w.cond > w.base {
		v = union(old, v)
	}
	nameFunction(v, key)
	if o.role == class && key == "prototype" && v.ref != nil {
		for _, k := range v.ref.keys {
			o.proto[k] = v.ref.props[k]
		}
		return
	}
	o.set(key, v)
}

func index(key string) (int, bool) {
	if key == "" || len(key) > 7 {
		return 0, false
	}
	n := 0
	for i := range len(key) {
		if key[i] < '0' || key[i] > '9' {
			return 0, false
		}
		n = n*10 + int(key[i]-'0')
	}
	return n, true
}

// delete takes a member away; of the environment it is a write.
func (w *walk) delete(n id) {
	if k := w.t.kind(n); k != kMember && k != kSubscript {
		w.expr(n)
		return
	}
	obj := w.expr(w.t.child(n, fObject))
	key, ok := w.memberKey(n)
	if obj.name == envName && ok {
		w.env("write", text(key), text(""), n)
	}
	if obj.ref != nil && !ok {
		obj.ref.open = true
	}
}
