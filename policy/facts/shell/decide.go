package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// decided walks a condition and says whether it holds, where that rests on
// constants of the text alone and every shell says the same. What is guessed of
// the machine decides nothing.
func (w *walker) decided(cond []*syntax.Stmt) (text, tri) {
	before := w.guessed
	w.guessed = false
	out := w.stmts(cond)
	holds := w.status
	if w.guessed || w.strange {
		holds = unsure
	}
	w.guessed = before || w.guessed
	return out, holds
}

// computes reports a command whose output and status follow from its words, in
// every shell.
func (w *walker) computes(argv fields) bool {
	name, _ := argv[0].t.one()
	if w.st.aliases.get(name) != nil || slices.ContainsFunc(argv, func(f field) bool { return f.glob }) {
		return false
	}
	switch name {
	case ":", "true", "false":
		return true
	case "printf":
		return len(argv) > 1 && (argv[1].t.is("%s") || argv[1].t.is(`%s\n`))
	case "test", "[":
		args := argv[1:]
		if name == "[" && len(args) > 0 {
			args = args[:len(args)-1]
		}
		return len(args) == 3 && (args[1].t.is("=") || args[1].t.is("!=")) || len(args) == 2 && (args[0].t.is("-n") || args[0].t.is("-z"))
	}
	return false
}

// everywhere reports a part of a word that every shell expands to the same.
func everywhere(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return len(p.Value) == 0 || p.Value[0] != '~'
	case *syntax.SglQuoted:
		return !p.Dollar
	case *syntax.DblQuoted:
		return !p.Dollar
	case *syntax.CmdSubst:
		return true
	case *syntax.ParamExp:
		return p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && !p.Excl && !p.Length && !p.Width && p.Flags == nil && p.NestedParam == nil && p.Param != nil &&
			syntax.ValidName(p.Param.Value)
	}
	return false
}
