package javascript

// callNow calls a function that was handed over as whoever has it may do before
// it gives back anything: what the function sets is then not what it was. It is
// called again at the end, when all is set that it reads.
func (w *walk) callNow(a *val, from []string, n id) {
	if w.idle || w.late > 0 || w.depth >= maxNow || w.steps > w.inline {
		return
	}
	a.all(func(v *val) {
		f := v
		for range maxNow {
			if f.ref == nil || f.ref.role != bound || f.ref.base == nil {
				break
			}
			f = f.ref.base
		}
		item := opaque(from)
		s := &site{n: n, args: []*val{item, item, item}}
		switch {
		case f.ref != nil && f.ref.role == closure:
			w.callOnce(v, f.ref.fn, s)
		case adding[f.name]: // list.push, by itself or bound
			w.cond++
			w.apply(v, s)
			w.cond--
		}
	})
}

// adding are functions of the language that change what they are a member of.
var adding = map[string]bool{"Array.prototype.push": true, "Array.prototype.unshift": true}

// callOnce calls v, which comes to fn, unless it was called here by what it was
// handed to, or is known to change nothing.
func (w *walk) callOnce(v *val, fn *function, s *site) {
	if here := fn.called == s.n && fn.caller == w.t; here || fn.active || fn.now || !fn.sets() {
		return
	}
	fn.now = true
	calls := fn.calls
	s.this = fn.this
	w.cond++
	w.apply(v, s)
	w.cond--
	fn.calls = calls
}

// maxNow is how deep in calls that is done.
const maxNow = 4

// sets reports a function that may change something outside it: it assigns, or
// calls what may.
func (f *function) sets() bool {
	end := f.tree.nodes[f.at].end
	for i := int(f.at) + 1; i < len(f.tree.nodes) && f.tree.nodes[i].start < end; i++ {
		switch f.tree.nodes[i].kind {
		case kAssign, kAugmented, kUpdate, kCall, kNew, kForIn, kUnary, kYield, kTemplate:
			return true
		default: // its parts may
		}
	}
	return false
}
