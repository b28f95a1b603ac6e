package javascript

import (
	"strconv"
	"strings"
)

// Bounds of calling the program's own functions.
const (
	maxCalls  = 8   // deep
	maxGiven  = 12  // ways to call a function
	maxSmall  = 512 // ways to call a small one
	smallText = 1500
	maxLater  = 3 // closures of one place in the program that are run for nobody
)

// function makes the value of a function expression, declaration or method.
func (w *walk) function(n id) *val {
	fn := &function{tree: w.t, at: n, scope: w.sc}
	fn.params = w.t.child(n, fParameters)
	if fn.params == 0 {
		fn.params = w.t.child(n, fParameter)
	}
	fn.body = w.t.child(n, fBody)
	switch w.t.kind(n) {
	case kArrow:
		fn.arrow, fn.this = true, w.thisValue()
		if w.act != nil && w.act.fn != nil {
			fn.home = w.act.fn.home
		}
	case kMethod:
		fn.method = true
		if tok := w.t.kid(n, kToken); tok != 0 && strings.HasSuffix(w.t.text(tok), "get") {
			fn.getter = true
		}
		if tok := w.t.kid(n, kToken); tok != 0 && strings.HasSuffix(w.t.text(tok), "set") {
			fn.setter = true
		}
	default: // a function like any other
	}
	if name := w.t.child(n, fName); name != 0 && w.t.kind(name) != kComputed {
		fn.name = w.t.text(name)
	}
	head := w.t.src[w.t.nodes[n].start:min(w.t.nodes[n].end, w.t.nodes[n].start+24)]
	fn.yields = strings.HasPrefix(strings.TrimPrefix(head, "async "), "function*") || strings.HasPrefix(head, "*")
	v := &val{ref: &object{role: closure, fn: fn}}
	if w.t.kind(n) == kFunction && fn.name != "" { // its own name is bound within it
		fn.scope = &scope{up: w.sc}
		fn.scope.declare(fn.name, v, w.cond)
	}
	if w.made[fn.key()] < maxLater+maxGiven {
		w.made[fn.key()]++
		w.functions = append(w.functions, v)
	}
	return v
}

type place struct {
	t *tree
	n id
}

// most is how many ways of calling a function are told apart.
func (f *function) most() int {
	if nd := f.tree.nodes[f.at]; nd.end-nd.start < smallText {
		return maxSmall
	}
	return maxGiven
}

func (f *function) key() place { return place{f.tree, f.at} }

// invoke calls a function of the program.
func (w *walk) invoke(fn *function, this *val, args []*val, n id) *val {
	if fn.active || w.depth >= maxCalls || w.b.Full() {
		if fn.active {
			w.recursion(fn, n)
		}
		var from []string
		for _, a := range args {
			from = merge(from, a.origins())
		}
		return opaque(from)
	}
	sign, ok := w.signature(this, args)
	if ok {
		if v, have := fn.memo[sign]; have {
			return v
		}
	}
	if w.steps > w.hard && w.ran[fn.key()] {
		return unknown
	}
	if len(fn.memo) >= fn.most() || w.steps > w.inline {
		// Too many ways to call it: once more for any arguments, which stands for all further calls.
		if v, have := fn.memo[""]; have {
			return v
		}
		var from []string
		for _, a := range args {
			from = merge(from, a.origins())
		}
		args, sign, ok = nil, "", true
		w.anyArgs(fn, &args, from)
	}
	if ok {
		if fn.memo == nil {
			fn.memo = make(map[string]*val)
		}
		fn.memo[sign] = unknown
	}
	fn.called, fn.caller = n, w.t
	v := w.run(fn, this, args)
	if ok {
		fn.memo[sign] = v
	}
	return v
}

func (w *walk) anyArgs(fn *function, args *[]*val, from []string) {
	n := 1
	if fn.params != 0 {
		fn.tree.each(fn.params, func(id) { n++ })
	}
	for range n {
		*args = append(*args, opaque(from))
	}
}

