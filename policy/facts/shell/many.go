package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// What a loop may do before that is more than any script needs.
const (
	manyFiles  = 50_000 // files that it makes
	manyStarts = 1000   // programs that it leaves running
)

// many notices a loop of known length that makes files, or leaves programs
// running, at every turn.
func (w *walker) many(c *syntax.ForClause) {
	n := w.turns(c.Loop)
	w.grows(c, n)
	if n < manyStarts {
		return
	}
	makes, leaves := false, false
	for _, s := range c.Do {
		syntax.Walk(s, func(node syntax.Node) bool {
			switch x := node.(type) {
			case *syntax.Stmt:
				leaves = leaves || x.Background
				for _, r := range x.Redirs {
					makes = makes || (r.Op == syntax.RdrOut || r.Op == syntax.RdrClob || r.Op == syntax.AppOut) && varies(r.Word)
				}
			case *syntax.CallExpr:
				if len(x.Args) > 1 {
					name := x.Args[0].Lit()
					makes = makes || (name == "touch" || name == "mkdir" || name == "cp" || name == "mktemp" || name == "truncate") && varies(x.Args[len(x.Args)-1])
				}
			}
			return true
		})
	}
	if makes && n >= manyFiles {
		w.shape(facts.StructLoopWrite, strconv.FormatInt(n, 10)+" files are made", w.pos(c))
	}
	if leaves {
		w.shape(facts.StructResourceBurn, strconv.FormatInt(n, 10)+" programs are left running", w.pos(c))
	}
}

// varies reports a word that may be another at each turn.
func varies(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
			found = true
		}
		return !found
	})
	return found
}

// turns is how often a loop goes round, as far as its head says: a range in
// braces, what seq prints, a counter with a bound.
func (w *walker) turns(loop syntax.Loop) int64 {
	switch l := loop.(type) {
	case *syntax.WordIter:
		n := int64(0)
		for _, item := range l.Items {
			n = max(n, ofSeq(item), ofBraces(item))
		}
		return n
	case *syntax.CStyleLoop:
		if b, ok := l.Cond.(*syntax.BinaryArithm); ok && (b.Op == syntax.Lss || b.Op == syntax.Leq) {
			if bound, ok := b.Y.(*syntax.Word); ok {
				n, err := strconv.ParseInt(bound.Lit(), 10, 64)
				if err == nil {
					return n
				}
			}
		}
	}
	return 0
}

// ofSeq is the last number of $(seq A B).
func ofSeq(item *syntax.Word) int64 {
	if len(item.Parts) != 1 {
		return 0
	}
	sub, ok := item.Parts[0].(*syntax.CmdSubst)
	if !ok || len(sub.Stmts) != 1 {
		return 0
	}
	call, ok := sub.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 || call.Args[0].Lit() != "seq" {
		return 0
	}
	n, err := strconv.ParseInt(call.Args[len(call.Args)-1].Lit(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// ofBraces is the last number of {A..B}.
func ofBraces(item *syntax.Word) int64 {
	from, to, ok := strings.Cut(strings.Trim(item.Lit(), "{}"), "..")
	a, err := strconv.ParseInt(from, 10, 64)
	b, err2 := strconv.ParseInt(to, 10, 64)
	if !ok || err != nil || err2 != nil {
		return 0
	}
	return max(b-a, a-b)
}
