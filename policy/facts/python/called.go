package python

import (
	"slices"

	"github.com/caisson-dev/caisson/policy/facts"
)

// calledUnknown: what a namespace or a module holds under a name that is not
// known is called.
func (it *interp) calledUnknown(f *val, a *arguments, n *node) {
	detail := ""
	switch {
	case slices.Contains(f.from, "namespace"):
		detail = "name looked up in a namespace"
	case slices.Contains(f.from, "module"):
		detail = "member of a module that is not known"
	default:
		return
	}
	it.reported++
	it.noted(detail, n, a)
	if it.quiet > 0 {
		return
	}
	given := make([]facts.Value, 0, len(a.pos))
	for _, v := range a.all() {
		given = append(given, v.fact())
	}
	it.b.Unknown(facts.DynCall, detail, it.pos(n), f.from, given)
}

// calledMethod: a method of that name of something that is not known is called,
// and could be what runs programs. What many modules call their own main part
// is no more than any other function, given words that name nothing.
func (it *interp) calledMethod(name string, f *val, a *arguments, n *node) {
	detail := "method " + name + " of something looked up in a namespace"
	if name != "run" && name != "call" || it.quiet > 0 || slices.Contains(f.from, "namespace") {
		it.dynamic(facts.DynCall, detail, n, f.from...)
		return
	}
	it.reported++
	it.noted(detail, n, a)
	given := make([]facts.Value, 0, len(a.pos))
	for _, v := range a.all() {
		given = append(given, v.fact())
	}
	it.b.Unknown(facts.DynCall, detail, it.pos(n), f.from, given)
}
