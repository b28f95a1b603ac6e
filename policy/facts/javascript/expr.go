package javascript

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// expr evaluates an expression.
func (w *walk) expr(n id) *val {
	if n == 0 || !w.step() {
		return unknown
	}
	switch w.t.kind(n) {
	case kIdentifier, kShorthand:
		return w.identifier(n)
	case kString:
		return w.string(n)
	case kTemplate:
		return w.template(n)
	case kNumber:
		if v := digits(w.t.text(n)); v != nil {
			return v
		}
		if f, ok := number(w.t.text(n)); ok {
			return numeric(f)
		}
		return unknown
	case kRegex:
		src := strings.TrimPrefix(w.t.text(n), "/")
		end := max(strings.LastIndexByte(src, '/'), 0)
		r := &object{role: regex, items: []*val{text(src[:end]), text(strings.TrimPrefix(src[end:], "/"))}}
		return &val{ref: r}
	case kTrue:
		return yes
	case kFalse:
		return no
	case kNull:
		return null
	case kUndefined:
		return undefined
	case kThis:
		return w.thisValue()
	case kSuper:
		return w.super()
	case kImport:
		return named("import", "")
	case kMeta:
		return named("import.meta", "")
	case kArray:
		return w.array(n)
	case kObject:
		return w.object(n)
	case kFunction, kArrow, kFunctionDecl:
		return w.function(n)
	case kClass, kClassDecl:
		return w.class(n)
	default: // what is made of parts
	}
	return w.operation(n)
}

// operation evaluates what is made of other expressions.
func (w *walk) operation(n id) *val {
	switch w.t.kind(n) {
	case kCall:
		return w.call(n)
	case kNew:
		return w.new(n)
	case kMember, kSubscript:
		_, v := w.memberOf(n)
		return v
	case kBinary:
		return w.binary(n)
	case kUnary:
		return w.unary(n)
	case kUpdate:
		return w.update(n)
	case kAssign:
		return w.assignment(n)
	case kAugmented:
		return w.augmented(n)
	case kTernary:
		return w.ternary(n)
	case kSequence:
		v := unknown
		w.t.each(n, func(c id) { v = w.expr(c) })
		return v
	case kParen, kAs, kSubstitution:
		return w.first(n)
	case kCast:
		v := unknown
		w.t.each(n, func(c id) { v = w.expr(c) })
		return v
	case kAwait:
		return settled(w.first(n))
	case kYield:
		v := w.first(n)
		if w.act != nil && len(w.act.yields) < maxItems {
			w.act.yields = append(w.act.yields, v)
		}
		return unknown
	case kSpread, kRest:
		return w.first(n)
	case kToken:
		return unknown
	default: // what has no value of its own
	}
	return w.other(n)
}

// other walks what has no meaning of its own (JSX, broken syntax) for what it contains.
func (w *walk) other(n id) *val {
	v := unknown
	w.t.each(n, func(c id) {
		if w.t.kind(c) >= kProgram || w.t.kind(c) == kFunctionDecl || w.t.kind(c) == kClassDecl {
			w.stmt(c)
			return
		}
		v = w.expr(c)
	})
	if w.t.kind(n) == kError {
		return v
	}
	return unknown
}

// first evaluates the first child of n, which is the expression that n wraps.
func (w *walk) first(n id) *val {
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if w.t.kind(c) != kToken {
			return w.expr(c)
		}
	}
	return undefined
}

func (w *walk) identifier(n id) *val {
	raw := w.t.text(n)
	name := w.identText(raw, n)
	if b := w.sc.find(name); b != nil {
		return b.get(w.late > 0)
	}
	w.defines = w.defines || len(w.withs) > 0 // it may be a member of that
	v := w.global(name)
	for i := len(w.withs) - 1; i >= 0; i-- {
		v = union(w.member(w.withs[i], name, "", n), v)
	}
	return v
}

// identText is what an identifier spells, after its escapes.
func (w *walk) identText(raw string, n id) string {
	name := raw
	if strings.IndexByte(raw, '\\') >= 0 {
		name = unescape(raw)
		if ascii(name) {
			w.dynamic(facts.DynInvisible, "identifier written with escapes: "+name, n)
		}
	}
	if !ascii(name) {
		if twin, ok := lookalike(name); ok {
			w.dynamic(facts.DynInvisible, "identifier that looks like "+twin, n)
		}
	}
	return name
}

func (w *walk) stringText(n id) string {
	raw := w.t.text(n)
	if len(raw) >= 2 {
		raw = raw[1 : len(raw)-1]
	}
	return unescape(raw)
}

func (w *walk) template(n id) *val {
	parts := w.templateParts(n)
	if len(parts) == 0 {
		w.literal("", n)
		return text("")
	}
	v := parts[0]
	for _, p := range parts[1:] {
		v = plus(v, p)
	}
	if !v.isText() && v.Type != "str" {
		v = plus(text(""), v)
	}
	if s, ok := v.one(); ok {
		w.literal(s, n)
	}
	return v
}

func (w *walk) templateParts(n id) []*val {
	var parts []*val
	var plainText strings.Builder
	flush := func() {
		if plainText.Len() > 0 {
			parts = append(parts, text(unescape(plainText.String())))
			plainText.Reset()
		}
	}
	w.t.each(n, func(c id) {
		if w.t.kind(c) == kSubstitution {
			flush()
			parts = append(parts, w.first(c))
			return
		}
		plainText.WriteString(w.t.text(c))
	})
	flush()
	return parts
}

