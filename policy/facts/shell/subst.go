package shell

import (
	"fmt"

	"mvdan.cc/sh/v3/syntax"
)

// pipePrefix begins the names of process substitutions.
const pipePrefix = "/dev/fd/"

// substitute walks $(…) and returns what it prints.
func (w *walker) substitute(c *syntax.CmdSubst) text {
	w.substs++
	if w.substs > maxWords {
		w.b.Limit("command substitutions", w.pos(c))
		return opaque()
	}
	var out text
	inside := w.in
	w.capture++
	w.aside(func() { out = w.stmts(c.Stmts) })
	w.capture--
	w.in = inside
	return out.trimNewlines()
}

// processSubst walks <(…) or >(…) and returns the name of its pipe. What <(…)
// prints is that pipe's content, for whoever reads or runs it.
func (w *walker) processSubst(p *syntax.ProcSubst) text {
	w.substs++
	name := fmt.Sprintf("%s%d", pipePrefix, 63+w.substs)
	var out text
	old := w.in
	if p.Op == syntax.CmdOut {
		w.in = &stream{t: opaque(), kind: "pipe"}
	}
	w.forks++
	w.capture++
	w.aside(func() { out = w.stmts(p.Stmts) })
	w.capture--
	w.forks--
	w.in = old
	if p.Op == syntax.CmdOut {
		return lit(name)
	}
	w.b.Store(lit(name).value(), out.value(), false, w.here)
	return lit(name).tainted(out.from...)
}
