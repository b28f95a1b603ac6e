package javascript

import (
	"math"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

func (w *walk) binary(n id) *val {
	op := w.t.text(w.t.child(n, fOperator))
	left := w.expr(w.t.child(n, fLeft))
	rightNode := w.t.child(n, fRight)
	switch op {
	case "||", "&&", "??":
		return w.logical(op, left, rightNode)
	}
	right := w.expr(rightNode)
	if v := w.isThere(op, left, right); v != nil {
		return v
	}
	return operate(op, left, right)
}

// isThere decides a comparison of what is certainly there with null or undefined;
// nil where it cannot.
func (w *walk) isThere(op string, a, b *val) *val {
	if a.isNone() {
		a, b = b, a
	}
	if !b.isNone() || a.ref == nil && !w.hasMembers(a) {
		return nil
	}
	switch op {
	case "==", "===":
		return no
	case "!=", "!==":
		return yes
	}
	return nil
}

func (w *walk) logical(op string, left *val, rightNode id) *val {
	may, certain := truthy(left)
	if op == "??" {
		may, certain = !left.isNone(), left.isNone() || left.Known() || left.ref != nil
	}
	if op == "&&" {
		may = !may
	}
	if certain && may {
		w.later(rightNode)
		return left
	}
	if certain {
		return w.expr(rightNode)
	}
	w.cond++
	right := w.expr(rightNode)
	w.cond--
	if op == "&&" {
		return right
	}
	if left.simple() && !left.Known() && left.Prefix == "" && left.Suffix == "" && left.From == nil {
		// A default: what is not known stays possible, and what is known is worth keeping.
		return right.opened()
	}
	return union(left, right)
}

func (w *walk) unary(n id) *val {
	op := w.t.text(w.t.child(n, fOperator))
	argNode := w.t.child(n, fArgument)
	if op == "delete" {
		w.delete(argNode)
		return yes
	}
	v := w.expr(argNode)
	switch op {
	case "!":
		if may, certain := truthy(v); certain {
			return boolean(!may)
		}
	case "void":
		return undefined
	case "-", "+":
		if f, ok := toNumber(v); ok {
			if op == "-" {
				f = -f
			}
			return numeric(f)
		}
	case "~":
		if i, ok := v.integer(); ok {
			return numeric(float64(^int32(i)))
		}
	case "typeof":
		if t := typeOf(v); t != "" {
			return text(t)
		}
	}
	return unknown
}

func typeOf(v *val) string {
	switch {
	case v.isFunc():
		return "function"
	case v.ref != nil:
		return "object"
	case v.isText():
		return "string"
	case v.isNumber():
		return "number"
	}
	return ""
}

// operate applies a binary operator.
func operate(op string, a, b *val) *val {
	if op == "+" {
		return plus(a, b)
	}
	x, okX := toNumber(a)
	y, okY := toNumber(b)
	if okX && okY {
		if f, ok := arithmetic(op, x, y); ok {
			return numeric(f)
		}
	}
	if v := compare(op, a, b); v != nil {
		return v
	}
	if from := merge(a.From, b.From); from != nil {
		return opaque(from)
	}
	return unknown
}

func arithmetic(op string, x, y float64) (float64, bool) {
	ints := func(f func(a, b int32) int32) (float64, bool) {
		if math.Abs(x) > 1<<32 || math.Abs(y) > 1<<32 {
			return 0, false
		}
		return float64(f(int32(int64(x)), int32(int64(y)))), true
	}
	switch op {
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	case "/":
		return x / y, true
	case "%":
		return math.Mod(x, y), true
	case "**":
		return math.Pow(x, y), true
	case "^":
		return ints(func(a, b int32) int32 { return a ^ b })
	case "&":
		return ints(func(a, b int32) int32 { return a & b })
	case "|":
		return ints(func(a, b int32) int32 { return a | b })
	case "<<":
		return ints(func(a, b int32) int32 { return a << (uint32(b) & 31) })
	case ">>":
		return ints(func(a, b int32) int32 { return a >> (uint32(b) & 31) })
	case ">>>":
		f, ok := ints(func(a, b int32) int32 { return int32(uint32(a) >> (uint32(b) & 31)) })
		return float64(uint32(int32(f))), ok
	}
	return 0, false
}

// compare decides a comparison of constants; nil where it cannot.
func compare(op string, a, b *val) *val {
	s, okS := a.one()
	t, okT := b.one()
	if !okS || !okT || a.Type != b.Type {
		return nil
	}
	less, same := s < t, s == t
	if a.isNumber() {
		x, _ := a.float()
		y, _ := b.float()
		less, same = x < y, x == y
		if math.IsNaN(x) || math.IsNaN(y) {
			return nil
		}
	}
	switch op {
	case "==", "===":
		return boolean(same)
	case "!=", "!==":
		return boolean(!same)
	case "<":
		return boolean(less)
	case "<=":
		return boolean(less || same)
	case ">":
		return boolean(!less && !same)
	case ">=":
		return boolean(!less)
	}
	return nil
}

// plus is the operator +: a sum of numbers, else the texts joined.
func plus(a, b *val) *val {
	if x, ok := a.float(); ok {
		if y, ok := b.float(); ok {
			return numeric(x + y)
		}
	}
	x, y := joinable(a), joinable(b)
	out := facts.Concat(x, y)
	if a.Type == "int" && b.Type == "int" && !out.Known() {
		return opaque(out.From) // a sum of numbers that are not known has no text to speak of
	}
	out.Type = "str"
	if len(out.Alts) == 1 && len(out.Alts[0]) > facts.MaxFolded {
		return opaque(out.From)
	}
	return of(out)
}

// joinable is v as a part of a text.
func joinable(v *val) facts.Value {
	if s, ok := coerce(v); ok && !v.simple() {
		return facts.Text(s).WithFrom(v.origins()...)
	}
	if !v.simple() {
		return facts.Opaque(v.origins()...)
	}
	out := v.Value
	if !basicTypes[out.Type] {
		return facts.Opaque(out.From...)
	}
	out.Type = "str"
	return out
}

// coerce is String(v) of what is wholly known.
func coerce(v *val) (string, bool) {
	switch {
	case v.simple():
		return v.One()
	case v.isArray() && !v.ref.open:
		parts := make([]string, len(v.ref.items))
		size := 0
		for i, it := range v.ref.items {
			if it.isNone() {
				continue
			}
			s, ok := coerceItem(it)
			if !ok {
				return "", false
			}
			if size += len(s) + 1; size > facts.MaxFolded {
				return "", false
			}
			parts[i] = s
		}
		return strings.Join(parts, ","), true
	case v.ref != nil && v.ref.role == plain && len(v.ref.keys) == 0 && !v.ref.open && v.ref.base == nil:
		return "[object Object]", true
	}
	return "", false
}

// coerceItem is coerce for the items of an array; arrays in arrays are not followed, so that it ends.
func coerceItem(v *val) (string, bool) {
	if v.isArray() {
		if len(v.ref.items) == 0 && !v.ref.open {
			return "", true
		}
		return "", false
	}
	return coerce(v)
}

// toNumber is Number(v) of what is known.
func toNumber(v *val) (float64, bool) {
	switch {
	case v.isNumber():
		return v.float()
	case v.simple() && v.Type == "bool":
		s, ok := v.One()
		if s == "true" {
			return 1, ok
		}
		return 0, ok
	case v == null:
		return 0, true
	case v == undefined:
		return math.NaN(), true
	case v.isText(), v.isArray():
		if s, ok := coerce(v); ok {
			return number(s)
		}
	}
	return 0, false
}

// truthy reports whether v may be true, and whether that is certain.
func truthy(v *val) (may, certain bool) {
	switch {
	case v.ref != nil:
		return true, true
	case v.name != "" || v.alts != nil || v.foreign():
		return true, false
	case v.isNone():
		return false, true
	case v.isNumber():
		if f, ok := v.float(); ok {
			return f != 0 && !math.IsNaN(f), true
		}
		return true, false
	case v.isText():
		if s, ok := v.One(); ok {
			return s != "", true
		}
		return true, false
	}
	return v.Truthy()
}