func (w *walk) array(n id) *val {
	o := &object{role: array}
	w.t.each(n, func(c id) {
		if w.t.kind(c) == kToken || len(o.items) >= maxItems {
			o.open = o.open || len(o.items) >= maxItems
			return
		}
		v := w.expr(c)
		if w.t.kind(c) == kSpread {
			items, open := elements(w.iterated(v, n))
			o.items = append(o.items, items...)
			o.open = o.open || open
			o.from = merge(o.from, v.From)
			return
		}
		o.items = append(o.items, v)
	})
	return &val{ref: o}
}

// elements are the items of v, and whether there may be more.
func elements(v *val) ([]*val, bool) {
	if v.isArray() {
		return v.ref.items, v.ref.open
	}
	if v.ref != nil && v.ref.collection() {
		return v.ref.members(), true
	}
	if s, ok := v.one(); ok && v.isText() && len(s) <= maxItems {
		items := make([]*val, 0, len(s))
		for _, r := range s {
			items = append(items, text(string(r)))
		}
		return items, false
	}
	if v.isBytes() {
		if s, ok := v.one(); ok && len(s) <= maxItems {
			items := make([]*val, len(s))
			for i := range len(s) {
				items[i] = numeric(float64(s[i]))
			}
			return items, false
		}
	}
	if v.isNone() {
		return nil, false
	}
	return nil, true
}

func (w *walk) object(n id) *val {
	o := &object{role: plain}
	v := &val{ref: o}
	w.t.each(n, func(c id) {
		switch w.t.kind(c) {
		case kPair:
			key, ok := w.key(w.t.child(c, fKey))
			value := w.expr(w.t.child(c, fValue))
			if !ok {
				w.loosen(o, value)
				o.from = merge(o.from, value.From)
				return
			}
			nameFunction(value, key)
			o.set(key, value)
			w.packageScript(key, value, c)
		case kShorthand:
			o.set(w.t.text(c), w.identifier(c))
		case kSpread:
			w.spreadInto(o, w.first(c))
		case kMethod:
			key, ok := w.key(w.t.child(c, fName))
			m := w.function(c)
			m.ref.fn.home = o
			m.ref.fn.this = v
			m.ref.fn.symbol = ownSymbol(key)
			if !ok {
				w.loosen(o, m)
				return
			}
			if m.ref.fn.setter {
				key = setterOf + key
			}
			o.set(key, m)
		default:
			w.expr(c)
		}
	})
	return v
}

// spreadInto copies the members of v.
func (w *walk) spreadInto(o *object, v *val) {
	switch {
	case v.alts != nil: // of one of them
		for _, a := range v.alts {
			w.spreadInto(o, a)
		}
		o.open = true
	case v.ref != nil:
		for _, k := range v.ref.keys {
			o.set(k, v.ref.props[k])
		}
		o.open = o.open || v.ref.open
		o.loose = append(o.loose[:len(o.loose):len(o.loose)], v.ref.loose...)
		if v.ref.base != nil {
			o.base = v.ref.base
		}
		o.from = merge(o.from, v.ref.from)
	case v.name != "" || v.foreign():
		o.base = v
		o.open = true
	case !v.isNone():
		o.open = true
	}
	o.from = merge(o.from, v.From)
}

func nameFunction(v *val, name string) {
	if v.ref != nil && v.ref.fn != nil && v.ref.fn.name == "" {
		v.ref.fn.name = name
	}
}

// key is the name of a member where it is declared.
func (w *walk) key(n id) (string, bool) {
	switch w.t.kind(n) {
	case kString:
		return w.stringText(n), true
	case kNumber:
		f, ok := number(w.t.text(n))
		return spell(f), ok
	case kComputed:
		return w.first(n).keyText()
	case kProperty, kIdentifier, kPrivate, kShorthandPattern:
		return w.identText(w.t.text(n), n), true
	default: // no name
	}
	return "", false
}

// keyText is v as the name of a member.
func (v *val) keyText() (string, bool) {
	if v.name != "" && strings.HasPrefix(v.name, "Symbol.") {
		return "@@" + v.name, true
	}
	if s, ok := v.one(); ok {
		return s, true
	}
	s, ok := coerce(v)
	return s, ok
}

func (w *walk) ternary(n id) *val {
	cond := w.expr(w.t.child(n, fCondition))
	then, other := w.t.child(n, fConsequence), w.t.child(n, fAlternative)
	if may, certain := truthy(cond); certain {
		if may {
			w.later(other)
			return w.expr(then)
		}
		w.later(then)
		return w.expr(other)
	}
	w.cond++
	a := w.expr(then)
	b := w.expr(other)
	w.cond--
	return union(a, b)
}

func (w *walk) assignment(n id) *val {
	left, right := w.t.child(n, fLeft), w.t.child(n, fRight)
	v := w.expr(right)
	if w.t.kind(left) == kIdentifier {
		nameFunction(v, w.t.text(left))
	}
	w.assign(left, v, assignOnly)
	return v
}

func (w *walk) augmented(n id) *val {
	left := w.t.child(n, fLeft)
	op := strings.TrimSuffix(w.t.text(w.t.child(n, fOperator)), "=")
	old := w.expr(left)
	var v *val
	switch op {
	case "||", "&&", "??":
		w.cond++
		v = union(old, w.expr(w.t.child(n, fRight)))
		w.cond--
	default:
		v = operate(op, old, w.expr(w.t.child(n, fRight)))
	}
	w.assign(left, v, assignOnly)
	return v
}

func (w *walk) update(n id) *val {
	arg, opAt := w.t.child(n, fArgument), w.t.child(n, fOperator)
	op := "+"
	if strings.Contains(w.t.text(opAt), "-") {
		op = "-"
	}
	old := w.expr(arg)
	v := operate(op, old, numeric(1))
	w.assign(arg, v, assignOnly)
	if w.t.nodes[opAt].start < w.t.nodes[arg].start {
		return v
	}
	return old
}
