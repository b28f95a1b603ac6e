package javascript

import (
	"strings"
)

// calling are the functions that call the one that they are a member of, or are
// bound to.
var calling = map[string]bool{"call": true, "apply": true, "bind": true}

// reflected calls a function through another: call, apply, bind and Reflect.
func (w *walk) reflected(callee *val, s *site) (*val, bool) {
	var f *val
	how := ""
	if natives[s.name] != nil {
		return nil, false
	}
	switch {
	case strings.HasPrefix(s.name, "Function.prototype."):
		f, how = s.this, last(s.name)
	case callee.this != nil && callee.this.name != "" && strings.HasPrefix(s.name, callee.this.name+"."):
		f, how = callee.this, s.name[len(callee.this.name)+1:]
		if s.this != nil && s.this != f {
			f = s.this // f.call, bound to another function: Function.call.bind(g)
		}
	}
	if f == nil {
		return nil, false
	}
	switch how {
	case "call":
		return w.apply(f, &site{n: s.n, this: s.arg(0), args: from(s.args, 1), open: s.open}), true
	case "apply":
		items, open := elements(s.arg(1))
		return w.apply(f, &site{n: s.n, this: s.arg(0), args: items, open: open}), true
	case "bind":
		return &val{ref: &object{role: bound, base: f, made: s.arg(0), items: from(s.args, 1)}}, true
	case "toString":
		return unknown, f.name == "" || strings.HasPrefix(s.name, "Function.prototype.")
	}
	return nil, false
}

func from(args []*val, i int) []*val {
	if i >= len(args) {
		return nil
	}
	return args[i:]
}

// tellsNew reports whether arguments bring a function something that its text alone does not show.
func tellsNew(args []*val) bool {
	for _, a := range args {
		if a.name != "" || a.ref != nil || a.alts != nil {
			return true
		}
	}
	return false
}

// compile makes a function of code that the program made a text of. nil says that it cannot.
func (w *walk) compile(code string, params []string, sc *scope, n id) *function {
	key := code + "\x00" + strings.Join(params, ",")
	t := w.trees[key]
	if t == nil {
		if len(code) > maxCompiled || len(w.trees) >= maxTrees {
			return nil
		}
		src := code
		if len(params) > 0 {
			src = "(" + strings.Join(params, ",") + ")=>{" + code + "\n}"
		}
		if t = parse(w.g, []byte(src), parseTime/4, parseTime); t == nil {
			return nil
		}
		p := w.pos(n)
		t.origin, t.label = &p, "\x00"+key
		w.trees[key] = t
	}
	fn := &function{tree: t, scope: sc}
	if len(params) > 0 {
		at := t.nodes[t.nodes[0].first].first
		if t.nodes[0].first == 0 || t.kind(at) != kArrow {
			return nil
		}
		fn.at, fn.params, fn.body = at, t.child(at, fParameters), t.child(at, fBody)
	}
	fn.silent = !w.usesLocals(t, sc)
	return fn
}

const (
	maxCompiled = 16 << 10
	maxTrees    = 24
)

// usesLocals reports whether a text names a variable of the program: then only here can it be told what it does.
func (w *walk) usesLocals(t *tree, sc *scope) bool {
	for i := range t.nodes {
		if k := t.nodes[i].kind; (k == kIdentifier || k == kShorthand) && sc.find(t.text(id(i))) != nil {
			return true
		}
	}
	return false
}

// evaluated is what eval gives back.
func (w *walk) evaluated(s *site, sc *scope) *val {
	code, ok := s.arg(0).one()
	if !ok || !s.arg(0).isText() {
		if a := s.arg(0); a.ref != nil || a.isNumber() {
			return a
		}
		return opaque(s.origins())
	}
	fn := w.compile(code, nil, sc, s.n)
	if fn == nil || w.depth >= maxCalls {
		return opaque(s.origins())
	}
	act := &activation{fn: fn, this: w.thisValue()}
	saved, quiet := w.frame, w.quiet
	w.frame = frame{t: fn.tree, sc: &scope{up: sc}, act: act, cond: w.cond, base: w.base, late: w.late, depth: w.depth + 1}
	if fn.silent {
		w.quiet++
	}
	w.block(0)
	w.frame, w.quiet = saved, quiet
	if act.last == nil {
		return undefined
	}
	return act.last
}

// functionOf is what the constructor Function gives: its last argument is the body.
func (w *walk) functionOf(s *site) *val {
	if len(s.args) == 0 || s.open {
		return opaque(s.origins())
	}
	var params []string
	for _, a := range s.args[:len(s.args)-1] {
		p, ok := a.one()
		if !ok {
			return opaque(s.origins())
		}
		params = append(params, p)
	}
	code, ok := s.args[len(s.args)-1].one()
	if !ok {
		return opaque(s.origins())
	}
	fn := w.compile(code, params, w.root, s.n)
	if fn == nil {
		return opaque(s.origins())
	}
	return &val{ref: &object{role: closure, fn: fn}}
}
