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
// other does anything. They are looked for once among all names.
func (w *walk) membersOf(module string) []*val {
	keys, found := w.members[module]
	if found {
		return keys
	}
	for name := range w.b.Tables().APIs[facts.JavaScript].Names() {
		if key, ok := strings.CutPrefix(name, module+"."); ok && !strings.Contains(key, ".") {
			keys = append(keys, text(key))
		}
	}
	slices.SortFunc(keys, func(a, b *val) int { return strings.Compare(a.Alts[0], b.Alts[0]) })
	w.members[module] = keys
	return keys
}
