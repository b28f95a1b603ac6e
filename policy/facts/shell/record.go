package shell

import (
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// once reports whether a fact is new. Loops and functions are walked again and
// again, and give the same facts at the same places.
func (w *walker) once(kind string, pos facts.Pos, detail string) bool {
	if w.repeat == 0 {
		return true
	}
	key := fmt.Sprint(kind, " ", pos.Line, " ", pos.Col, " ", w.b.Depth(), " ", detail)
	if w.reported[key] {
		return false
	}
	w.reported[key] = true
	return true
}

// dynamic records what could not be told.
func (w *walker) dynamic(kind, detail string, pos facts.Pos, from ...string) {
	if w.once(kind, pos, detail+strings.Join(from, " ")) {
		w.b.Dynamic(kind, detail, pos, from...)
	}
}

// shape records a structure of the script.
func (w *walker) shape(kind, detail string, pos facts.Pos) {
	if w.once(kind, pos, detail) {
		w.b.Struct(kind, detail, pos)
	}
}

// joined records a pipeline.
func (w *walker) joined(names, from []string, pos facts.Pos) {
	if w.once("pipe", pos, strings.Join(names, " ")+strings.Join(from, " ")) {
		w.b.Pipeline(names, from, pos)
	}
}

// overflow records, once, that a bound was hit.
func (w *walker) overflow(what string, pos facts.Pos) {
	if !w.reported["limit "+what] {
		w.reported["limit "+what] = true
		w.b.Limit(what, pos)
	}
}

// maxSteps bounds the statements that one text is worth, however often its
// functions are called; about a quarter of a second. A text within another that
// is walked for itself has less; what a walker evaluates itself comes out of its
// own.
const maxSteps = 60_000

// step counts a statement and reports whether to walk it.
func (w *walker) step(pos facts.Pos) bool {
	w.charge(1)
	if w.exhausted {
		if !w.told {
			w.told = true
			w.b.Limit("statements walked", pos)
		}
		return false
	}
	return w.b.Node()
}

// charge counts work that is worth n statements.
func (w *walker) charge(n int) {
	w.steps += n
	w.exhausted = w.exhausted || w.steps > maxSteps>>(2*min(w.depth, 3))
}

// heavy charges for a pass over a text, and reports whether there is a budget
// for it.
func (w *walker) heavy(t text) bool {
	n := 0
	for _, s := range t.alts {
		n += len(s)
	}
	w.charge(n / 1024)
	return !w.exhausted
}
