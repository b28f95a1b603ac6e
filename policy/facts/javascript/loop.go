package javascript

import (
	"slices"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Bounds of running loops whose course is known.
const (
	maxTurns  = 400
	loopSteps = 30_000
)

// havoc says of every variable that n assigns to that it may be anything that follows from it.
func (w *walk) havoc(n id) {
	for _, name := range w.assigned(n) {
		if b := w.sc.find(name); b != nil && b.v != nil {
			b.v = b.v.opened()
		}
	}
}

// assigned are the names of the variables that n assigns to, other than by a declaration.
func (w *walk) assigned(n id) []string {
	if names, ok := w.assigns[place{w.t, n}]; ok {
		return names
	}
	var names []string
	var look func(n id)
	look = func(n id) {
		switch w.t.kind(n) {
		case kAssign, kAugmented:
			if left := w.t.child(n, fLeft); w.t.kind(left) == kIdentifier {
				names = append(names, w.t.text(left))
			}
		case kUpdate:
			if arg := w.t.child(n, fArgument); w.t.kind(arg) == kIdentifier {
				names = append(names, w.t.text(arg))
			}
		default: // it assigns nothing by itself
		}
		w.t.each(n, look)
	}
	look(n)
	w.assigns[place{w.t, n}] = names
	return names
}

func (w *walk) forStmt(n id) flow {
	outer := w.sc
	w.sc = &scope{up: outer}
	defer func() { w.sc = outer }()
	if init := w.t.child(n, fInitializer); init != 0 {
		w.stmt(init)
	}
	cond, step, body := w.t.child(n, fCondition), w.t.child(n, fIncrement), w.t.child(n, fBody)
	if w.t.kind(cond) == kExpression {
		cond = w.t.nodes[cond].first
	}
	if w.t.kind(cond) == kEmpty || w.t.text(cond) == ";" {
		cond = 0
	}
	if done, f := w.turns(cond, step, body, false); done {
		return f
	}
	w.loopBody(n, w.endless(cond, body), func() {
		if cond != 0 {
			w.expr(cond)
		}
		w.stmt(body)
		if step != 0 {
			w.expr(step)
		}
	})
	return onward
}

func (w *walk) while(n id) flow {
	cond, body := w.t.child(n, fCondition), w.t.child(n, fBody)
	if done, f := w.turns(cond, 0, body, w.t.kind(n) == kDo); done {
		return f
	}
	w.loopBody(n, w.endless(cond, body), func() {
		w.expr(cond)
		w.stmt(body)
	})
	return onward
}

// loopBody walks a loop whose course is not known, once.
func (w *walk) loopBody(n id, endless bool, body func()) {
	w.havoc(n)
	w.cond++
	w.loops++
	before := w.spawned
	body()
	w.loops--
	w.cond--
	if endless && w.spawned > before {
		w.structure(facts.StructForkBomb, "processes are started in a loop without end", n)
	}
}

// endless reports that nothing ends a loop: its condition is true, nothing leaves it, and nothing is waited for.
func (w *walk) endless(cond, body id) bool {
	if cond != 0 {
		if w.impure(cond) {
			return false
		}
		w.quiet++
		may, certain := truthy(w.expr(cond))
		w.quiet--
		if !may || !certain || w.reads(cond) {
			return false
		}
	}
	return !w.leaves(body, false)
}

// reads reports whether n uses a variable.
func (w *walk) reads(n id) bool {
	if k := w.t.kind(n); k == kIdentifier || k == kThis {
		return true
	}
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if w.reads(c) {
			return true
		}
	}
	return false
}

// leaves reports whether a loop's body can leave the loop, or waits.
func (w *walk) leaves(n id, inner bool) bool {
	switch w.t.kind(n) {
	case kReturn, kThrow, kYield, kAwait:
		return true
	case kBreak:
		return !inner || w.t.nodes[n].first != 0
	case kContinue:
		return w.t.nodes[n].first != 0
	case kFunction, kFunctionDecl, kArrow, kClass, kClassDecl, kMethod:
		return false
	case kFor, kForIn, kWhile, kDo, kSwitch:
		inner = true
	case kCall:
		switch w.t.text(w.t.child(n, fFunction)) {
		case "process.exit", "process.abort":
			return true
		}
	default: // its parts decide
	}
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if w.leaves(c, inner) {
			return true
		}
	}
	return false
}

