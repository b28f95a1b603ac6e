package shell

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// declClause walks declare, local, export, readonly and typeset as the parser
// knows them.
func (w *walker) declClause(c *syntax.DeclClause, rd *redirection) text {
	d := declaration{}
	w.status = succeeds
	before := w.substs
	variant := c.Variant.Value
	d.local = len(w.calls) > 0 && (variant == "local" || variant == "declare" || variant == "typeset")
	d.exported = variant == "export"
	d.ref = variant == "nameref"
	functions := false
	for _, a := range c.Args {
		if a.Naked && a.Name == nil {
			w.nakedArg(a, &d, &functions)
			continue
		}
		if functions && a.Name != nil {
			w.exportedFunction(a.Name.Value)
			continue
		}
		w.assignment(a, d)
	}
	if w.substs != before {
		w.status = unsure
	}
	if functions && variant != "local" && variant != "export" {
		return w.definitions(c)
	}
	if variant != "local" && !slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return !a.Naked || a.Value == nil || !printing[a.Value.Lit()] }) {
		w.b.Env("dump", facts.Value{}, facts.Value{}, w.pos(c))
	}
	return text{}
}

// definitions is declare -f NAME: the function as source.
func (w *walker) definitions(c *syntax.DeclClause) text {
	if len(c.Args) == 1 && c.Args[0].Naked && c.Args[0].Value != nil && c.Args[0].Value.Lit() == "-F" {
		return w.functionNames()
	}
	out := text{}
	for _, a := range c.Args {
		if a.Naked && a.Name == nil {
			if s := a.Value.Lit(); s != "-f" {
				return opaque() // -F, a name that is put together
			}
			continue
		}
		fs := w.st.funcs.get(a.Name.Value)
		if len(fs) != 1 {
			w.status = unsure
			return opaque()
		}
		var b strings.Builder
		if err := syntax.NewPrinter().Print(&b, fs[0].body); err != nil {
			return opaque()
		}
		out = concat(out, lit(clean(fs[0].name+" () "+b.String()+"\n")))
	}
	if out.empty() {
		return opaque() // all of them
	}
	return out
}

// functionNames is declare -F: the names of all functions, where no other text
// could have defined more, and all of them are certain to be there: a line may
// be picked by its number.
func (w *walker) functionNames() text {
	names := slices.Sorted(maps.Keys(w.st.funcs.flat()))
	if w.perhaps || w.strange || w.st.sourced || len(names) == 0 || len(names) > maxNames {
		return opaque()
	}
	var b strings.Builder
	for _, name := range names {
		if len(w.st.funcs.get(name)) > 0 {
			b.WriteString("declare -f " + name + "\n")
		}
	}
	return lit(clean(b.String())).tainted(facts.FromFunction)
}

// maxNames bounds how many functions are listed by name.
const maxNames = 64

// printing are options of declare and export by which they print variables.
var printing = map[string]bool{"-p": true, "-x": true, "-px": true, "-xp": true}

// nakedArg is an option, or a word that becomes an assignment by expansion.
func (w *walker) nakedArg(a *syntax.Assign, d *declaration, functions *bool) {
	for _, way := range w.fields([]*syntax.Word{a.Value}) {
		for _, f := range way {
			w.declareWord(f.t, d, functions)
		}
	}
}

// declareWord handles one expanded word of a declaration.
func (w *walker) declareWord(t text, d *declaration, functions *bool) {
	for _, s := range t.all() {
		if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
			d.option(s, functions)
			continue
		}
		name, value, ok := strings.Cut(s, "=")
		name = strings.TrimSuffix(name, "+")
		if !syntax.ValidName(name) {
			continue
		}
		if *functions {
			w.exportedFunction(name)
		} else if ok {
			if d.local {
				w.localise(name)
			}
			w.set(name, text{[]string{value}, t.from}, *d)
		} else {
			w.declareName(name, *d)
		}
	}
}

func (d *declaration) option(s string, functions *bool) {
	on := s[0] == '-'
	for _, c := range s[1:] {
		switch c {
		case 'x':
			d.exported = on
		case 'n':
			d.ref = on
		case 'a':
			d.array = on
		case 'A':
			d.table = on
		case 'i':
			d.integer = on
		case 'g':
			d.local = false
		case 'u', 'l':
			d.fold = byte(c)
		case 'f', 'F':
			*functions = true
		}
	}
}

// exportedFunction is export -f: shells started later know it, so it may be
// called.
func (w *walker) exportedFunction(name string) {
	for _, f := range w.st.funcs.get(name) {
		if !f.called {
			w.aside(func() { w.callFunction(f, nil, opaque("argv"), false) })
		}
	}
}

// declareCommand is the same behind a wrapper or an expansion, where the
// parser sees a plain command.
func (w *walker) declareCommand(c *invocation) text {
	name, _ := c.argv[0].t.guess()
	d := declaration{exported: name == "export", local: len(w.calls) > 0 && name != "export" && name != "readonly"}
	functions := false
	for _, f := range c.args() {
		w.declareWord(f.t, &d, &functions)
	}
	w.status = succeeds
	return text{}
}
