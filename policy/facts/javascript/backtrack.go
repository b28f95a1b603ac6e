package javascript

import "github.com/caisson-dev/caisson/policy/facts"

// backtracks notices a pattern that never comes to an end on a text that stands
// in the program.
func (w *walk) backtracks(re, on *val, n id) {
	if re.ref == nil || re.ref.role != regex {
		return
	}
	pattern, ok := re.ref.items[0].one()
	text, known := on.one()
	if ok && known && on.isText() && facts.Backtracks(pattern, text, false, false) {
		w.structure(facts.StructHugeAlloc, "a pattern that goes back without end", n)
	}
}
