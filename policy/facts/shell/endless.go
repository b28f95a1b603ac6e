package shell

import "mvdan.cc/sh/v3/syntax"

// constantly reports a condition that never changes.
func constantly(cond []*syntax.Stmt, truth bool) bool {
	if len(cond) != 1 || len(cond[0].Redirs) > 0 {
		return false
	}
	want := truth != cond[0].Negated
	switch c := cond[0].Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false
		}
		name, _ := plain(c.Args[0])
		arg := ""
		if len(c.Args) > 1 {
			arg, _ = plain(c.Args[1])
		}
		switch {
		case name == "true" || name == ":" || name == "[" && arg == "1" || name == "test" && arg == "1":
			return want
		case name == "false":
			return !want
		}
	case *syntax.ArithmCmd:
		if word, ok := c.X.(*syntax.Word); ok {
			n, isNumber := parseInt(word.Lit())
			return isNumber && (n != 0) == want
		}
	}
	return false
}

// costs is what some statements do, as far as it stands there.
type costs struct {
	leaves, background bool
	calls              []string // commands by their names
}

func (f *costs) see(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background && n.Cmd != nil {
			f.background = true
			return false
		}
	case *syntax.FuncDecl:
		return false
	case *syntax.CallExpr:
		if len(n.Args) > 0 {
			name, _ := plain(n.Args[0])
			f.calls = append(f.calls, name)
			switch name {
			case "break", "exit", "return":
				f.leaves = true
			case "exec":
				f.leaves = f.leaves || len(n.Args) > 1 // else files alone are opened
			}
		}
	}
	return true
}
