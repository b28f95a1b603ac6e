package javascript

// program runs the whole text, then what nothing in it has called: first what
// was handed to others, who will call it, and last what is only offered. The
// facts of that are idle: they do not happen by themselves.
func (w *walk) program() {
	w.hoistVars(0)
	w.block(0)
	w.late++
	w.cond++
	w.rest(false)
	w.choices()
	if (w.defines || w.others) && len(w.kept)+len(w.pages) > 0 {
		w.after()
		w.rest(false)
	}
	if w.b.Depth() > 0 || w.wild {
		w.rest(true)
		return
	}
	w.setIdle(true)
	w.rest(true)
}

func (w *walk) setIdle(idle bool) {
	w.idle = idle
	w.b.Idle(idle)
}

// rest runs what is left: all of it, or what others will call. More is found
// on the way.
func (w *walk) rest(all bool) {
	for f, c := 0, 0; ; {
		switch {
		case w.b.Full():
			return
		case w.done < len(w.skipped):
			k := w.skipped[w.done]
			w.done++
			w.runSkipped(k)
		case c < len(w.classes):
			v := w.classes[c]
			c++
			if all && v.ref.made == nil {
				w.construct(v, &site{open: true, args: []*val{unknown, unknown, unknown, unknown}})
			}
		case f < len(w.functions):
			v := w.functions[f]
			f++
			if all || v.ref.fn.expected() {
				w.runLate(v)
			}
		default:
			return
		}
	}
}

func (w *walk) runSkipped(k skipped) {
	saved, idle := w.frame, w.idle
	w.frame = k.frame
	w.late, w.cond = saved.late, saved.cond+k.cond
	if idle != k.idle {
		w.setIdle(k.idle)
	}
	w.run1(k.n)
	if idle != k.idle {
		w.setIdle(idle)
	}
	w.frame = saved
}

// implicit are members that the language calls.
var implicit = map[string]bool{
	"toString": true, "valueOf": true, "toJSON": true, "then": true, "next": true, "return": true, "inspect": true,
	"get": true, "set": true, "has": true, "apply": true, "construct": true, "ownKeys": true, "deleteProperty": true,
	"getOwnPropertyDescriptor": true, "defineProperty": true, "getPrototypeOf": true, "isExtensible": true, "": true,
}

// expected reports that somebody other than the program will call f: it was
// handed over, or it is a method that the language, or code of a foreign
// class, calls by itself.
func (f *function) expected() bool {
	switch {
	case f.handed || f.getter || f.given != nil:
		return true
	case f.home == nil || f.home.role != class:
		return implicit[f.name] && f.method && !f.symbol
	}
	foreign := f.home.base != nil && f.home.base.name != ""
	return f.home.made != nil && (foreign || implicit[f.name] && !f.symbol)
}

func (w *walk) run1(n id) {
	if k := w.t.kind(n); k >= kProgram || k == kFunctionDecl || k == kClassDecl {
		w.stmt(n)
		return
	}
	w.expr(n)
}

// runLate runs a function that nothing has called, for whoever may.
func (w *walk) runLate(v *val) {
	fn := v.ref.fn
	if fn.calls > 0 || w.made[fn.key()] > 1 && w.ran[fn.key()] && w.times[fn.key()] >= maxLater {
		return
	}
	if w.steps > w.hard && w.ran[fn.key()] {
		return
	}
	w.times[fn.key()]++
	this := fn.this
	if this == nil && fn.home != nil {
		this = fn.home.made
	}
	args := fn.given
	if args == nil {
		w.anyArgs(fn, &args, nil)
	}
	w.run(fn, this, args)
}
