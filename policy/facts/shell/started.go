package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// startedOnly are the variables that a script gives no value but $!, wherever
// it does: what one function starts and another ends.
func startedOnly(stmts []*syntax.Stmt) map[string]bool {
	var out map[string]bool
	other := map[string]bool{}
	see := func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			switch {
			case n.Name == nil || n.Naked:
			case n.Value != nil && !n.Append && lastStarted(n.Value):
				if out == nil {
					out = map[string]bool{}
				}
				out[n.Name.Value] = true
			case n.Value != nil && len(n.Value.Parts) > 0 || n.Array != nil || n.Append:
				other[n.Name.Value] = true
			}
		case *syntax.WordIter:
			other[n.Name.Value] = true
		case *syntax.CallExpr: // read, eval, printf -v: any word may be a name
			for _, word := range n.Args {
				if s, _, _ := strings.Cut(word.Lit(), "="); s != "" {
					other[s] = true
				}
			}
		}
		return true
	}
	for _, s := range stmts {
		syntax.Walk(s, see)
	}
	for name := range other {
		delete(out, name)
	}
	return out
}

// lastStarted reports $! and nothing else.
func lastStarted(word *syntax.Word) bool {
	if len(word.Parts) != 1 {
		return false
	}
	part := word.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	return ok && p.Param != nil && p.Param.Value == "!" && p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Excl && !p.Length
}
