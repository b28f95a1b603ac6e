package shell

import (
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// nestedShell walks the code of sh -c with what it inherits: exported
// variables, and the arguments behind the code. The builder has scanned the
// code already, without them; so this happens only where it refers to any.
func (w *walker) nestedShell(c *invocation) {
	argv, env := w.unwrapped(c.argv, c.env)
	if len(argv) == 0 {
		return
	}
	name, _ := argv[0].t.guess()
	p, _, ok := w.tables.Program(base(name))
	if !ok || p.Interpreter != "bash" || len(p.CodeFlags) == 0 {
		return
	}
	args := argv[1:]
	for i, f := range args {
		s, ok := f.t.guess()
		if !ok || len(s) < 2 || s[0] != '-' {
			return
		}
		if strings.HasPrefix(s, "--") || !strings.Contains(s, "c") || i+1 == len(args) {
			continue
		}
		code, rest := args[i+1].t, args[i+2:]
		if !code.has(func(s string) bool { return strings.Contains(s, "$") }) {
			return
		}
		w.inherited(name, code, rest, env, c.pos)
		return
	}
}

// unwrapped is what wrappers (env, timeout) start, with the variables that they
// set.
func (w *walker) unwrapped(argv fields, env map[string]text) (fields, map[string]text) {
	for range 8 {
		if len(argv) == 0 {
			break
		}
		name, _ := argv[0].t.guess()
		p, _, ok := w.tables.Program(base(name))
		if !ok || !p.Wrapper || p.Stdin {
			break
		}
		words := make([]string, len(argv)-1)
		for i, f := range argv[1:] {
			words[i], _ = f.t.guess()
		}
		rest := skipOptions(p, words)
		skipped := argv[1 : len(argv)-len(rest)]
		for i, f := range skipped {
			if n, value, ok := strings.Cut(words[i], "="); ok && p.Assign && syntax.ValidName(n) {
				env = maps.Clone(env)
				if env == nil {
					env = map[string]text{}
				}
				env[n] = text{[]string{value}, f.t.from}
				if !f.t.known() {
					env[n] = opaque(f.t.from...)
				}
			}
		}
		argv = argv[len(argv)-len(rest):]
	}
	return argv, env
}

// inherited walks code in the state that a new shell would have.
func (w *walker) inherited(name string, code text, rest fields, env map[string]text, pos facts.Pos) {
	st := newState()
	st.cwd, st.env, st.sealed = w.st.cwd, w.st.env, w.st.sealed
	for n, v := range w.st.vars.all() {
		if v != nil && v.exported && !v.isArray && !v.isTable && syntax.ValidName(n) {
			st.vars.set(n, v)
		}
	}
	for n, t := range env {
		st.vars.set(n, &variable{val: t, exported: true})
	}
	if len(rest) > 0 {
		st.arg0, st.more = rest[0].t, false
		for _, f := range rest[1:] {
			st.args = append(st.args, f.t)
		}
	}
	if len(st.vars.own) == 0 && len(rest) == 0 {
		return
	}
	old, calls := w.st, w.calls
	w.calls = nil
	w.enter(st)
	w.evalText(base(name)+" -c", code, pos, false)
	w.calls = calls
	w.enter(old)
}
