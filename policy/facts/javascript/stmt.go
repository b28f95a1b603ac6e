package javascript

// flow is how a statement ended, where that is certain.
type flow uint8

const (
	onward flow = iota
	broke
	continued
	returned
)

// stmt executes a statement.
func (w *walk) stmt(n id) flow {
	if n == 0 || !w.step() {
		return onward
	}
	switch w.t.kind(n) {
	case kExpression:
		w.t.each(n, func(c id) {
			if w.t.kind(c) == kNamespace {
				w.namespace(c)
				return
			}
			v := w.expr(c)
			if w.act != nil {
				w.act.last = v
			}
		})
	case kDeclaration:
		w.declaration(n)
	case kFunctionDecl:
		w.declareFunction(n) // hoisted already, unless it stands where only a statement does
	case kClassDecl:
		v := w.class(n)
		w.declareAt(w.t.child(n, fName), v)
	case kBlock, kStaticBlock, kProgram, kSwitchBody:
		return w.block(n)
	case kIf:
		return w.ifStmt(n)
	case kElse, kLabeled, kFinally:
		return w.inner(n)
	case kFor:
		return w.forStmt(n)
	case kForIn:
		return w.forIn(n)
	case kWhile, kDo:
		return w.while(n)
	case kTry:
		return w.try(n)
	case kSwitch:
		w.switchStmt(n)
	case kReturn:
		w.giveBack(w.first(n))
		return w.sure(returned)
	case kThrow:
		w.thrown = union(w.thrown, w.first(n))
		return w.sure(returned)
	case kBreak:
		return w.sure(broke)
	case kContinue:
		return w.sure(continued)
	case kWith:
		w.withs = append(w.withs, w.expr(w.t.child(n, fObject)))
		f := w.stmt(w.t.child(n, fBody))
		w.withs = w.withs[:len(w.withs)-1]
		return f
	case kImportStatement:
		w.importStmt(n)
	case kExport:
		w.exportStmt(n)
	case kEnum:
		w.enum(n)
	case kNamespace:
		w.namespace(n)
	case kAmbient:
		w.ambient(n)
	case kImportAlias:
		w.importAlias(n)
	case kEmpty, kToken:
	case kOther, kError, kSubstitution:
		w.other(n)
	default:
		w.expr(n)
	}
	return onward
}

// sure gives f where the statement is certain to be reached.
func (w *walk) sure(f flow) flow {
	if w.cond > w.base {
		return onward
	}
	return f
}

// inner executes what stands in n, as a statement of it.
func (w *walk) inner(n id) flow {
	f := onward
	w.t.each(n, func(c id) {
		switch k := w.t.kind(c); {
		case k == kProperty, k == kToken:
		case f == onward:
			f = w.stmt(c)
		}
	})
	if w.t.kind(n) == kLabeled && f != returned {
		return onward
	}
	return f
}

func (w *walk) block(n id) flow {
	outer := w.sc
	if w.t.kind(n) != kProgram {
		w.sc = &scope{up: outer}
		defer func() { w.sc = outer }()
	}
	w.hoist(n)
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if f := w.stmt(c); f != onward {
			for c = w.t.nodes[c].next; c != 0; c = w.t.nodes[c].next {
				w.later(c)
			}
			return f
		}
	}
	return onward
}

// hoist declares the functions, classes and block variables of a block before it runs.
func (w *walk) hoist(n id) {
	w.t.each(n, func(c id) {
		if w.t.kind(c) == kExport {
			if d := w.t.child(c, fDeclaration); d != 0 {
				c = d
			}
		}
		switch w.t.kind(c) {
		case kFunctionDecl:
			w.declareFunction(c)
		case kClassDecl:
			if name := w.t.child(c, fName); name != 0 {
				w.sc.declare(w.t.text(name), unknown, w.cond)
			}
		case kDeclaration:
			if w.t.kid(c, kToken) != 0 && w.t.text(w.t.kid(c, kToken)) == "var" {
				return
			}
			w.t.each(c, func(d id) {
				if name := w.t.child(d, fName); name != 0 && w.t.kind(name) == kIdentifier {
					w.sc.declare(w.t.text(name), undefined, w.cond)
				}
			})
		default: // it declares nothing
		}
	})
}

// hoistVars declares the var variables of a function body, which belong to the function wherever they stand.
func (w *walk) hoistVars(n id) {
	names, ok := w.varNames[place{w.t, n}]
	if !ok {
		w.collectVars(n, 0, &names)
		w.varNames[place{w.t, n}] = names
	}
	for _, name := range names {
		if _, have := w.sc.vars[name]; !have {
			w.sc.declare(name, undefined, w.cond)
		}
	}
}

