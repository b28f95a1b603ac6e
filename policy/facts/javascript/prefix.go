package javascript

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// namesText reports a sole argument that is a name of the program, which never
// stands for anything but one text, and seeks no secrets by it.
func (w *walk) namesText(args id) bool {
	arg := w.t.nodes[args].first
	if w.t.kind(arg) != kIdentifier || w.t.nodes[arg].next != 0 {
		return false
	}
	b := w.sc.find(w.t.text(arg))
	if b == nil || b.v == nil || b.ever != nil {
		return false
	}
	s, ok := b.v.one()
	return ok && len(s) > 1 && !facts.SeeksSecrets(s)
}

// redefines reports that the text may have a method of its own in place of one
// that texts and patterns have.
func (w *walk) redefines(method string) bool {
	return w.given(method) && slices.ContainsFunc(prototypes, func(p string) bool { return strings.Contains(w.main.src, p) })
}

// prototypes are how a text gets hold of what all texts and patterns have.
var prototypes = []string{"String.prototype", "RegExp.prototype", "constructor.prototype", "__proto__", "getPrototypeOf("}
