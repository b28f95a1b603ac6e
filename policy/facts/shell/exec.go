package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// stmts walks statements in order and returns what they print.
func (w *walker) stmts(list []*syntax.Stmt) text {
	var out text
	before := w.following
	defer func() { w.following = before }()
	for i, s := range list {
		if w.following = nil; i+1 < len(list) {
			w.following = list[i+1]
		}
		t := w.stmt(s)
		if w.capture > 0 && w.heavy(out) {
			out = concat(out, t)
		}
	}
	if w.exhausted {
		return opaque(out.from...)
	}
	return out
}

// stmt walks one statement with its redirections.
func (w *walker) stmt(s *syntax.Stmt) text {
	if !w.step(facts.Pos{}) {
		return opaque()
	}
	if s.Background || s.Coprocess || s.Disown {
		var out text
		w.forks++
		w.aside(func() { out = w.redirected(s, true) })
		w.forks--
		w.status = succeeds
		return out
	}
	out := w.redirected(s, false)
	if s.Negated {
		w.negate()
	}
	return out
}

func (w *walker) negate() {
	switch w.status {
	case succeeds:
		w.status = fails
	case fails:
		w.status = succeeds
	default: // still unsure
	}
}

// redirected applies the redirections around a command.
func (w *walker) redirected(s *syntax.Stmt, background bool) text {
	if len(s.Redirs) == 0 {
		return w.command(s.Cmd, &w.plainRedirection, background)
	}
	in := w.in
	rd := w.redirect(s.Redirs)
	if rd.in != nil {
		w.in = rd.in
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); !ok || len(call.Args) == 0 {
		w.redirFacts(rd, w.pos(s))
	}
	if len(rd.outs) > 0 {
		w.capture++
	}
	out := w.command(s.Cmd, rd, background)
	if len(rd.outs) > 0 {
		w.capture--
	}
	w.in = in
	if s.Cmd == nil && rd.in != nil && len(rd.outs) == 0 {
		out = rd.in.rest() // $(<file)
	}
	w.here = w.pos(s)
	return w.deliver(rd, out)
}

// command walks a command and returns what it prints.
func (w *walker) command(cmd syntax.Command, rd *redirection, background bool) text {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		return w.call(c, rd, background)
	case *syntax.Block:
		return w.stmts(c.Stmts)
	case *syntax.Subshell:
		var out text
		w.aside(func() { out = w.stmts(c.Stmts) })
		return out
	case *syntax.BinaryCmd:
		return w.binary(c)
	case *syntax.FuncDecl:
		w.declare(c)
	case *syntax.DeclClause:
		return w.declClause(c, rd)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return w.stmt(c.Stmt)
		}
	case *syntax.CoprocClause:
		w.forks++
		w.aside(func() { w.stmt(c.Stmt) })
		w.forks--
		name := "COPROC"
		if c.Name != nil {
			name = c.Name.Lit()
		}
		w.assign(name+"_PID", opaque(ownProcess))
	case *syntax.TestDecl:
		w.aside(func() { w.stmt(c.Body) })
	case *syntax.ArithmCmd:
		w.guessed = true
		n, ok := w.arith(c.X)
		w.status = unsure
		if ok {
			w.status = sure(n != 0)
		}
	case *syntax.LetClause:
		w.guessed = true
		for _, x := range c.Exprs {
			w.arith(x)
		}
		w.status = unsure
	case *syntax.TestClause:
		w.guessed = true // of bash and its like only
		w.status = w.test(c.X)
	default:
		return w.compound(cmd)
	}
	return text{}
}

// compound walks what branches and repeats.
func (w *walker) compound(cmd syntax.Command) text {
	switch c := cmd.(type) {
	case *syntax.IfClause:
		return w.within("if", func() text { return w.ifClause(c) })
	case *syntax.CaseClause:
		return w.within("case", func() text { return w.caseClause(c) })
	case *syntax.WhileClause:
		return w.within("while", func() text { return w.whileClause(c) })
	case *syntax.ForClause:
		return w.within("for", func() text { return w.forClause(c) })
	}
	return text{}
}

// within names the place for the facts that f finds.
func (w *walker) within(what string, f func() text) text {
	n := len(w.inside)
	w.inside = append(w.inside[:n:n], what)
	out := f()
	w.inside = w.inside[:n]
	return out
}

// branch walks f in a copy of the state and leaves the copy to the caller.
func (w *walker) branch(f func() text) (*state, text) {
	old := w.st
	w.st = old.clone()
	w.maybe++
	out := f()
	w.maybe--
	st := w.st
	w.enter(old)
	return st, out
}

