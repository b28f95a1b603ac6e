package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// builtins are the commands that change the shell itself. What they print is
// returned; those that other rules may ask about are reported too.
func builtins() map[string]func(*walker, *invocation) text {
	return map[string]func(*walker, *invocation) text{
		"cd": (*walker).cd, "pushd": (*walker).cd, "popd": (*walker).popd, "eval": (*walker).eval,
		"source": (*walker).source, ".": (*walker).source, "exec": (*walker).exec,
		"command": (*walker).behind, "builtin": (*walker).behind, "set": (*walker).setArgs,
		"shift": (*walker).shift, "read": (*walker).read, "mapfile": (*walker).mapfile,
		"readarray": (*walker).mapfile, "printf": (*walker).printf, "trap": (*walker).trap,
		"alias": (*walker).alias, "unalias": (*walker).unalias, "unset": (*walker).unset,
		"exit": (*walker).leave, "return": (*walker).leave, "true": (*walker).succeed,
		":": (*walker).succeed, "false": (*walker).fail, "test": (*walker).testCommand,
		"[": (*walker).testCommand, "export": (*walker).declareCommand, "declare": (*walker).declareCommand,
		"typeset": (*walker).declareCommand, "local": (*walker).declareCommand,
		"readonly": (*walker).declareCommand, "getopts": (*walker).getopts, "let": (*walker).let,
		"enable": (*walker).enable, "bind": (*walker).hook, "complete": (*walker).hook, "hash": (*walker).hash,
	}
}

func (w *walker) succeed(c *invocation) text {
	if len(c.rd.list) > 0 || len(c.env) > 0 {
		w.report(c)
	}
	w.status = succeeds
	return text{}
}

func (w *walker) fail(c *invocation) text {
	w.succeed(c)
	w.status = fails
	return text{}
}

func (w *walker) leave(*invocation) text {
	w.st.dead = true
	return text{}
}

// operands are the arguments without options.
func operands(args fields) fields {
	for i, f := range args {
		s, ok := f.t.guess()
		if ok && s == "--" {
			return args[i+1:]
		}
		if !ok || len(s) < 2 || s[0] != '-' {
			return args[i:]
		}
	}
	return nil
}

func (w *walker) cd(c *invocation) text {
	w.report(c)
	dir := lit("~")
	if ops := operands(c.args()); len(ops) > 0 {
		dir = ops[0].t
	}
	old := w.cwd()
	if dir.is("-") {
		dir = opaque()
		if v := w.st.vars.get("OLDPWD"); v != nil {
			dir = v.scalar()
		}
	}
	s, plain := dir.one()
	relative := plain && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~")
	if w.st.own && relative {
		dir = concat(concat(w.cwd(), lit("/")), dir)
	}
	near := w.sheltered(dir)
	w.b.SetCwd(w.st.cwd, "")
	w.st.or = ""
	if far, ok := dir.one(); ok && !near.equal(dir) && strings.Count(far, "..") > 1 {
		w.st.or = w.tables.CleanPath(far, w.st.cwd)
	}
	w.b.Chdir(near.value())
	w.st.cwd = w.b.Cwd()
	w.b.SetCwd(w.st.cwd, w.st.or)
	w.st.own = slices.Contains(dir.from, ownFolder) || w.st.own && relative
	w.put("OLDPWD", &variable{val: old})
	return text{}
}

func (w *walker) popd(c *invocation) text {
	c.argv = fields{c.argv[0], {t: lit("-")}}
	return w.cd(c)
}

// exec replaces the shell, or redirects it.
func (w *walker) exec(c *invocation) text {
	args := c.args()
	if len(args) == 0 {
		w.report(c)
		if len(c.rd.list) > 0 {
			w.redirectShell(c.rd)
		}
		return text{}
	}
	for len(args) > 0 {
		s, ok := args[0].t.guess()
		if !ok || !strings.HasPrefix(s, "-") || len(s) < 2 {
			break
		}
		if s == "-a" && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) > 0 && w.isSelf(args[0].t) {
		return w.runsItself(c)
	}
	out := w.external(c)
	w.handOver(args)
	if w.maybe == 0 {
		w.st.dead = len(w.calls) > 0
	}
	return out
}

// redirectShell keeps what exec opened.
func (w *walker) redirectShell(rd *redirection) {
	if rd.in != nil {
		w.in = rd.in
	}
	for fd, t := range rd.fds {
		w.fds[fd] = t
		if !syntax.ValidName(fd) {
			continue
		}
		number := strconv.Itoa(10 + len(w.fds))
		w.fds[number] = t
		w.assign(fd, lit(number))
	}
	rd.outs = nil
}

