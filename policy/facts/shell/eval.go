package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// eval walks its arguments as code.
func (w *walker) eval(c *invocation) text {
	args := c.args()
	if len(args) > 0 && args[0].t.is("--") {
		args = args[1:]
	}
	var code text
	for i, f := range args {
		if i > 0 {
			code = concat(code, lit(" "))
		}
		code = concat(code, f.t)
	}
	w.dynamic(dynShellEval, readable(code.all()[0]), c.pos, code.from...)
	return w.evalText("eval", code, c.pos, false)
}

// named is a parameter whose name is not known: ${x…}.
var named = lazyregexp.New(`\$\{\w*` + hole + `[\w` + hole + `]*`)

// assigned is a variable or a list that is given a value, and of which the name
// is not known, at the beginning of a text: one that is more than a name is
// code that is not known, which is told.
var assigned = lazyregexp.New(`^([ \t\n]*)\w*` + hole + `[\w` + hole + `]*(\+?=)`)

// dynShellEval is the fact that the tables give to eval.
const dynShellEval = "shell_eval"

// source walks a file that the script wrote, or a process substitution.
func (w *walker) source(c *invocation) text {
	args := operands(c.args())
	if len(args) == 0 {
		return text{}
	}
	if args[0].t.is("/dev/stdin") || args[0].t.is("/dev/fd/0") {
		return w.evalText("source", w.in.rest(), c.pos, false)
	}
	content, ok := w.load(args[0].t)
	if !ok {
		w.strange = true
		out := folded(w.report(c))
		lying, ok := w.b.Lying(args[0].t.value())
		if !ok {
			w.st.sourced = w.st.sourced || w.ofProject(args[0].t)
			return out
		}
		content = folded(lying)
		defer func(args []text, more bool) { w.st.args, w.st.more = args, more }(w.st.args, w.st.more)
	}
	if len(args) > 1 {
		var rest []text
		for _, f := range args[1:] {
			rest = append(rest, f.t)
		}
		w.st.args, w.st.more = rest, false
	}
	return w.evalText("source", content, c.pos, false)
}

// ofProject reports a file of the workspace.
func (w *walker) ofProject(path text) bool {
	path = w.sheltered(path)
	return !path.has(func(s string) bool {
		s = strings.ReplaceAll(s, unset, hole)
		if head, _, open := strings.Cut(s, hole); open {
			s = head + "x"
			if head == "" && !slices.Contains(path.from, ownFolder) && !slices.Contains(path.from, fromSelf) {
				return true
			}
		}
		class := w.tables.PathClass(w.tables.CleanPath(s, w.st.cwd))
		return class != "workspace" && class != "relative"
	})
}

// evalText walks text as code in the current state: every alternative that is
// known, and what is known of the others.
func (w *walker) evalText(via string, code text, pos facts.Pos, verbatim bool) text {
	if alts := code.all(); len(alts) == 1 {
		return w.evalOne(via, alts[0], code.from, pos, verbatim)
	}
	return w.either(len(code.alts), func(i int) text {
		return w.evalOne(via, code.alts[i], code.from, pos, verbatim)
	})
}

// assigns reports that a text begins with an assignment, whose value follows.
func assigns(head string) bool {
	name, _, ok := strings.Cut(head, "=")
	return ok && syntax.ValidName(name)
}

func (w *walker) evalOne(via, code string, from []string, pos facts.Pos, verbatim bool) text {
	o := facts.NestedOpts{Pos: pos, Via: []string{via}, Verbatim: verbatim}
	if slices.Contains(from, "decoded") {
		w.dynamic(facts.DynEncoded, code, pos, from...)
	}
	if strings.Contains(code, hole) || strings.Trim(code, unset+" \t\n") == "" && strings.Contains(code, unset) {
		kind := facts.DynOpaqueCode
		if head, _, ok := strings.Cut(strings.TrimLeft(code, " \t\n"), hole); ok && (strings.ContainsAny(head, " \t\n;") || assigns(head)) {
			kind = facts.DynPartialCode
		}
		w.dynamic(kind, readable(code), pos, from...)
		o.Verbatim, w.strange = false, true
	}
	w.charge(evalCost + len(code)/256)
	whole := known(code)
	code = strings.ReplaceAll(code, unset, "")
	source := strings.ReplaceAll(named().ReplaceAllString(code, "$${"+facts.Hole), "$"+hole, hole)
	source = assigned().ReplaceAllString(source, "${1}"+facts.Hole+"${2}")
	source = strings.ReplaceAll(source, hole, "${"+facts.Hole+"}")
	if strings.Trim(source, " \t\n") == "" || code == hole {
		return text{}
	}
	child, ok := w.b.Inline(source, o)
	if !ok {
		return opaque()
	}
	inert := func() {}
	if via == "eval" && known(code) {
		inert = w.b.Evaluated(code, pos, from...)
	}
	b := w.b
	w.use(child)
	stmts, err := parse([]byte(source))
	switch {
	case err == nil:
	case whole:
		w.dynamic(facts.DynUnparsable, via, facts.Pos{})
	case !strings.Contains(code, hole): // of one with holes that was said
		w.dynamic(facts.DynPartialCode, code, facts.Pos{}, from...)
	}
	if len(from) > 0 {
		defer w.st.vars.set(facts.Hole, w.st.vars.get(facts.Hole))
		w.st.vars.set(facts.Hole, &variable{val: opaque(from...)})
	}
	out := w.stmts(stmts)
	w.use(b)
	inert()
	return out
}

// evalCost is what a text counts that is evaluated, in statements, beside those
// in it: it has to be parsed.
const evalCost = 4

// readable is a text for people: unset variables are nothing, holes an ellipsis.
func readable(s string) string { return strings.NewReplacer(hole, "…", unset, "").Replace(s) }
