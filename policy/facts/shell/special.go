package shell

import (
	"slices"
	"strconv"
	"strings"
)

// specials are filters that need more than their words: streams, files, or the
// shell's state.
func specials() map[string]func(*walker, *invocation) (text, bool) {
	t := map[string]func(*walker, *invocation) (text, bool){
		"echo": (*walker).echo, "printf": (*walker).format, "tee": (*walker).tee, "cp": (*walker).copyFile, "mv": (*walker).copyFile, "ln": (*walker).copyFile,
		"install": (*walker).copyFile, "dd": (*walker).dd, "curl": (*walker).download,
		"wget": (*walker).download, "pwd": (*walker).pwd, "which": (*walker).whichProgram,
		"type": (*walker).whichProgram, "mktemp": (*walker).mktemp, "printenv": (*walker).printenv,
		"busybox": (*walker).applet, "toybox": (*walker).applet, "xargs": (*walker).xargs,
		"git": (*walker).git,
	}
	for _, name := range []string{"env", "sudo", "nohup", "nice", "time", "stdbuf", "setsid", "command", "builtin", "doas"} {
		t[name] = (*walker).wrapped
	}
	return t
}

// echo joins its words. Its options are those of bash.
func (w *walker) echo(c *invocation) (text, bool) {
	args, newline, escapes := c.args(), true, false
	for len(args) > 0 {
		s, ok := args[0].t.one()
		if !ok || len(s) < 2 || s[0] != '-' || strings.Trim(s[1:], "neE") != "" {
			break
		}
		newline = newline && !strings.Contains(s, "n")
		escapes = escapes || strings.Contains(s, "e")
		args = args[1:]
	}
	var t text
	single := true
	words := make([]string, len(args))
	for i, f := range args {
		words[i] = f.t.all()[0]
		single = single && len(f.t.all()) == 1
		t.from = origins(t.from, f.t.from)
	}
	if single {
		t.alts = []string{bound(strings.Join(words, " "))}
	} else {
		for i, f := range args {
			if i > 0 {
				t = concat(t, lit(" "))
			}
			t = concat(t, f.t)
		}
	}
	if escapes {
		t = t.each(func(s string) (string, bool) { return ansiC(s, true), true })
	}
	if newline {
		t = concat(t, lit("\n"))
	}
	return t, true
}

func (w *walker) pwd(*invocation) (text, bool) { return concat(w.cwd(), lit("\n")), true }

// git prints where the project is that the script belongs to: the workspace, or
// one of its folders.
func (w *walker) git(c *invocation) (text, bool) {
	args := c.args()
	if len(args) != 2 || !args[0].t.is("rev-parse") || !args[1].t.is("--show-toplevel") || w.placed || len(c.env) > 0 || w.tables.PathClass(w.st.cwd) != "workspace" {
		return text{}, false
	}
	return lit(w.tables.Workspace + "\n").tainted(ownFolder), true
}

// mktemp prints a name that is as good as any other, so that what is written
// there is found again.
func (w *walker) mktemp(c *invocation) (text, bool) {
	dir, name := "/tmp", "tmp.XXXXXXXXXX"
	args := c.args()
	for i := 0; i < len(args); i++ {
		s, ok := args[i].t.guess()
		if strings.HasPrefix(args[i].t.all()[0], unset+"/") {
			s = dir + s // $TMPDIR
		}
		switch {
		case !ok:
			return text{}, false
		case s == "-p" && i+1 < len(args):
			i++
			dir, ok = args[i].t.guess()
			if !ok {
				return text{}, false
			}
		case !strings.HasPrefix(s, "-"):
			name = s
			if strings.Contains(s, "/") {
				dir = ""
			}
		}
	}
	w.files++
	n := strings.LastIndex(name, "X") + 1
	trimmed := strings.TrimRight(name[:n], "X")
	name = trimmed + "caisson" + strconv.Itoa(w.files) + name[n:]
	if dir != "" {
		name = strings.TrimSuffix(dir, "/") + "/" + name
	}
	if slices.ContainsFunc(args, func(f field) bool { return f.t.is("-d") || f.t.is("--directory") }) {
		w.temps = append(w.temps, name)
	}
	return lit(name + "\n"), true
}

// ownTemp is the origin of a PATH of which all folders that everybody writes to
// are such that the script itself made, under names that nobody knows.
const ownTemp = "own_temp"

// searched says so of the value of a variable, where it is one.
func (w *walker) searched(name string, t text) text {
	if len(w.temps) == 0 || w.tables.EnvClass(name) != "search" {
		return t
	}
	for _, s := range t.all() {
		for _, dir := range strings.Split(s, ":") {
			class := w.tables.PathClass(w.tables.CleanPath(dir, ""))
			own := slices.ContainsFunc(w.temps, func(d string) bool { return dir == d || strings.HasPrefix(dir, d+"/") && !strings.Contains(dir, "..") })
			if (class == "tmp" || class == "shm") && !own {
				return t
			}
		}
	}
	return t.tainted(ownTemp)
}

// whichProgram prints the path of a program: its name is near enough.
func (w *walker) whichProgram(c *invocation) (text, bool) {
	ops := operands(c.args())
	if len(ops) == 0 {
		return text{}, false
	}
	return concat(ops[0].t, lit("\n")), true
}

func (w *walker) printenv(c *invocation) (text, bool) {
	if ops := operands(c.args()); len(ops) == 1 {
		if name, ok := ops[0].t.one(); ok && name != "" {
			t, _ := w.lookup(name, c.pos)
			return concat(t, lit("\n")), true
		}
	}
	return opaque("env"), true
}

func (w *walker) applet(c *invocation) (text, bool) {
	if len(c.args()) == 0 {
		return text{}, false
	}
	each := *c
	each.argv = c.args()
	return w.filter(&each)
}

// wrapped is what the command behind a wrapper prints.
func (w *walker) wrapped(c *invocation) (text, bool) {
	name, _ := c.argv[0].t.guess()
	p, _, _ := w.tables.Program(name)
	words := make([]string, len(c.args()))
	for i, f := range c.args() {
		words[i], _ = f.t.guess()
	}
	rest := skipOptions(p, words)
	if len(rest) == 0 || len(rest) == len(c.argv) {
		return text{}, false
	}
	each := *c
	each.argv = c.args()[len(words)-len(rest):]
	return w.filter(&each)
}

// xargs prints what its command prints for the words that it reads.
func (w *walker) xargs(c *invocation) (text, bool) {
	in := w.in.rest()
	s, ok := in.one()
	if !ok || w.in.kind == "" {
		return opaque(in.from...), true
	}
	rest := c.args()
	mark := ""
	for len(rest) > 0 {
		f, _ := rest[0].t.guess()
		if len(f) < 2 || f[0] != '-' {
			break
		}
		takes := len(f) == 2 && strings.Contains("InLPsdE", f[1:])
		if f[1] == 'I' {
			mark = f[2:]
			if takes && len(rest) > 1 {
				mark, _ = rest[1].t.guess()
			}
		}
		if takes && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	each := *c
	each.argv = append(fields{}, rest...)
	if len(rest) == 0 {
		each.argv = fields{{t: lit("echo")}}
	}
	if mark != "" {
		return opaque(in.from...), true
	}
	for _, word := range strings.Fields(s) {
		each.argv = append(each.argv, field{t: text{[]string{word}, in.from}})
	}
	return w.filter(&each)
}