// behind is command and builtin: the same without functions.
func (w *walker) behind(c *invocation) text {
	args := c.args()
	for len(args) > 0 {
		s, _ := args[0].t.guess()
		if s == "-v" || s == "-V" {
			return w.which(args[1:])
		}
		if s != "-p" && s != "--" {
			break
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return text{}
	}
	name, ok := args[0].t.guess()
	if _, own := w.x.builtins[name]; !ok || !own {
		return w.external(c)
	}
	each := *c
	each.argv, each.bare = args, true
	return w.run(&each)
}

// which is command -v: the program's path, as likely as not.
func (w *walker) which(args fields) text {
	if len(args) == 0 {
		return text{}
	}
	return concat(args[0].t, lit("\n"))
}

// setArgs is set: positional parameters, and options.
func (w *walker) setArgs(c *invocation) text {
	w.report(c)
	args, given := afterOptions(c.args())
	if len(c.args()) > 0 && args == nil && !given {
		w.settings(c)
		return text{}
	}
	if len(c.args()) == 0 {
		return text{}
	}
	w.st.args, w.st.more = nil, false
	for _, f := range args {
		w.st.args = append(w.st.args, f.t)
	}
	return text{}
}

// afterOptions are the words of set that become positional parameters, and
// whether "--" says that there are none but these. An "o" in an option takes
// the next word, the option's name: set -euo pipefail.
func afterOptions(args fields) (fields, bool) {
	for i := 0; i < len(args); i++ {
		s, ok := args[i].t.guess()
		switch {
		case ok && (s == "--" || s == "-"):
			return args[i+1:], s == "--"
		case !ok || len(s) < 2 || s[0] != '-' && s[0] != '+':
			return args[i:], false
		case strings.Contains(s[1:], "o"):
			i++
		}
	}
	return nil, false
}

// settings looks at options that matter to others.
func (w *walker) settings(c *invocation) {
	args := c.args()
	for i, f := range args[:len(args)-1] {
		if f.t.is("+o") && args[i+1].t.is("history") {
			w.b.Env("write", facts.Text("HISTFILE"), facts.Text(""), c.pos)
		}
	}
}

func (w *walker) shift(c *invocation) text {
	n := 1
	if args := c.args(); len(args) > 0 {
		s, _ := args[0].t.guess()
		n, _ = strconv.Atoi(s)
	}
	w.status = succeeds
	n = min(max(n, 0), len(w.st.args))
	w.st.args = w.st.args[n:]
	return text{}
}

// trap keeps code for the end.
func (w *walker) trap(c *invocation) text {
	args := operands(c.args())
	if len(args) < 2 || args[0].t.is("-") || args[0].t.empty() {
		return text{}
	}
	w.strange = true
	if len(w.traps) < facts.MaxAlts*4 {
		w.traps = append(w.traps, pending{args[0].t, "trap", c.pos})
	} else {
		w.b.Limit("traps", c.pos)
	}
	return text{}
}

func (w *walker) alias(c *invocation) text {
	w.report(c)
	for _, f := range operands(c.args()) {
		var name string
		var values []string
		for _, s := range f.t.all() {
			if n, v, ok := strings.Cut(s, "="); ok && known(n) {
				name = n
				values = with(values, v)
			}
		}
		w.strange = w.strange || name == ""
		if name != "" {
			w.st.aliases.set(name, &text{values, f.t.from})
			w.b.Action("alias", name+"="+readable(values[0]), "alias", c.pos)
		}
	}
	return text{}
}

func (w *walker) unalias(c *invocation) text {
	for _, f := range operands(c.args()) {
		if s, ok := f.t.one(); ok && w.maybe == 0 {
			w.st.aliases.drop(s)
		}
	}
	return text{}
}

func (w *walker) unset(c *invocation) text {
	w.report(c)
	w.status = succeeds
	for _, f := range c.args() {
		s, ok := f.t.one()
		w.perhaps = w.perhaps || !ok || s == "-f" || len(w.st.funcs.get(s)) > 0
		switch {
		case !ok:
		case strings.HasPrefix(s, "-"):
		default:
			if w.st.vars.get(s) == nil {
				w.st.funcs.drop(s)
			}
			if w.tables.EnvClass(s) == "history" {
				w.b.Env("write", facts.Text(s), facts.Text(""), c.pos)
			}
			w.st.vars.drop(s)
		}
	}
	return text{}
}

func (w *walker) let(c *invocation) text {
	for _, f := range c.args() {
		if s, ok := f.t.guess(); ok {
			w.number(s, 0)
		}
	}
	return text{}
}

// enable -f loads a shared object as a builtin.
func (w *walker) enable(c *invocation) text {
	w.report(c)
	return text{}
}

// hook is code that a key, or completion, runs.
func (w *walker) hook(c *invocation) text {
	w.report(c)
	args := c.args()
	for i, f := range args {
		if i+1 < len(args) && (f.t.is("-x") || f.t.is("-C") || f.t.is("-F")) {
			code := args[i+1].t
			w.aside(func() {
				w.evalText(c.argv[0].t.all()[0], code.each(func(s string) (string, bool) {
					if _, after, ok := strings.Cut(s, `":`); ok {
						s = strings.TrimSpace(after)
					}
					return s, true
				}), c.pos, false)
			})
		}
	}
	return text{}
}

// hash -p PATH NAME makes a name mean another program.
func (w *walker) hash(c *invocation) text {
	w.report(c)
	args := c.args()
	if len(args) >= 3 && args[0].t.is("-p") {
		if name, ok := args[2].t.one(); ok {
			w.st.aliases.set(name, &args[1].t)
		}
	}
	return text{}
}