// run executes the body of a function.
func (w *walk) run(fn *function, this *val, args []*val) *val {
	saved := w.frame
	w.frame = frame{t: fn.tree, sc: &scope{up: fn.scope}, cond: w.cond, base: w.base, late: w.late, depth: w.depth + 1}
	if fn.arrow {
		this = fn.this
	}
	if this == nil && fn.tree.origin != nil && !fn.arrow {
		this = named(globalName, "")
	}
	w.act = &activation{fn: fn, this: this, args: list(args)}
	w.sc.call = w.act
	fn.active = true
	w.stack = append(w.stack, fn)
	quiet := w.quiet
	if fn.silent && !tellsNew(args) {
		w.quiet++
	}
	fn.calls++
	w.ran[fn.key()] = true
	defer func() {
		fn.active = false
		w.frame = saved
		w.quiet = quiet
		w.stack = w.stack[:len(w.stack)-1]
	}()
	w.base = w.cond
	w.bindParams(fn, args)
	if fn.body == 0 && fn.at != 0 {
		return undefined
	}
	if k := w.t.kind(fn.body); k != kBlock && k != kProgram {
		return w.expr(fn.body)
	}
	w.hoistVars(fn.body)
	w.block(fn.body)
	act := w.act
	switch {
	case fn.yields:
		return &val{ref: &object{role: array, items: act.yields, open: true}}
	case act.returns == nil:
		return undefined
	}
	return act.returns
}

func (w *walk) bindParams(fn *function, args []*val) {
	if fn.params == 0 {
		return
	}
	if w.t.kind(fn.params) != kParams {
		w.assign(fn.params, argAt(args, 0), declareBlock)
		return
	}
	i := 0
	w.t.each(fn.params, func(p id) {
		if k := w.t.kind(p); k == kToken || k == kDecorator {
			return
		}
		if w.restParam(p) {
			rest := &object{role: array}
			if i < len(args) {
				rest.items = args[i:]
			}
			w.assign(p, &val{ref: rest}, declareBlock)
			return
		}
		if w.t.kind(w.t.child(p, fPattern)) == kThis {
			return // a type for this, not a parameter
		}
		w.assign(p, argAt(args, i), declareBlock)
		if w.t.kind(p) == kParam && w.t.kid(p, kToken) != 0 { // constructor(private x)
			if this := w.thisValue(); this.ref != nil {
				name := w.t.text(w.t.child(p, fPattern))
				v := argAt(args, i)
				if b := w.sc.find(name); b != nil { // with its default
					v = b.get(false)
				}
				this.ref.set(name, v)
			}
		}
		i++
	})
}

func (w *walk) restParam(p id) bool {
	if w.t.kind(p) == kParam {
		return w.t.kind(w.t.child(p, fPattern)) == kRest
	}
	return w.t.kind(p) == kRest
}

func argAt(args []*val, i int) *val {
	if i >= 0 && i < len(args) {
		return args[i]
	}
	return undefined
}

// signature tells calls with the same arguments apart from others; false where that is not worth it.
func (w *walk) signature(this *val, args []*val) (string, bool) {
	var b strings.Builder
	put := func(v *val) bool {
		if v == nil {
			b.WriteByte('-')
			return true
		}
		switch {
		case v.alts != nil:
			return false
		case v.ref != nil:
			n, ok := w.serial[v.ref]
			if !ok {
				n = len(w.serial)
				w.serial[v.ref] = n
			}
			b.WriteByte('#')
			b.WriteString(strconv.Itoa(n))
			if v.ref.role == array || v.ref.role == plain { // they change
				b.WriteByte('/')
				b.WriteString(strconv.Itoa(len(v.ref.items) + len(v.ref.keys)))
			}
		case v.name != "":
			b.WriteByte('@')
			if v.page {
				b.WriteByte('@')
			}
			b.WriteString(v.name)
		default:
			b.WriteString(v.Type)
			for _, a := range v.Alts {
				if len(a) > 4096 {
					return false
				}
				b.WriteByte(1)
				b.WriteString(a)
			}
			if v.Open {
				b.WriteByte('?')
			}
			b.WriteString(v.Prefix)
			b.WriteByte(2)
			b.WriteString(v.Suffix)
		}
		for _, f := range v.From {
			b.WriteByte(3)
			b.WriteString(f)
		}
		b.WriteByte(0)
		return true
	}
	if !put(this) {
		return "", false
	}
	for _, a := range args {
		if !put(a) {
			return "", false
		}
	}
	return b.String(), b.Len() > 0
}

// thisValue is what this stands for.
func (w *walk) thisValue() *val {
	if w.act == nil || w.act.this == nil {
		return unknown
	}
	return w.act.this
}
