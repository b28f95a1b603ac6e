package javascript

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// hasMembers reports a module of node's whose members matter one by one: which
// are copied, say.
func (w *walk) hasMembers(v *val) bool {
	return v.name != "" && eager[w.module(v.name)] && !strings.Contains(v.name, ".")
}

// membersOf are the names of the members of a module that the tables know; no
// other does anything.
func (w *walk) membersOf(module string) []*val {
	var keys []*val
	for name := range w.b.Tables().APIs[facts.JavaScript].Names() {
		if key, ok := strings.CutPrefix(name, module+"."); ok && !strings.Contains(key, ".") {
			keys = append(keys, text(key))
		}
	}
	slices.SortFunc(keys, func(a, b *val) int { return strings.Compare(a.Alts[0], b.Alts[0]) })
	return keys
}

// present decides a comparison of what is certainly there with null or undefined;
// nil where it cannot.
func (w *walk) present(op string, a, b *val) *val {
	if a.isNone() {
		a, b = b, a
	}
	if !b.isNone() || a.ref == nil && !w.hasMembers(a) {
		return nil
	}
	switch op {
	case "==", "===":
		return no
	case "!=", "!==":
		return yes
	}
	return nil
}
