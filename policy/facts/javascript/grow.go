package javascript

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Work that grows without a number in the text that says how far.

// manyDoublings is how often something is doubled before there is no room for it.
const manyDoublings = 32

// doubles reports that a loop's body puts a text or a list together with
// itself: s += s, s = s + s, a = a.concat(a), a = [...a, ...a], a.push(...a).
func (w *walk) doubles(n id) bool {
	switch w.t.kind(n) {
	case kFunction, kFunctionDecl, kArrow, kClass, kClassDecl, kMethod:
		return false
	case kAugmented:
		left := w.t.child(n, fLeft)
		if strings.HasPrefix(w.t.text(w.t.child(n, fOperator)), "+") && w.twice(w.t.text(left), w.t.text(w.t.child(n, fRight))) && w.holdsMore(left) {
			return true
		}
	case kAssign:
		left := w.t.child(n, fLeft)
		name, right := w.t.text(left), strings.Join(strings.Fields(w.t.text(w.t.child(n, fRight))), "")
		if w.t.kind(left) == kIdentifier && (right == name+"+"+name || right == name+".concat("+name+")" || right == "[..."+name+",..."+name+"]") && w.holdsMore(left) {
			return true
		}
	case kCall:
		name, ok := strings.CutSuffix(w.t.text(w.t.child(n, fFunction)), ".push")
		if ok && strings.HasPrefix(strings.TrimLeft(w.t.text(w.t.child(n, fArguments)), "( "), "..."+name) {
			return true
		}
	default: // its parts decide
	}
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if w.doubles(c) {
			return true
		}
	}
	return false
}

func (w *walk) twice(name, other string) bool { return name == other && name != "" }

// holdsMore reports that a variable holds no number: those get no longer.
func (w *walk) holdsMore(n id) bool {
	b := w.sc.find(w.t.text(n))
	return b != nil && b.v != nil && !b.v.isNumber()
}

// gathers reports that a loop's body puts things aside at every turn.
func (w *walk) gathers(n id) bool {
	switch w.t.kind(n) {
	case kFunction, kFunctionDecl, kArrow, kClass, kClassDecl, kMethod, kIf, kTry, kSwitch:
		return false
	case kCall:
		f := w.t.text(w.t.child(n, fFunction))
		if strings.HasSuffix(f, ".set") && !strings.Contains(f, "(") || f == "process.nextTick" || f == "setTimeout" || f == "setImmediate" || f == "queueMicrotask" {
			return true
		}
	default: // its parts decide
	}
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if w.gathers(c) {
			return true
		}
	}
	return w.doubles(n)
}

// always reports that whoever calls f comes to the call at n: nothing in its
// body ends it before, and no condition stands around it.
func (w *walk) always(f *function, n id) bool {
	if w.t.kind(w.t.child(n, fFunction)) != kIdentifier { // of a member, it may be another's
		return false
	}
	if f.tree != w.t || slices.Contains(w.assigned(f.at), f.name) || f.yields || f.body == 0 || strings.HasPrefix(f.tree.text(f.at), "async") {
		return false
	}
	if w.t.kind(f.body) != kBlock {
		return w.unconditional(f.body, n)
	}
	for c := w.t.nodes[f.body].first; c != 0; c = w.t.nodes[c].next {
		if w.holds(c, n) {
			return w.unconditional(c, n)
		}
		if w.ends(c) {
			return false
		}
	}
	return false
}

func (w *walk) holds(outer, inner id) bool {
	o, i := w.t.nodes[outer], w.t.nodes[inner]
	return o.start <= i.start && i.end <= o.end
}

// ends reports that a statement may leave the function, or wait.
func (w *walk) ends(n id) bool {
	switch w.t.kind(n) {
	case kReturn, kThrow, kYield, kAwait:
		return true
	case kFunction, kFunctionDecl, kArrow, kClass, kClassDecl, kMethod:
		return false
	default: // its parts decide
	}
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if w.ends(c) {
			return true
		}
	}
	return false
}

