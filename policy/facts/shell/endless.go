package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

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

// infinite reports a loop without an end, and what costs in it.
func (w *walker) infinite(loop syntax.Node, cond, body []*syntax.Stmt) {
	if cond != nil {
		until := false
		if c, ok := loop.(*syntax.WhileClause); ok {
			until = c.Until
		}
		if !constantly(cond, !until) {
			return
		}
	}
	f := costs{}
	for _, s := range body {
		syntax.Walk(s, f.see)
	}
	if f.leaves || w.exits(f.calls, map[*function]bool{}) {
		return
	}
	f.background = f.background || w.loopBehind != nil && w.loopBehind.Cmd == loop && !f.sleeps
	w.shape(facts.StructInfiniteLoop, f.String(), w.pos(loop))
	if (f.writes || f.opens && !f.closes) && !f.sleeps {
		w.shape(facts.StructLoopWrite, f.String(), w.pos(loop))
	}
}

// exits reports that one of these commands is a function that may end the
// script, by itself or by another. It notes in seen what it looked at.
func (w *walker) exits(calls []string, seen map[*function]bool) bool {
	for _, name := range calls {
		for _, fn := range w.st.funcs.get(name) {
			if seen[fn] {
				continue
			}
			seen[fn] = true
			f := costs{}
			syntax.Walk(fn.body, f.see)
			if f.ends || w.exits(f.calls, seen) {
				return true
			}
		}
	}
	return false
}

// costs is what the body of an endless loop does.
type costs struct {
	leaves, ends, background, writes, sleeps, grows, opens, closes bool
	calls                                                          []string // commands by their names, as far as those stand there
}

func (f *costs) see(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background && n.Cmd != nil {
			behind := costs{}
			syntax.Walk(n.Cmd, behind.see) // what is left behind is not waited for
			f.background, f.writes = true, f.writes || behind.writes
			return false
		}
		for _, r := range n.Redirs {
			target := r.Word.Lit()
			out := r.Op == syntax.RdrOut || r.Op == syntax.AppOut || r.Op == syntax.RdrClob || r.Op == syntax.RdrAll || r.Op == syntax.AppAll
			f.writes = f.writes || out && !strings.HasPrefix(target, "/dev/")
			f.opened(r)
		}
	case *syntax.FuncDecl:
		return false
	case *syntax.CallExpr:
		if len(n.Args) > 0 {
			name, _ := plain(n.Args[0])
			f.calls = append(f.calls, name)
			switch name {
			case "break", "exit", "return", "exec":
				if name == "exec" && len(n.Args) == 1 {
					break // files alone are opened
				}
				f.leaves, f.ends = true, f.ends || name == "exit"
			case "sleep", "read", "wait", "inotifywait", "usleep", "tail", "nc", "socat":
				f.sleeps = true
			case "mkdir", "touch", "mktemp", "fallocate", "truncate", "dd", "cp":
				f.writes = true
			}
		}
		for _, a := range n.Assigns {
			f.grows = f.grows || doubles(a)
		}
	}
	return true
}

// opened notes descriptors of which each turn takes a new one, and those that
// are closed.
func (f *costs) opened(r *syntax.Redirect) {
	if r.N == nil || !strings.HasPrefix(r.N.Value, "{") {
		return
	}
	if r.Word.Lit() == "-" {
		f.closes = true
	} else {
		f.opens = true
	}
}

// String lists the costs, the worst first.
func (f *costs) String() string {
	var out []string
	if f.grows {
		out = append(out, "memory is taken")
	}
	if f.background {
		out = append(out, "background")
	}
	if f.writes {
		out = append(out, "write")
	}
	if f.sleeps {
		out = append(out, "sleep")
	}
	if out == nil {
		return "busy"
	}
	return strings.Join(out, ",")
}
