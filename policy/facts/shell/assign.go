package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// declaration is what declare and its relatives say about a variable.
type declaration struct {
	local, exported, ref, array, table, integer bool
	fold                                        byte
}

// assign gives a variable a scalar value.
func (w *walker) assign(name string, t text) { w.set(name, t, declaration{}) }

func (w *walker) set(name string, t text, d declaration) {
	if !syntax.ValidName(name) || name == facts.Hole {
		return
	}
	old := w.st.vars.get(name)
	if old != nil && old.ref && !d.ref {
		if target, ok := old.val.one(); ok && target != name {
			w.set(target, t, d)
		}
		return
	}
	v := variable{exported: d.exported, ref: d.ref, integer: d.integer, fold: d.fold}
	if old != nil {
		v.exported = v.exported || old.exported
		v.integer = v.integer || old.integer
		if v.fold == 0 {
			v.fold = old.fold
		}
	}
	v.val = w.attributed(&v, t)
	if name == "BASH_ARGV0" {
		w.st.arg0 = v.val
	}
	w.put(name, &v)
	w.written(name, &v)
}

// attributed applies declare -i, -u and -l to a value.
func (w *walker) attributed(v *variable, t text) text {
	if v.integer {
		t = t.each(func(s string) (string, bool) {
			n, ok := w.number(s, 0)
			return strconv.FormatInt(n, 10), ok
		})
	}
	switch v.fold {
	case 'u':
		return t.each(func(s string) (string, bool) { return strings.ToUpper(s), true })
	case 'l':
		return t.each(func(s string) (string, bool) { return strings.ToLower(s), true })
	}
	return t
}

// put stores a variable.
func (w *walker) put(name string, v *variable) { w.st.vars.set(name, v) }

// written reports variables that other programs see, and those that shells run
// as code.
func (w *walker) written(name string, v *variable) {
	class := w.tables.EnvClass(name)
	if v.exported || class == "loader" || class == "search" || class == "startup" || class == "history" || class == "python" {
		key := "set " + name + "\x00" + strings.Join(v.val.alts, "\x00")
		if !w.reported[key] {
			w.reported[key] = true
			op := "write"
			if name == "PROMPT_COMMAND" && !v.exported || name == "LESSOPEN" || name == "LESSCLOSE" {
				op = "set" // no more than the code that it holds, see below
			}
			w.b.Env(op, facts.Text(name), w.searched(name, v.scalar()).value(), facts.Pos{})
		}
	}
	switch name {
	case "PROMPT_COMMAND":
		w.traps = append(w.traps, pending{v.scalar(), name, facts.Pos{}})
	case "LESSOPEN", "LESSCLOSE":
		code := text{mapAll(v.scalar().all(), func(s string) string { return strings.TrimLeft(s, "|-") }), v.scalar().from}
		w.traps = append(w.traps, pending{code, name, facts.Pos{}})
	case "PS0", "PS1", "PS2", "PS4":
		if v.val.has(func(s string) bool { return strings.Contains(s, "$(") || strings.Contains(s, "`") }) {
			code := concat(concat(lit(": \""), v.val), lit("\""))
			w.traps = append(w.traps, pending{code, name, facts.Pos{}})
		}
	}
}

// localise remembers what a local variable hides.
func (w *walker) localise(name string) {
	if len(w.calls) == 0 {
		return
	}
	fr := &w.calls[len(w.calls)-1]
	if _, done := fr.locals[name]; !done {
		fr.locals[name] = w.st.vars.get(name)
	}
}

// assignment walks name=value in any of its forms.
func (w *walker) assignment(a *syntax.Assign, d declaration) {
	if a.Name == nil {
		return
	}
	name := clean(a.Name.Value)
	if d.local {
		w.localise(name)
	}
	switch {
	case a.Array != nil:
		w.assignArray(name, a, d)
	case a.Index != nil:
		w.assignIndex(name, a.Index, w.single(a.Value), a.Append)
	case a.Naked:
		w.declareName(name, d)
	default:
		before := w.guessed
		w.guessed = false
		t := w.single(a.Value)
		if a.Append {
			old := w.st.vars.get(name)
			w.guessed = w.guessed || old == nil || !old.constant
			t = w.appended(name, t)
		}
		w.set(name, t, d)
		if v := w.st.vars.get(name); v != nil && !w.guessed && !v.isArray && !v.isTable && !v.ref {
			c := *v
			c.constant = true
			w.put(name, &c)
		}
		w.guessed = before || w.guessed
	}
}

