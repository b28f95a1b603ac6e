package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// nestedShell walks the code of sh -c with what it inherits: exported
// variables, and the arguments behind the code. The builder has scanned the
// code already, without them; so this happens only where it refers to any.
func (w *walker) nestedShell(c *invocation) {
	name, _ := c.argv[0].t.guess()
	p, _, ok := w.tables.Program(base(name))
	if !ok || p.Interpreter != "bash" || len(p.CodeFlags) == 0 {
		return
	}
	args := c.args()
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
		w.inherited(name, code, rest, c)
		return
	}
}

// inherited walks code in the state that a new shell would have.
func (w *walker) inherited(name string, code text, rest fields, c *invocation) {
	st := newState()
	st.cwd, st.env, st.sealed = w.st.cwd, w.st.env, w.st.sealed
	for n, v := range w.st.vars.all() {
		if v != nil && v.exported && !v.isArray && !v.isTable && syntax.ValidName(n) {
			st.vars.set(n, v)
		}
	}
	for n, t := range c.env {
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
	w.evalText(base(name)+" -c", code, c.pos, false)
	w.calls = calls
	w.enter(old)
}
