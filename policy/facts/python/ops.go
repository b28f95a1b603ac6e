package python

import (
	"math"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// binary folds a chain of operators; the left spine is walked, not recursed
// into, so that a long sum is not deep.
func (it *interp) binary(n *node, s *scope) *val {
	var spine []*node
	left := n
	for left != nil && left.kind == "binary_operator" {
		spine = append(spine, left)
		left = left.child("left")
	}
	v := it.evalOr(left, s)
	for i := len(spine) - 1; i >= 0; i-- {
		r := it.evalOr(spine[i].child("right"), s)
		op := ""
		if o := spine[i].child("operator"); o != nil {
			op = o.kind
		}
		v = it.operate(op, v, r, spine[i])
	}
	return v
}

// operate is a op b.
func (it *interp) operate(op string, a, b *val, n *node) *val {
	if a.kind == kAlt || b.kind == kAlt {
		var out *val
		as, bs := a.branches(), b.branches()
		if len(as)*len(bs) > facts.MaxAlts {
			return it.operateAny(op, a, b)
		}
		for _, x := range as {
			for _, y := range bs {
				out = join(out, it.operate(op, x, y, n))
			}
		}
		return out
	}
	switch op {
	case "+":
		if a.isSeq() && b.isSeq() {
			items := append(append([]*val(nil), a.x.items...), b.x.items...)
			if len(items) > 4096 {
				return derived(a, b)
			}
			return &val{kind: a.kind, open: a.open || b.open, x: &extra{items: items}}
		}
		if a.isSeq() && b.kind == kUnknown { // ["git"] + sys.argv[1:]
			out := &val{kind: a.kind, open: true, x: &extra{items: append([]*val(nil), a.x.items...)}}
			return out.with(derived(a, b).from)
		}
		if isTextual(a) || isTextual(b) {
			return it.concat(a, b)
		}
	case "&":
		if a.kind == kWrap && a.text == "program" { // plumbum: command & FG
			return it.runProgram(a.x.items, &arguments{}, n)
		}
	}
	switch op {
	case "*":
		if v := times(a, b); v != nil {
			return v
		}
	case "%":
		if a.isText() {
			return it.percent(a, b)
		}
	case "/":
		if isPath(a) || isPath(b) {
			return joinPath(a, b)
		}
	case "|":
		if a.kind == kStr && b.kind == kStr {
			return concat(concat(a, str("|")), b) // flags of os.open
		}
		if a.kind == kDict {
			d := &val{kind: kDict, x: &extra{dict: map[string]*val{}}}
			d.merge(a)
			d.merge(b)
			return d
		}
		if a.kind == kNone || a.kind == kRef && builtins[a.text] {
			return unknown // a type
		}
	case ">>":
		if a.kind == kRef && a.text == "print" {
			return derived(a, b)
		}
	}
	if v := arithmetic(op, a, b); v != nil {
		return v
	}
	return derived(a, b)
}

// operateAny is a op b where there are too many alternatives to go through: of
// texts, what is known at the ends survives.
func (it *interp) operateAny(op string, a, b *val) *val {
	switch {
	case op == "+" && (head(a) != "" || tail(b) != ""):
		return it.concat(a, b)
	case op == "%" && a.isText():
		return it.percent(a, derived(b))
	}
	return derived(a, b)
}

func isTextual(v *val) bool {
	return v.isText() || v.kind == kUnknown && v.x != nil && (v.x.pre != "" || v.x.suf != "")
}

// maxCopied bounds the bytes that folding a text by pieces copies.
const maxCopied = 32 << 20

// concat is the function of that name, within a bound on its work.
func (it *interp) concat(a, b *val) *val {
	it.copied += len(a.text) + len(b.text)
	if it.copied > maxCopied {
		it.over = true
		return derived(a, b)
	}
	return concat(a, b)
}

// maxLines bounds how many texts are told apart of which only the beginnings are
// known.
const maxLines = 4

// concat joins two texts; what is known at the ends survives.
func concat(a, b *val) *val {
	a, b = loose(a), loose(b)
	from := mix(a.from, b.from)
	if ofItself(a, b) {
		return str("/proc/self").with(from)
	}
	if a.isText() && b.isText() && !a.open && !b.open && (1+len(a.more))*(1+len(b.more)) <= facts.MaxAlts {
		if len(a.more)+len(b.more) == 0 {
			return text(a.kind, a.text+b.text).with(from)
		}
		var alts []string
		for _, x := range a.all() {
			for _, y := range b.all() {
				alts = append(alts, x+y)
			}
		}
		return choice(a.kind, alts, false, from)
	}
	if a.isText() && !a.open && len(a.more) > 0 && len(a.more) < maxLines && !b.isText() && head(a) == "" && head(b) != "" {
		var out *val
		for _, s := range a.all() { // lines that begin in different ways
			out = join(out, concat(text(a.kind, s).with(a.from), b))
		}
		return out
	}
	both := a.isText() && b.isText() && (a.open || b.open) && (1+len(a.more))*(1+len(b.more)) <= facts.MaxAlts
	x := &extra{pre: head(a), suf: tail(b), parts: joined(a, b)}
	if s, ok := a.one(); ok && a.isText() {
		x.pre = clipHead(s + head(b))
	}
	if s, ok := b.one(); ok && b.isText() {
		x.suf = clipTail(tail(a) + s)
	}
	from = mix(mix(from, a.origins(1)), b.origins(1))
	if !both {
		return &val{from: from, x: x}
	}
	var alts []string // what it is where nobody says otherwise
	for _, p := range a.all() {
		for _, q := range b.all() {
			if (p != "" || !a.open) && (q != "" || !b.open) { // an empty default stands for nothing
				alts = append(alts, p+q)
			}
		}
	}
	if len(alts) == 0 {
		return &val{from: from, x: x}
	}
	v := choice(a.kind, alts, true, from)
	v.x = x
	return v
}

// loose is a text that something unknown may stand for as well, as one value.
func loose(v *val) *val {
	if v.kind != kAlt {
		return v
	}
	var out *val
	for _, b := range v.x.alts {
		switch {
		case b.isText() && (out == nil || out.kind == b.kind):
			out = join(out, b)
		case b.kind != kUnknown || b.x != nil:
			return v
		}
	}
	if out == nil {
		return v
	}
	o := *out
	o.open, o.from = true, mix(out.from, v.origins(0))
	return &o
}

func head(v *val) string {
	if v.isText() {
		if s, ok := v.one(); ok {
			return clipHead(s)
		}
		if v.open && v.x != nil {
			return v.x.pre
		}
		return v.fact().Head()
	}
	if v.x != nil && v.kind == kUnknown {
		return v.x.pre
	}
	if v.kind == kAlt && !v.open {
		return commonEnd(v.x.alts, head, strings.HasPrefix, func(s string) string { return s[:len(s)-1] })
	}
	return ""
}

// commonEnd is what an end of all of these has in common.
func commonEnd(vs []*val, end func(*val) string, has func(s, part string) bool, less func(string) string) string {
	out := end(vs[0])
	for _, v := range vs[1:] {
		for s := end(v); !has(s, out); {
			out = less(out)
		}
	}
	return out
}

func tail(v *val) string {
	if v.isText() {
		if s, ok := v.one(); ok {
			return clipTail(s)
		}
		return v.fact().Tail()
	}
	if v.x != nil && v.kind == kUnknown {
		return v.x.suf
	}
	if v.kind == kAlt && !v.open {
		return commonEnd(v.x.alts, tail, strings.HasSuffix, func(s string) string { return s[1:] })
	}
	return ""
}

func clipHead(s string) string { return s[:min(len(s), 4096)] }

func clipTail(s string) string { return s[max(0, len(s)-4096):] }

// times is repetition; nil where neither side is a sequence and a number.
func times(a, b *val) *val {
	n, ok := b.int()
	if !ok {
		if n, ok = a.int(); !ok || !b.isText() && !b.isSeq() {
			return nil
		}
		a = b
	}
	n = max(n, 0)
	switch {
	case a.isText():
		s, one := a.one()
		if !one {
			return derived(a)
		}
		if float64(len(s))*float64(n) > facts.MaxFolded {
			// As good as all of it, and known to be large.
			kept := strings.Repeat(s, int(facts.MaxFolded/int64(max(len(s), 1))))
			return &val{kind: a.kind, text: kept, from: a.from}
		}
		return text(a.kind, strings.Repeat(s, int(n))).with(a.from)
	case a.isSeq():
		if int64(len(a.x.items))*n > 16384 {
			return &val{kind: a.kind, open: true, from: a.origins(0), x: &extra{items: a.x.items, size: int(min(n, math.MaxInt32))}}
		}
		var items []*val
		for range n {
			items = append(items, a.x.items...)
		}
		return &val{kind: a.kind, open: a.open, x: &extra{items: items}}
	}
	return nil
}

// arithmetic folds numbers; nil where it cannot.
func arithmetic(op string, a, b *val) *val {
	x, ok := a.int()
	y, ok2 := b.int()
	if !ok || !ok2 {
		return floats(op, a, b)
	}
	switch op {
	case "+":
		return integer(x + y)
	case "-":
		return integer(x - y)
	case "*":
		return integer(x * y)
	case "//":
		if y != 0 {
			return integer(floorDiv(x, y))
		}
	case "%":
		if y != 0 {
			return integer(x - y*floorDiv(x, y))
		}
	case "/":
		if y != 0 && x%y == 0 {
			return &val{kind: kFloat, text: formatFloat(float64(x / y))}
		}
	case "**":
		if y >= 0 && y < 64 && x > -1<<20 && x < 1<<20 {
			if p := math.Pow(float64(x), float64(y)); math.Abs(p) < 1<<53 {
				return integer(int64(p))
			}
		}
	case "<<":
		if y >= 0 && y < 62 && x < 1<<(62-y) && x > -1<<(62-y) {
			return integer(x << y)
		}
	case ">>":
		if y >= 0 && y < 64 {
			return integer(x >> y)
		}
	case "&":
		return integer(x & y)
	case "|":
		return integer(x | y)
	case "^":
		return integer(x ^ y)
	}
	return nil
}

func floats(op string, a, b *val) *val {
	if a.kind != kFloat && b.kind != kFloat {
		return nil
	}
	x, err := strconv.ParseFloat(a.text, 64)
	y, err2 := strconv.ParseFloat(b.text, 64)
	if err != nil || err2 != nil || len(a.more)+len(b.more) > 0 || a.open || b.open {
		return nil
	}
	switch op {
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	case "/":
		if y == 0 {
			return nil
		}
		x /= y
	default:
		return nil
	}
	return &val{kind: kFloat, text: formatFloat(x)}
}

func floorDiv(x, y int64) int64 {
	q := x / y
	if (x%y != 0) && ((x < 0) != (y < 0)) {
		q--
	}
	return q
}

func (it *interp) unary(n *node, s *scope) *val {
	v := it.evalOr(n.child("argument"), s)
	op := n.child("operator")
	if x, ok := v.int(); ok && op != nil {
		switch op.kind {
		case "-":
			return integer(-x)
		case "~":
			return integer(^x)
		case "+":
			return v
		}
	}
	return derived(v)
}

func (it *interp) comparison(n *node, s *scope) *val {
	var operands []*val
	var ops []string
	for c := n.first; c != nil; c = c.next {
		if c.field == "operators" {
			ops = append(ops, c.kind)
		} else if c.named && c.kind != "comment" {
			operands = append(operands, it.eval(c, s))
		}
	}
	if len(operands) != 2 || len(ops) != 1 {
		return unknown
	}
	return compare(ops[0], operands[0], operands[1])
}

func compare(op string, a, b *val) *val {
	if x, ok := a.int(); ok {
		if y, ok := b.int(); ok {
			switch op {
			case "==":
				return boolean(x == y)
			case "!=":
				return boolean(x != y)
			case "<":
				return boolean(x < y)
			case "<=":
				return boolean(x <= y)
			case ">":
				return boolean(x > y)
			case ">=":
				return boolean(x >= y)
			}
		}
	}
	x, ok := a.one()
	y, ok2 := b.one()
	if ok && ok2 && a.isText() && b.isText() {
		switch op {
		case "==":
			return boolean(x == y)
		case "!=":
			return boolean(x != y)
		case "in":
			return boolean(strings.Contains(y, x))
		}
	}
	return unknown
}
