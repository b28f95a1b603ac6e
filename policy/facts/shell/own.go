package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// sheltered is a path that begins at the script's own folder. How deep in the
// workspace that lies is not known, where nobody said how the script is called:
// what leaves the workspace by "..", and comes out at a place that a system
// does not have, or at one where projects have folders of the same name, stays
// within.
func (w *walker) sheltered(t text) text {
	if w.placed || !slices.Contains(t.from, ownFolder) {
		return t
	}
	top := w.tables.Workspace
	if !t.has(func(s string) bool {
		return s == "/" || s == "/\n" || strings.HasPrefix(s, top+"/") && strings.Contains(s, "/..")
	}) {
		return t
	}
	from := t.from
	out := mapAll(t.all(), func(s string) string {
		if s == "/" || s == "/\n" {
			return top + s[1:]
		}
		if !strings.HasPrefix(s, top+"/") || !strings.Contains(s, "/..") {
			return s
		}
		switch w.tables.PathClass(path.Clean(s)) {
		case "root", "outside", "system_binary":
			if strings.Count(s, "/..") > 1 {
				from = origins(from, []string{facts.FromAbove})
			}
			return top + strings.TrimSuffix(path.Clean("/"+s[len(top):]), "/")
		}
		return s
	})
	return text{out, from}
}

// isSelf reports the script's own name.
func (w *walker) isSelf(t text) bool {
	if !slices.Contains(t.from, fromSelf) || slices.Contains(t.from, cut) || len(t.alts) != 1 {
		return false
	}
	if w.placed {
		return t.is(w.st.arg0.all()[0])
	}
	folder, found := strings.CutSuffix(t.alts[0], hole)
	folder = strings.TrimPrefix(folder, hole) // of a folder that is not known
	return found && (folder == "" || strings.HasSuffix(folder, "/") && strings.ContainsRune("/.", rune(folder[0])))
}

// handOver notes that the script gives itself, as a whole, to the interpreter
// of another language, as a Python program with a shell's first lines does: what
// follows is not the shell's.
func (w *walker) handOver(args fields) {
	if w.forks > 0 || w.capture > 0 || len(w.calls) > 0 || w.b.Depth() > 0 || len(args) < 2 || w.st.aliases.get("exec") != nil {
		return
	}
	name, ok := args[0].t.guess()
	p, _, known := w.tables.Program(base(name))
	if !ok || !known || !p.Script || p.Interpreter != facts.Python && p.Interpreter != facts.JavaScript {
		return
	}
	ops := operands(args[1:])
	switch {
	case len(ops) == 0 || !w.isSelf(ops[0].t):
	case w.maybe == 0:
		w.heir = p.Interpreter
	case !slices.Contains(w.heirs, p.Interpreter):
		w.heirs = append(w.heirs, p.Interpreter)
	}
}
