package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// emptiness is a condition that says whether a variable is empty.
type emptiness struct {
	name  string // "" is another condition
	empty bool   // it holds where the variable is
	unset bool   // where it is not set, rather: an empty one is
}

// tests are the ways in which scripts ask that: [ -z "$x" ], test "x$x" != x,
// [[ -n $x ]], [ "$x" = "" ], test "${x+set}" = set.
var (
	testsSign = lazyregexp.New(`^(?:\[\[?|test) (-[zn]) "?\$\{?([A-Za-z_][A-Za-z0-9_]*)(?::?-)?\}?"?(?: \]\]?)?$`)
	testsWord = lazyregexp.New(`^(?:\[\[?|test) (?:"?([xX_.])"?)?"?\$\{?([A-Za-z_][A-Za-z0-9_]*)(?::?-)?\}?"? (=|==|!=) "?([xX_.]?)"?(?: \]\]?)?$`)
	testsSet  = lazyregexp.New(`^(?:\[\[?|test) (?:(-[zn]) )?"?\$\{([A-Za-z_][A-Za-z0-9_]*)\+(\w+)\}"?(?: (=|==|!=) "?(\w+)"?)?(?: \]\]?)?$|^\$\{([A-Za-z_][A-Za-z0-9_]*)\+false\} :$`)
	testsSelf = lazyregexp.New(`^(?:\[\[?|test) "\$\{?([A-Za-z_][A-Za-z0-9_]*)(?::?-)?\}?"(?: \]\]?)?$`)
)

// asks reads a condition.
func (w *walker) asks(s *syntax.Stmt) emptiness {
	if e, ok := w.asked[s]; ok {
		return e
	}
	e := emptiness{}
	switch s.Cmd.(type) {
	case *syntax.CallExpr, *syntax.TestClause:
		if len(s.Redirs) == 0 && s.End().Offset()-s.Pos().Offset() < 120 {
			e = readEmptiness(s.Cmd)
		}
	}
	e.empty = e.empty != s.Negated
	w.asked[s] = e
	return e
}

func readEmptiness(c syntax.Command) emptiness {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, c); err != nil {
		return emptiness{}
	}
	cond := b.String()
	if m := testsSign().FindStringSubmatch(cond); m != nil {
		return emptiness{name: m[2], empty: m[1] == "-z"}
	}
	if m := testsWord().FindStringSubmatch(cond); m != nil && m[1] == m[4] {
		return emptiness{name: m[2], empty: m[3] != "!="}
	}
	if m := testsSelf().FindStringSubmatch(cond); m != nil {
		return emptiness{name: m[1]}
	}
	switch m := testsSet().FindStringSubmatch(cond); {
	case m == nil:
	case m[6] != "": // ${x+false} :
		return emptiness{name: m[6], empty: true, unset: true}
	case m[1] != "" && m[4] == "":
		return emptiness{name: m[2], empty: m[1] == "-z", unset: true}
	case m[1] == "" && m[4] != "" && m[3] == m[5]:
		return emptiness{name: m[2], empty: m[4] == "!=", unset: true}
	}
	return emptiness{}
}

// where takes over what a condition says that holds, or does not: a variable
// that is not empty has a value, if not one that the script gave it.
func (w *walker) where(e emptiness, holds bool) {
	if e.name == "" || e.empty == holds {
		return
	}
	v := w.st.vars.get(e.name)
	if v != nil && (v.isArray || v.isTable || v.ref) {
		return
	}
	n := variable{}
	var t text
	if v != nil {
		n, t = *v, v.val
	} else if t, _ = w.lookup(e.name, facts.Pos{}); !t.is(unset) {
		return // of the shell's own, or known
	}
	var out []string
	for _, s := range t.all() {
		switch {
		case s == "" && !e.unset:
		case s == unset:
			out = with(out, hole)
		default:
			out = with(out, s)
		}
	}
	if len(out) == 0 {
		if len(t.from) == 0 {
			return // never, as far as this can tell
		}
		out = []string{hole} // somebody gave it one
	}
	n.val = text{out, t.from}
	w.put(e.name, &n)
}

// byDefault takes what a script gives a variable that is empty for its value,
// where else it has what whoever starts the script gave it: as ${x:-value}
// does, of which the value is judged.
func (w *walker) byDefault(name string, empty, filled *state) {
	if name == "" || empty == filled || empty.dead || filled.dead {
		return
	}
	v, given := empty.vars.get(name), filled.vars.get(name)
	if v == nil || v.isArray || v.isTable || v.ref || !v.val.known() || v.val.has(func(s string) bool { return s == "" }) {
		return
	}
	t := filled.inherited(name)
	if given != nil {
		t = given.val
	}
	if given != nil && (given.isArray || given.isTable || given.ref) || !t.is(unset) && !t.is(hole) || !handed(t.from) {
		return
	}
	n := *v
	n.exported = n.exported || given != nil && given.exported
	filled.vars.set(name, &n)
}

// handed reports that a text is what whoever starts the script hands to it.
func handed(from []string) bool {
	for _, f := range from {
		if f != "argv" && f != facts.FromSourced && !strings.HasPrefix(f, "env:") {
			return false
		}
	}
	return len(from) > 0
}