// appended is name+=t.
func (w *walker) appended(name string, t text) text {
	old := w.st.vars.get(name)
	if old == nil {
		return t
	}
	if old.integer {
		return concat(concat(old.scalar(), lit("+")), t)
	}
	return concat(old.scalar(), t)
}

// declareName is declare NAME without a value.
func (w *walker) declareName(name string, d declaration) {
	old := w.st.vars.get(name)
	if d.local && old != nil {
		old = nil
	}
	if old == nil {
		if d.local || d.array || d.table {
			w.put(name, &variable{isArray: d.array, isTable: d.table, integer: d.integer, fold: d.fold, exported: d.exported})
		}
		return
	}
	v := *old
	v.exported = v.exported || d.exported
	v.integer = v.integer || d.integer
	v.ref = v.ref || d.ref
	w.put(name, &v)
	if d.exported {
		w.written(name, &v)
	}
}

func (w *walker) assignArray(name string, a *syntax.Assign, d declaration) {
	v := &variable{isArray: true, exported: d.exported}
	old := w.st.vars.get(name)
	if d.table || old != nil && old.isTable {
		v.isArray, v.isTable, v.table = false, true, map[string]text{}
		if a.Append && old != nil {
			maps.Copy(v.table, old.table)
		}
	} else if a.Append && old != nil {
		v.list = slices.Clone(old.words())
	}
	for _, e := range a.Array.Elems {
		w.arrayElem(v, e)
	}
	if name != facts.Hole {
		w.put(name, v)
	}
}

func (w *walker) arrayElem(v *variable, e *syntax.ArrayElem) {
	if e.Index == nil {
		if v.isTable || e.Value == nil {
			return
		}
		for _, f := range longest(w.fields([]*syntax.Word{e.Value})) {
			if len(v.list) >= maxIndex {
				w.overflow("elements of an array", w.pos(e))
				return
			}
			v.list = append(v.list, f.t)
		}
		return
	}
	t := w.single(e.Value)
	if v.isTable {
		if word, ok := e.Index.(*syntax.Word); ok {
			if key, ok := w.single(word).one(); ok && len(v.table) < maxIndex {
				v.table[key] = t
			}
		}
		return
	}
	if n, ok := w.arith(e.Index); ok {
		v.list = putAt(v.list, n, t)
	}
}

// maxIndex bounds sparse arrays.
const maxIndex = 4096

// putAt sets an element of an array, which grows for it.
func putAt(list []text, n int64, t text) []text {
	if n < 0 {
		n += int64(len(list))
	}
	if n < 0 || n > maxIndex {
		return append(list[:len(list):len(list)], t)
	}
	out := slices.Clone(list)
	for int64(len(out)) <= n {
		out = append(out, text{})
	}
	out[n] = t
	return out
}

// assignIndex is name[index]=t.
func (w *walker) assignIndex(name string, index syntax.ArithmExpr, t text, appending bool) {
	v := &variable{isArray: true}
	if old := w.st.vars.get(name); old != nil {
		c := *old
		v = &c
	}
	if v.isTable {
		v.table = maps.Clone(v.table)
		if v.table == nil {
			v.table = map[string]text{}
		}
		word, ok := index.(*syntax.Word)
		if !ok {
			return
		}
		key, ok := w.single(word).one()
		if !ok || len(v.table) >= maxIndex {
			key = "?"
		}
		if appending {
			t = concat(v.table[key], t)
		}
		v.table[key] = t
		w.put(name, v)
		return
	}
	v.list = v.words()
	v.isArray, v.val = true, text{}
	n, ok := w.arith(index)
	if !ok {
		n = int64(len(v.list))
	}
	if appending && n >= 0 && n < int64(len(v.list)) {
		t = concat(v.list[n], t)
	}
	v.list = putAt(v.list, n, t)
	w.put(name, v)
}