func (w *walker) binary(c *syntax.BinaryCmd) text {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		return w.pipeline(c)
	}
	if x, ok := c.X.Cmd.(*syntax.BinaryCmd); ok && c.Op == syntax.OrStmt && x.Op == syntax.AndStmt && assignment(x.Y) {
		return w.choice(x, c.Y) // A && v=x || v=y
	}
	out := w.stmt(c.X)
	want, never := succeeds, fails
	if c.Op == syntax.OrStmt {
		want, never = fails, succeeds
	}
	if w.status == want || c.Op == syntax.AndStmt && enters(c.X) {
		return concat(out, w.stmt(c.Y))
	}
	skipped := w.status == never
	says := w.asks(c.X)
	st, more := w.branch(func() text {
		w.where(says, c.Op == syntax.AndStmt)
		return w.stmt(c.Y)
	})
	if skipped {
		w.status = never
		return out
	}
	if st.dead { // what follows is only there where it was not taken
		w.where(says, c.Op != syntax.AndStmt)
	}
	if says.empty == (c.Op == syntax.AndStmt) { // [ -z "$x" ] && x=y, [ -n "$x" ] || x=y
		w.byDefault(says.name, st, w.st)
	}
	w.st.join(w.st, st)
	w.enter(w.st)
	w.status = unsure
	if c.Op == syntax.OrStmt && w.tellsOrFails(c.X, out) {
		return union(out, more)
	}
	return union(out, concat(out, more))
}

// tellsOrFails reports a question to a program such as git, which answers it or
// prints nothing: $(git rev-parse --show-toplevel || pwd).
func (w *walker) tellsOrFails(s *syntax.Stmt, out text) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || !out.known() {
		return false
	}
	name := c.Args[0].Lit()
	p, _, known := w.tables.Program(name)
	return known && p.Own && w.st.funcs.get(name) == nil && w.st.aliases.get(name) == nil
}

// assignment: variables are set, which does not fail.
func assignment(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) == 0 && len(c.Assigns) > 0
}

// enters: a folder is entered, which is taken to be there: what follows prints
// where that is.
func enters(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return false
	}
	name, _ := plain(c.Args[0])
	return name == "cd" || name == "pushd"
}

// choice is "A && B || C" where B does not fail: if A, B, else C.
func (w *walker) choice(c *syntax.BinaryCmd, other *syntax.Stmt) text {
	out := w.stmt(c.X)
	switch w.status {
	case succeeds:
		return concat(out, w.stmt(c.Y))
	case fails:
		return concat(out, w.stmt(other))
	case unsure: // both
	}
	then, a := w.branch(func() text { return w.stmt(c.Y) })
	els, b := w.branch(func() text { return w.stmt(other) })
	w.st.join(then, els)
	w.enter(w.st)
	w.status = unsure
	return concat(out, union(a, b))
}

func (w *walker) ifClause(c *syntax.IfClause) text {
	if len(c.Cond) == 0 { // else
		return w.stmts(c.Then)
	}
	out, holds := w.decided(c.Cond)
	says := emptiness{}
	if len(c.Cond) == 1 {
		says = w.asks(c.Cond[0])
	}
	then, a := w.branch(func() text {
		w.where(says, true)
		return w.stmts(c.Then)
	})
	var other *state
	var b text
	switch {
	case c.Else != nil:
		other, b = w.branch(func() text {
			w.where(says, false)
			return w.ifClause(c.Else)
		})
	case says.name != "":
		other, _ = w.branch(func() text {
			w.where(says, false)
			return text{}
		})
	default:
		other = w.st
	}
	switch { // what is not taken was walked for its facts; it does not change what follows
	case holds == succeeds && !then.dead:
		other, b = then, a
	case holds == fails && !other.dead:
		then, a = other, b
	}
	if says.empty {
		w.byDefault(says.name, then, other)
	} else {
		w.byDefault(says.name, other, then)
	}
	w.st.join(then, other)
	w.enter(w.st)
	w.status = unsure
	return concat(out, union(a, b))
}

func (w *walker) caseClause(c *syntax.CaseClause) text {
	subject := w.single(c.Word)
	s, decided := subject.one()
	var after []*state
	var out text
	exhaustive, ran := false, false
	for _, item := range c.Items {
		hit := unsure
		for _, word := range item.Patterns {
			p, ok := w.pattern(word).one()
			exhaustive = exhaustive || ok && p == "*"
			switch {
			case decided && ok && match(p, s, false):
				hit = succeeds
			case hit == unsure && decided && ok:
				hit = fails
			}
		}
		st, o := w.branch(func() text { return w.stmts(item.Stmts) })
		if decided && (hit == fails || ran) && item.Op == syntax.Break {
			continue // walked for its facts; it does not change what follows
		}
		ran = ran || hit == succeeds
		if after = append(after, st); len(after) == 1 {
			out = o
		} else {
			out = union(out, o)
		}
	}
	if !exhaustive && !ran {
		after = append(after, w.st)
		out = union(out, text{})
	}
	w.st.join(after...)
	w.enter(w.st)
	w.status = unsure
	return out
}

// peek names the programs of a stage before it is walked, where that needs no
// evaluation: wrappers and what they wrap.
func (w *walker) peek(s *syntax.Stmt) []string {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	var words []string
	for _, word := range call.Args {
		words = append(words, w.constant(word))
		if len(words) > 12 {
			break
		}
	}
	return wrapped(w.tables, words)
}

// constant is a word that expands without running anything, or "".
func (w *walker) constant(word *syntax.Word) string {
	if s, ok := plain(word); ok {
		return s
	}
	simple := true
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
			simple = false
		case *syntax.ParamExp:
			simple = simple && n.Exp == nil && n.Index == nil && n.Slice == nil && n.Repl == nil
		}
		return simple
	})
	if !simple {
		return ""
	}
	s, _ := w.single(word).guess()
	return clean(s)
}
