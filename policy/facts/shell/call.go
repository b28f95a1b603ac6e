package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// maxCalls bounds functions that call functions.
const maxCalls = 24

// frame is one running function.
type frame struct {
	fn     *function
	forks  int // w.forks at its start
	maybe  int
	locals map[string]*variable // what local variables hid
}

// invocation is one command about to run: its words, and what surrounds them.
type invocation struct {
	argv       fields
	env        map[string]text
	rd         *redirection
	background bool
	pos        facts.Pos
	bare       bool           // behind command or builtin: no functions, no aliases
	led        bool           // behind a variable that the script never sets
	out        text           // what it prints, for its redirections
	words      []*syntax.Word // as written
}

// word is how the first of these words, or what is left of them, is written.
func (c *invocation) word(argv fields) string {
	if i := len(c.words) - len(argv); i >= 0 && i < len(c.words) {
		return written(c.words[i])
	}
	if len(c.words) > 0 {
		return written(c.words[0])
	}
	return ""
}

// written is a word of the source as it stands.
func written(word *syntax.Word) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, word); err != nil {
		return ""
	}
	return clean(b.String())
}

// args are the words after the name.
func (c *invocation) args() fields { return c.argv[1:] }

// call walks a simple command.
func (w *walker) call(c *syntax.CallExpr, rd *redirection, background bool) text {
	if len(c.Args) == 0 {
		w.status = succeeds
		before := w.substs
		for _, a := range c.Assigns {
			w.assignment(a, declaration{})
		}
		if w.substs != before {
			w.status = unsure
		}
		return text{}
	}
	var out text
	if name, ok := plain(c.Args[0]); ok {
		if alias := w.st.aliases.get(name); alias != nil && !w.aliasing[name] {
			out = w.aliased(name, *alias, c, rd, background)
		}
	}
	var env map[string]text
	for _, a := range c.Assigns {
		if a.Name != nil && a.Value != nil {
			if env == nil {
				env = map[string]text{}
			}
			env[a.Name.Value] = w.single(a.Value)
		} else {
			w.assignment(a, declaration{})
		}
	}
	ways := w.fields(c.Args)
	if w.exhausted { // its words were not expanded
		w.step(w.pos(c))
		return opaque()
	}
	inv := invocation{env: env, rd: rd, background: background, pos: w.pos(c), words: c.Args}
	return concat(out, w.eachWay(ways, inv))
}

// eachWay runs a command in each way that its words may expand to.
func (w *walker) eachWay(ways []fields, inv invocation) text {
	if len(ways) == 1 {
		inv.argv = ways[0]
		return w.run(&inv)
	}
	return w.either(len(ways), func(i int) text {
		each := inv
		each.argv = ways[i]
		return w.run(&each)
	})
}

// either walks n ways of which one is taken.
func (w *walker) either(n int, f func(int) text) text {
	before := w.st
	states := make([]*state, n)
	var out text
	for i := range n {
		w.enter(before.clone())
		t := f(i)
		states[i] = w.st
		if i == 0 {
			out = t
		} else {
			out = union(out, t)
		}
	}
	before.join(states...)
	w.enter(before)
	return out
}

// aliased walks the text that an alias puts in place of the first word.
func (w *walker) aliased(name string, alias text, c *syntax.CallExpr, rd *redirection, background bool) text {
	w.aliasing[name] = true
	defer delete(w.aliasing, name)
	var out text
	for _, code := range alias.all() {
		stmts, err := parse([]byte(strings.ReplaceAll(code, unset, "")))
		if err != nil || len(stmts) == 0 || !known(code) {
			w.dynamic(facts.DynOpaqueCode, "alias "+name, w.pos(c), alias.from...)
			continue
		}
		for _, s := range stmts[:len(stmts)-1] {
			w.stmt(s)
		}
		last := stmts[len(stmts)-1]
		call, ok := last.Cmd.(*syntax.CallExpr)
		if !ok {
			out = w.stmt(last)
			continue
		}
		inv := invocation{rd: rd, background: background, pos: w.pos(c)}
		words := append(slices.Clone(call.Args), c.Args[1:]...)
		out = w.eachWay(w.fields(words), inv)
	}
	return out
}

// run runs one command, whose words are known as far as they can be.
func (w *walker) run(c *invocation) text {
	w.status = unsure
	if c.argv = w.leading(c); len(c.argv) == 0 || w.b.Full() {
		return text{}
	}
	w.guessed = w.guessed || !w.computes(c.argv)
	names := c.argv[0].t.all()
	if len(names) > 1 {
		var ways []fields
		for _, n := range names {
			way := slices.Clone(c.argv)
			way[0].t = text{[]string{n}, c.argv[0].t.from}
			ways = append(ways, way)
		}
		return w.eachWay(ways, *c)
	}
	w.last = c.argv[len(c.argv)-1].t
	if c.argv[0].glob {
		return w.globCommand(c, names[0])
	}
	name, ok := c.argv[0].t.guess()
	if !ok || name == "" && names[0] != "" {
		return w.unknownCommand(c)
	}
	if name != names[0] {
		c.argv = slices.Clone(c.argv)
		c.argv[0].t = text{[]string{name}, c.argv[0].t.from}
	}
	if fs := w.st.funcs.get(name); len(fs) > 0 && !c.bare {
		return w.callFunctions(fs, c)
	}
	if b, ok := w.x.builtins[name]; ok {
		return w.withEnv(c, b)
	}
	if name != names[0] {
		if fs := w.dispatched(text{names[:1:1], c.argv[0].t.from}); len(fs) > 0 {
			return w.callFunctions(fs, c)
		}
	}
	return w.external(c)
}