func (w *walk) collectVars(n id, depth int, names *[]string) {
	w.t.each(n, func(c id) {
		switch k := w.t.kind(c); k {
		case kDeclarator:
			if name := w.t.child(c, fName); name != 0 && w.t.kind(name) == kIdentifier && depth > 0 {
				*names = append(*names, w.t.text(name))
			}
		case kForIn:
			if kw := w.t.child(c, fKind); kw != 0 && w.t.text(kw) == "var" {
				if left := w.t.child(c, fLeft); w.t.kind(left) == kIdentifier {
					*names = append(*names, w.t.text(left))
				}
			}
			w.collectVars(c, 0, names)
		case kDeclaration:
			isVar := 0
			if kw := w.t.kid(c, kToken); kw != 0 && w.t.text(kw) == "var" {
				isVar = 1
			}
			w.collectVars(c, isVar, names)
		case kAmbient: // no variable of this program
		default:
			if k >= kProgram || k == kClassBody || k == kError {
				w.collectVars(c, 0, names)
			}
		}
	})
}

func (w *walk) declareFunction(n id) {
	name := w.t.child(n, fName)
	if name == 0 {
		return
	}
	key := w.t.text(name)
	if b := w.sc.vars[key]; b != nil && b.v.ref != nil && b.v.ref.fn != nil && b.v.ref.fn.at == n && b.v.ref.fn.tree == w.t {
		return
	}
	v := w.function(n)
	w.sc.declare(key, v, w.cond)
}

// declareAt gives a name that a declaration introduced in this block its value.
func (w *walk) declareAt(name id, v *val) {
	if name == 0 {
		return
	}
	w.sc.declare(w.identText(w.t.text(name), name), v, w.cond)
}

func (w *walk) declaration(n id) {
	mode := declareBlock
	if kw := w.t.kid(n, kToken); kw != 0 && w.t.text(kw) == "var" {
		mode = declareCall
	}
	w.t.each(n, func(d id) {
		if w.t.kind(d) != kDeclarator {
			return
		}
		name, value := w.t.child(d, fName), w.t.child(d, fValue)
		v := undefined
		if value != 0 {
			v = w.expr(value)
			if w.t.kind(name) == kIdentifier {
				nameFunction(v, w.t.text(name))
			}
		} else if mode == declareCall {
			return
		}
		w.assign(name, v, mode)
	})
}

func (w *walk) giveBack(v *val) {
	if w.act != nil {
		w.act.returns = union(w.act.returns, v)
	}
}

func (w *walk) ifStmt(n id) flow {
	cond := w.expr(w.t.child(n, fCondition))
	then, other := w.t.child(n, fConsequence), w.t.child(n, fAlternative)
	if may, certain := truthy(cond); certain {
		if may {
			w.later(other)
			return w.stmt(then)
		}
		w.later(then)
		return w.stmt(other)
	}
	w.cond++
	w.stmt(then)
	w.stmt(other)
	w.cond--
	return onward
}

func (w *walk) try(n id) flow {
	outside := w.thrown
	w.thrown = nil
	f := w.stmt(w.t.child(n, fBody))
	thrown := unknown
	if w.thrown != nil {
		thrown = union(w.thrown, unknown)
	}
	w.thrown = outside
	if h := w.t.child(n, fHandler); h != 0 {
		outer := w.sc
		w.sc = &scope{up: outer}
		w.cond++
		if p := w.t.child(h, fParameter); p != 0 {
			w.assign(p, thrown, declareBlock)
		}
		w.stmt(w.t.child(h, fBody))
		w.cond--
		w.sc = outer
	}
	if fin := w.t.child(n, fFinalizer); fin != 0 {
		w.stmt(fin)
	}
	return f
}

func (w *walk) switchStmt(n id) {
	w.expr(w.t.child(n, fValue))
	outer := w.sc
	w.sc = &scope{up: outer}
	body := w.t.child(n, fBody)
	w.cond++
	w.t.each(body, func(c id) {
		if v := w.t.child(c, fValue); v != 0 {
			w.expr(v)
		}
		w.hoist(c)
		w.t.each(c, func(s id) {
			if w.t.nodes[s].field == fBody {
				w.stmt(s)
			}
		})
	})
	w.cond--
	w.sc = outer
}

func (w *walk) enum(n id) {
	o := &object{role: plain}
	next := 0
	if body := w.t.child(n, fBody); body != 0 {
		w.t.each(body, func(c id) {
			if w.t.kind(c) != kEnumAssign {
				if key, ok := w.key(c); ok {
					o.set(key, numeric(float64(next)))
					next++
				}
				return
			}
			v := w.expr(w.t.child(c, fValue))
			if key, ok := w.key(w.t.child(c, fName)); ok {
				o.set(key, v)
			}
			if i, ok := v.integer(); ok {
				next = i + 1
			}
		})
	}
	w.declareAt(w.t.child(n, fName), &val{ref: o})
}