// turns runs a loop for as long as its condition is certain, and reports whether it came to its end.
func (w *walk) turns(cond, step, body id, bodyFirst bool) (bool, flow) {
	if cond == 0 || w.loops > 1 || w.steps > w.inline || !w.steady(cond) {
		return false, onward
	}
	budget := w.steps + loopSteps
	base := w.base
	w.base = w.cond
	w.loops++
	defer func() {
		w.loops--
		w.base = base
	}()
	for turn := range maxTurns {
		if !bodyFirst || turn > 0 {
			may, certain := truthy(w.expr(cond))
			if !certain {
				return false, onward
			}
			if !may {
				if turn == 0 {
					w.later(body)
				}
				return true, onward
			}
		}
		switch w.stmt(body) {
		case broke:
			return true, onward
		case returned:
			return true, returned
		default: // the next round
		}
		if step != 0 {
			w.expr(step)
		}
		if w.steps > budget {
			return false, onward
		}
	}
	return false, onward
}

// steady reports whether a condition can be known at all, before anything is spent on it.
func (w *walk) steady(cond id) bool {
	if w.impure(cond) {
		return false
	}
	w.quiet++
	before := map[*binding]binding{}
	for _, name := range w.assigned(cond) {
		if b := w.sc.find(name); b != nil {
			before[b] = *b
		}
	}
	_, certain := truthy(w.expr(cond))
	for b, was := range before {
		*b = was
	}
	w.quiet--
	return certain
}

func (w *walk) impure(n id) bool {
	switch w.t.kind(n) {
	case kCall, kNew, kAwait, kYield:
		return true
	default: // its parts decide
	}
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if w.impure(c) {
			return true
		}
	}
	return false
}

func (w *walk) forIn(n id) flow {
	outer := w.sc
	w.sc = &scope{up: outer}
	defer func() { w.sc = outer }()
	left, body := w.t.child(n, fLeft), w.t.child(n, fBody)
	of := w.t.text(w.t.child(n, fOperator)) == "of"
	filters := w.filters(body)
	if filters {
		w.picks++
	}
	over := w.expr(w.t.child(n, fRight))
	items, open := elements(w.iterated(settled(over), n))
	copies := !of && w.hasMembers(over)
	switch {
	case copies:
		items, open = w.membersOf(over.name), false
	case !of:
		items, open = w.keysOf(over, n)
	}
	if filters {
		w.picks--
	}
	mode := assignOnly
	if kw := w.t.child(n, fKind); kw != 0 {
		mode = declareBlock
		if w.t.text(kw) == "var" {
			mode = declareCall
		}
	}
	if !open && len(items) <= maxTurns && w.loops <= 1 && w.steps < w.inline && (len(w.assigned(body)) > 0 || rows(items) || copies) {
		return w.eachTurn(items, left, body, mode)
	}
	if open && len(items) > 0 && len(items) <= facts.MaxAlts && w.loops <= 1 && w.steps < w.inline {
		w.eachTurn(items, left, body, mode) // those that are known; there may be more
	}
	var v *val
	for i, it := range items {
		if i == facts.MaxAlts {
			open = true
			break
		}
		v = union(v, settled(it))
	}
	switch {
	case v == nil:
		v = itemOf(over)
	case open:
		v = v.opened()
	}
	w.loopBody(n, false, func() {
		w.assign(left, v, mode)
		w.stmt(body)
	})
	return onward
}

// rows reports items that hold others, which belong together: a table.
func rows(items []*val) bool {
	return len(items) <= maxRows && slices.ContainsFunc(items, func(v *val) bool { return v.ref != nil && (v.ref.role == array || v.ref.role == plain) })
}

// maxRows is how many rows of a table are told apart.
const maxRows = 32

// eachTurn runs a loop over items that are known.
func (w *walk) eachTurn(items []*val, left, body id, mode assignMode) flow {
	base := w.base
	w.base = w.cond
	w.loops++
	defer func() {
		w.loops--
		w.base = base
	}()
	budget := w.steps + loopSteps
	if len(items) == 0 {
		w.later(body)
	}
	for i, it := range items {
		w.assign(left, settled(it), mode)
		switch w.stmt(body) {
		case broke:
			return onward
		case returned:
			return returned
		default: // the next round
		}
		if w.steps > budget && i+1 < len(items) {
			w.havoc(body)
			v := items[i+1]
			for _, rest := range items[i+1 : min(len(items), i+facts.MaxAlts)] {
				v = union(v, rest)
			}
			w.cond++
			w.assign(left, v.opened(), mode)
			w.stmt(body)
			w.cond--
			break
		}
	}
	return onward
}

// itemOf is an item of v that is not known.
func itemOf(v *val) *val {
	if v.name != "" {
		return &val{name: v.name + ".?", how: "subscript", Value: facts.Opaque(v.From...)}
	}
	return opaque(v.origins())
}
