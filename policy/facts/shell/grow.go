package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Texts that outgrow what there is room for.

// manyDoublings is how often a text is doubled before there is no room for it.
const manyDoublings = 32

// doubling is how often an assignment doubled a variable, and how long that was.
type doubling struct{ times, size int }

// doubles: x=$x$x takes twice as much memory each time, and so does x+=$x.
func doubles(a *syntax.Assign) bool {
	if a.Name == nil || a.Value == nil {
		return false
	}
	n := 0
	if a.Append {
		n++
	}
	syntax.Walk(a.Value, func(c syntax.Node) bool {
		if p, ok := c.(*syntax.ParamExp); ok && p.Param != nil && p.Param.Value == a.Name.Value && whole(p) {
			n++
		}
		return true
	})
	return n > 1
}

// whole reports an expansion that gives all of its variable.
func whole(p *syntax.ParamExp) bool {
	if p.Length || p.Slice != nil || p.Repl != nil || p.Excl || p.Index != nil {
		return false
	}
	if p.Exp == nil {
		return true
	}
	cuts := []syntax.ParExpOperator{syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix}
	others := []syntax.ParExpOperator{syntax.AlternateUnset, syntax.AlternateUnsetOrNull} // ${x:+word} is word, in which x is counted for itself
	return !slices.Contains(cuts, p.Exp.Op) && !slices.Contains(others, p.Exp.Op)
}

// doubled counts what loops double, round by round. A text that is no longer
// than it was the last time began anew in between.
func (w *walker) doubled(a *syntax.Assign, name string) {
	v := w.st.vars.get(name)
	if w.repeat == 0 || v == nil || !doubles(a) {
		return
	}
	d := w.doublings[a]
	size := 0
	if s, ok := v.scalar().one(); ok {
		if size = len(s); size <= d.size {
			d.times = 0
		}
	}
	d = doubling{d.times + 1, size}
	w.doublings[a] = d
	if d.times == manyDoublings {
		w.shape(facts.StructHugeAlloc, "a text is doubled at every turn of a loop", w.pos(a))
	}
}

// grows looks for the same in the body of a loop whose head says how often it
// goes round.
func (w *walker) grows(c *syntax.ForClause, turns int64) {
	if turns < manyDoublings {
		return
	}
	var found *syntax.Assign
	anew := false
	for _, s := range c.Do {
		syntax.Walk(s, func(n syntax.Node) bool {
			if a, ok := n.(*syntax.Assign); ok && a.Name != nil {
				switch {
				case doubles(a):
					found = a
				case found != nil && a.Name.Value == found.Name.Value:
					anew = true
				}
			}
			return true
		})
	}
	if found == nil || anew {
		return
	}
	for _, s := range c.Do { // set before it is doubled
		syntax.Walk(s, func(n syntax.Node) bool {
			a, ok := n.(*syntax.Assign)
			anew = anew || ok && a != found && a.Name != nil && a.Name.Value == found.Name.Value
			return true
		})
	}
	if !anew {
		w.shape(facts.StructHugeAlloc, "a text is doubled at every turn of a loop", w.pos(found))
	}
}

// passing are programs that give on all that they read, or wait for its end.
var passing = map[string]bool{"cat": true, "tr": true, "base64": true, "xxd": true, "od": true, "hexdump": true, "sort": true, "tac": true, "rev": true, "gzip": true, "md5sum": true, "sha256sum": true, "wc": true, "paste": true, "fold": true}

// unending reports commands whose output, which is kept, never ends.
func unending(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 || stmts[0].Background {
		return false
	}
	switch c := stmts[0].Cmd.(type) {
	case *syntax.BinaryCmd:
		return (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && unending([]*syntax.Stmt{c.X}) && passes(c.Y)
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false
		}
		for _, r := range stmts[0].Redirs {
			if r.Op == syntax.RdrIn && endlessFile(r.Word) && passes(stmts[0]) {
				return true
			}
		}
		switch c.Args[0].Lit() {
		case "yes":
			return len(stmts[0].Redirs) == 0 && !informs(c)
		case "cat", "base64", "xxd", "od", "hexdump", "tac", "sort":
			for _, a := range c.Args[1:] {
				if endlessFile(a) {
					return !informs(c)
				}
			}
		}
	}
	return false
}

// informs: an option may bound what is read, or only tell about the program.
func informs(c *syntax.CallExpr) bool {
	for _, a := range c.Args[1:] {
		switch s := a.Lit(); s {
		case "-N", "-n", "-l", "--help", "--version":
			return true
		default:
			if len(s) > 2 && (s[:2] == "-N" || s[:2] == "-n" || s[:2] == "-l" || len(s) > 5 && (s[:5] == "--rea" || s[:5] == "--len")) {
				return true
			}
		}
	}
	return false
}

func passes(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) > 0 && passing[c.Args[0].Lit()] && !informs(c)
}

func endlessFile(w *syntax.Word) bool {
	switch w.Lit() {
	case "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full":
		return true
	}
	return false
}

// burns reports that the functions from at on call each other, and the last one
// the first, on every way through them, and that nothing ends or waits.
func (w *walker) burns(at int) bool {
	for i := at; i < len(w.calls); i++ {
		next := w.calls[at].fn
		if i+1 < len(w.calls) {
			next = w.calls[i+1].fn
		}
		f, c := w.calls[i].fn, costs{}
		syntax.Walk(f.body, c.see)
		if c.leaves || c.sleeps || c.background || redefines(c.calls) || !invariably([]*syntax.Stmt{f.body}, next.name) || w.exits(c.calls, map[*function]bool{}) {
			return false
		}
	}
	return true
}

// redefines: what a script sources may put another function in the place of the
// one that does.
func redefines(calls []string) bool {
	return slices.Contains(calls, ".") || slices.Contains(calls, "source")
}

// invariably reports statements that call a function whatever its arguments are.
func invariably(stmts []*syntax.Stmt, name string) bool {
	for _, s := range stmts {
		switch c := s.Cmd.(type) {
		case *syntax.CallExpr:
			if len(c.Args) > 0 && c.Args[0].Lit() == name || substituted(c, name) {
				return true
			}
		case *syntax.Block:
			if invariably(c.Stmts, name) {
				return true
			}
		case *syntax.Subshell:
			if invariably(c.Stmts, name) {
				return true
			}
		case *syntax.BinaryCmd:
			if invariably([]*syntax.Stmt{c.X}, name) || (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && invariably([]*syntax.Stmt{c.Y}, name) {
				return true
			}
		}
	}
	return false
}

// substituted reports a command for whose words a function is called.
func substituted(c *syntax.CallExpr, name string) bool {
	found := false
	syntax.Walk(c, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			found = found || invariably(n.Stmts, name)
			return false
		case *syntax.ParamExp: // what stands in it may not be needed
			return n.Exp == nil
		}
		return !found
	})
	return found
}