// withEnv runs a builtin with the assignments that stand before it.
func (w *walker) withEnv(c *invocation, b func(*walker, *invocation) text) text {
	if len(c.env) == 0 {
		return b(w, c)
	}
	old := map[string]*variable{}
	for name, t := range c.env {
		old[name] = w.st.vars.get(name)
		w.assign(name, t)
	}
	out := b(w, c)
	for name, v := range old {
		if v == nil {
			w.st.vars.drop(name)
		} else {
			w.put(name, v)
		}
	}
	return out
}

// leading drops words from the front that expand to nothing, most likely: the
// $SUDO of a script that never sets it.
func (w *walker) leading(c *invocation) fields {
	argv := c.argv
	for len(argv) > 0 && (argv[0].t.is(unset) && (!argv[0].quoted || argv[0].list) || argv[0].t.empty() && len(argv) > 1 && !argv[0].quoted) {
		if argv[0].t.is(unset) {
			rest := make([]facts.Value, 0, len(argv)-1)
			for _, f := range argv[1:] {
				rest = append(rest, f.t.value())
			}
			w.b.Unknown(facts.DynCommand, c.word(argv), c.pos, argv[0].t.from, rest)
			c.led = true
		}
		argv = argv[1:]
	}
	return argv
}

// unknownCommand is a command whose name is not known.
func (w *walker) unknownCommand(c *invocation) text {
	from := c.argv[0].t.from
	switch {
	case slices.Contains(from, "param") && len(w.calls) > 0: // a function that nothing calls
		return opaque(from...)
	case w.isSelf(c.argv[0].t):
		return w.runsItself(c)
	}
	if fs := w.dispatched(c.argv[0].t); len(fs) > 0 {
		rest := make([]facts.Value, 0, len(c.argv)-1)
		for _, f := range c.args() {
			rest = append(rest, f.t.value())
		}
		w.b.Unknown(facts.DynCommand, c.word(c.argv), c.pos, []string{facts.FromFunction}, rest)
		return w.callFunctions(fs, c)
	}
	return w.external(c)
}

// callFunctions calls a function, or each that the name may stand for.
func (w *walker) callFunctions(fs []*function, c *invocation) text {
	for name, t := range c.env {
		w.assign(name, t)
	}
	args := make([]text, 0, len(c.argv)-1)
	var more text
	for _, f := range c.args() {
		if f.t.is(unset) && f.quoted && slices.Contains(f.t.from, "argv") || f.t.is(hole) && slices.Contains(f.t.from, "param") {
			more = f.t // the caller's own unknown arguments
			break
		}
		args = append(args, f.t)
	}
	if len(fs) == 1 {
		return w.callFunction(fs[0], args, more, c.background)
	}
	return w.either(len(fs), func(i int) text { return w.callFunction(fs[i], args, more, c.background) })
}

// callFunction walks a function's body with its arguments.
func (w *walker) callFunction(f *function, args []text, more text, background bool) text {
	f.called = true
	for i := range w.calls {
		if w.calls[i].fn == f {
			w.recursion(i, background)
			return opaque()
		}
	}
	if len(w.calls) >= maxCalls {
		w.b.Limit("depth of function calls", facts.Pos{})
		return opaque()
	}
	saved := *w.st
	b := w.b
	w.st.args, w.st.more, w.st.rest = args, more.alts != nil, more
	w.calls = append(w.calls, frame{fn: f, forks: w.forks, maybe: w.maybe, locals: map[string]*variable{}})
	w.use(f.b)
	w.repeat++
	out := w.within("function:"+f.name, func() text { return w.stmt(f.body) })
	w.repeat--
	top := w.calls[len(w.calls)-1]
	w.calls = w.calls[:len(w.calls)-1]
	for name, v := range top.locals {
		if v == nil {
			w.st.vars.drop(name)
		} else {
			w.st.vars.set(name, v)
		}
	}
	w.st.args, w.st.more, w.st.rest, w.st.dead = saved.args, saved.more, saved.rest, saved.dead
	w.use(b)
	w.status = unsure
	return out
}

// recursion looks at a function that calls itself. Doing so in the background,
// in two stages of one pipeline, or in a pipeline without a condition, is a
// fork bomb.
func (w *walker) recursion(at int, background bool) {
	fr := &w.calls[at]
	twice := w.twice()
	forked := w.forks > fr.forks
	if background || forked && (twice || w.maybe == fr.maybe) {
		key := "bomb " + fr.fn.name
		if !w.reported[key] {
			w.reported[key] = true
			w.shape(facts.StructForkBomb, fr.fn.name, w.pos(fr.fn.body))
		}
	}
}

func (w *walker) declare(c *syntax.FuncDecl) {
	w.status = succeeds
	names := c.Names
	if c.Name != nil {
		names = append(names, c.Name)
	}
	for _, n := range names {
		f := &function{name: clean(n.Value), body: c.Body, b: w.b}
		w.st.funcs.set(f.name, []*function{f})
		w.perhaps = w.perhaps || w.st.funcs.up != nil || w.repeat > 0
		w.declared = append(w.declared, f)
	}
}
