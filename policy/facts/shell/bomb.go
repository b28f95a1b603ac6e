package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// Scripts that start themselves.

// runsItself is "$0" as a command: the same text again.
func (w *walker) runsItself(c *invocation) text {
	w.b.Unknown(facts.DynCommand, "$0", c.pos, []string{fromSelf}, nil)
	if w.multiplies(c) {
		w.shape(facts.StructForkBomb, "$0", c.pos)
	}
	return opaque()
}

// multiplies reports that there are more and more processes of the script: it
// starts itself and goes on, twice in one pipeline, or in one and for whatever
// it is given.
func (w *walker) multiplies(c *invocation) bool {
	twice := w.twice()
	switch {
	case w.repeat == 0 && w.apart(c), w.relieved(c):
		return false
	case c.background:
		return true
	case w.forks == 0:
		return false
	}
	return twice || !c.led && w.maybe == 0 && !w.otherwise(c)
}

// otherwise: a script starts itself with a word by which it ends.
func (w *walker) otherwise(c *invocation) bool {
	return w.word(c, func(word string) bool { return w.enders[word] != nil })
}

// apart: a script starts itself with a word by which it does something in which
// it never starts itself.
func (w *walker) apart(c *invocation) bool {
	return w.word(c, func(word string) bool {
		e := w.enders[word]
		return e != nil && e.plain && !slices.ContainsFunc(e.calls, func(name string) bool {
			p, _, known := w.tables.Program(name)
			return name == "" || len(w.st.funcs.get(name)) > 0 || w.st.aliases.get(name) != nil || known && name != "trap" && (p.Interpreter != "" || p.Wrapper || p.Applet || p.CodeArg || len(p.Runs) > 0)
		})
	})
}

// word reports that f holds for a word that a script starts itself with.
func (w *walker) word(c *invocation, f func(string) bool) bool {
	return slices.ContainsFunc(c.args(), func(arg field) bool {
		word, known := arg.t.one()
		return known && word != "" && !w.isSelf(arg.t) && (f(word) || f("X"+word))
	})
}

// relieved: a script ends as soon as it has left another of itself running.
func (w *walker) relieved(c *invocation) bool {
	return c.background && w.repeat == 0 && w.asides == 1 && w.following != nil && len(w.following.Redirs) == 0 && leavesAtEnd([]*syntax.Stmt{w.following}) &&
		w.st.funcs.get("exit") == nil && w.st.aliases.get("exit") == nil
}

// twice reports that another stage of the pipeline does the same.
func (w *walker) twice() bool {
	n := len(w.stages)
	if n == 0 {
		return false
	}
	before := w.stages[n-1]
	w.stages[n-1] = true
	return before
}

// ender is what a script does for a word by which it ends.
type ender struct {
	calls []string
	plain bool // nothing in it names the script, as far as can be seen
}

// maxEnder bounds the programs of what is looked at whenever a script starts
// itself.
const maxEnder = 64

// ownArgument is how a text reads the first word that it was called with.
var ownArgument = lazyregexp.New(`\$(?:1|\{1[}:-])`)

// endersOf gives the words of which a script says that it ends where they are its
// first argument, before it may have changed that: if [ "$1" = WORD ]; then …;
// exit; elif ….
func endersOf(stmts []*syntax.Stmt) map[string]*ender {
	words := map[string]*ender{}
	for _, s := range stmts {
		c, ok := s.Cmd.(*syntax.IfClause)
		for ; ok && c != nil && len(c.Cond) == 1; c = c.Else {
			if leavesAtEnd(c.Then) || neverLeaves(c.Then) {
				wordsAsked(c.Cond[0], enderOf(c.Then), words)
			}
		}
		var f costs
		if syntax.Walk(s, f.see); slices.ContainsFunc(f.calls, func(name string) bool { return changesArguments[name] }) {
			break
		}
	}
	return words
}

func enderOf(stmts []*syntax.Stmt) *ender {
	var b strings.Builder
	e, f := &ender{plain: true}, costs{}
	for _, s := range stmts {
		syntax.Walk(s, f.see)
		if syntax.NewPrinter().Print(&b, s) != nil {
			e.plain = false
		}
	}
	for _, self := range []string{"$0", "${0", "BASH_", "$_", "/proc/", "@", "*", "trap \"", "trap '"} {
		code := strings.NewReplacer("trap ''", "", `trap ""`, "").Replace(b.String())
		e.plain = e.plain && !strings.Contains(code, self)
	}
	slices.Sort(f.calls)
	e.calls = slices.Compact(f.calls)
	e.plain = e.plain && !f.background && len(e.calls) <= maxEnder
	return e
}

// changesArguments are commands after which $1 may be another; "" is one whose
// name does not stand there.
var changesArguments = map[string]bool{"set": true, "shift": true, "eval": true, ".": true, "source": true, "": true}

// wordsAsked adds the words that a condition compares the first argument with.
func wordsAsked(cond *syntax.Stmt, e *ender, words map[string]*ender) {
	var b strings.Builder
	if syntax.NewPrinter().Print(&b, cond) != nil || !ownArgument().MatchString(b.String()) || strings.ContainsAny(b.String(), "!|&;`(<>") {
		return
	}
	for _, word := range strings.Fields(b.String()) {
		word = strings.Trim(word, `"'`)
		if old := words[word]; old == nil || old.plain {
			words[word] = e
		}
	}
}

// leavesAtEnd reports statements whose last is exit.
func leavesAtEnd(stmts []*syntax.Stmt) bool {
	if len(stmts) == 0 {
		return false
	}
	c, ok := stmts[len(stmts)-1].Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) > 0 && c.Args[0].Lit() == "exit" && !stmts[len(stmts)-1].Background
}

// neverLeaves reports statements whose last is a loop that nothing in it leaves.
func neverLeaves(stmts []*syntax.Stmt) bool {
	if len(stmts) == 0 {
		return false
	}
	last := stmts[len(stmts)-1]
	c, ok := last.Cmd.(*syntax.WhileClause)
	if !ok || last.Background || !constantly(c.Cond, !c.Until) {
		return false
	}
	f := costs{}
	for _, s := range c.Do {
		syntax.Walk(s, f.see)
	}
	return !f.leaves && !slices.Contains(f.calls, "") && !slices.Contains(f.calls, "eval") && !slices.Contains(f.calls, ".") && !slices.Contains(f.calls, "source")
}