// unconditional follows the way from a statement down to a call in it.
func (w *walk) unconditional(n, call id) bool {
	for n != call {
		switch w.t.kind(n) {
		case kIf, kFor, kForIn, kWhile, kDo, kSwitch, kTry, kTernary, kFunction, kFunctionDecl, kArrow, kClass, kClassDecl, kMethod, kAwait, kYield:
			return false
		case kBinary:
			switch w.t.text(w.t.child(n, fOperator)) {
			case "&&", "||", "??":
				if !w.holds(w.t.child(n, fLeft), call) {
					return false
				}
			default: // both sides are evaluated
			}
		default: // it comes to its parts
		}
		next := id(0)
		for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
			if w.holds(c, call) {
				next = c
				break
			}
		}
		if next == 0 {
			return false
		}
		n = next
	}
	return true
}

// A timer that starts processes, or writes, this often (in ms) uses up the
// machine.
const (
	oftenStarts = 100
	oftenWrites = 10
)

// every notes how often a function is called by a timer.
func (w *walk) every(f *val, delay *val) {
	if f.ref == nil || f.ref.fn == nil {
		return
	}
	ms, ok := delay.float()
	if delay.isNone() {
		ms, ok = 0, true
	}
	if ok && ms <= oftenStarts {
		f.ref.fn.often, f.ref.fn.pause = true, ms
	}
}

// again looks at a function that a turn of it puts off more than once, whatever
// it is given: the turns that wait double each time.
func (w *walk) again(f *val, n id) {
	if f.ref == nil || f.ref.fn == nil || w.act == nil || f.ref.fn != w.act.fn || w.cond > w.base {
		return
	}
	if w.act.again++; w.act.again == 2 {
		w.structure(facts.StructInfiniteLoop, "memory is taken by a function that puts itself off more than once a turn", n)
	}
}

// wearing looks at what a timer's function did.
func (w *walk) wearing(f *function, before tally) {
	switch {
	case !f.often:
	case w.tally.spawns > before.spawns:
		w.structure(facts.StructResourceBurn, "processes are started by a timer", f.body)
	case w.tally.buffers > before.buffers && w.tally.grows > before.grows+1:
		w.structure(facts.StructHugeAlloc, "memory is taken by a timer", f.body)
	case w.tally.writes > before.writes && f.pause <= oftenWrites:
		w.structure(facts.StructLoopWrite, "files are written by a timer", f.body)
	}
}

// listens are methods of emitters that put a function aside for an event.
var listens = map[string]bool{"on": true, "once": true, "addListener": true, "prependListener": true, "prependOnceListener": true}

// maxEvents bounds what is kept of listeners and of events.
const maxEvents = 64

// events joins what is emitted to who listens, by the name of the event.
func (w *walk) events(s *site) {
	method := last(s.name)
	emits := method == "emit"
	if !emits && !listens[method] || len(s.args) == 0 {
		return
	}
	event, ok := s.arg(0).one()
	if !ok || len(w.listeners)+len(w.emits) >= maxEvents {
		return
	}
	if emits {
		w.emits = append(w.emits, emission{event, s.args[1:]})
		for _, l := range w.listeners {
			w.hears(l, emission{event, s.args[1:]}, s.n)
		}
		return
	}
	l := listener{event, s.arg(1)}
	w.listeners = append(w.listeners, l)
	for _, e := range w.emits {
		w.hears(l, e, s.n)
	}
}

type listener struct {
	event string
	f     *val
}

type emission struct {
	event string
	args  []*val
}

// hears calls a listener with what is emitted. Others may call it too.
func (w *walk) hears(l listener, e emission, n id) {
	if l.event != e.event {
		return
	}
	calls := 0
	if l.f.ref != nil && l.f.ref.fn != nil {
		calls = l.f.ref.fn.calls
	}
	w.back(l.f, e.args, n)
	if l.f.ref != nil && l.f.ref.fn != nil {
		l.f.ref.fn.calls = calls
	}
}
