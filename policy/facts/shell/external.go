package shell

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// external is a command that is not the shell's own.
func (w *walker) external(c *invocation) text {
	w.optional = w.optional || c.argv[0].t.has(func(s string) bool { return base(s) == "shopt" })
	w.original(c)
	w.shellOnItself(c)
	var out text
	ok := w.idle(c)
	if !ok {
		out, ok = w.filter(c)
	}
	c.out = out
	v := w.report(c)
	w.nestedShell(c)
	w.status = unsure
	if ok {
		return out
	}
	if w.children(c) {
		return opaque(ownProcess)
	}
	return folded(v).tainted(w.printedBy(c)...)
}

// children reports pgrep -P of a process that the script started, or is.
func (w *walker) children(c *invocation) bool {
	args := c.args()
	if name, ok := c.argv[0].t.guess(); !ok || base(name) != "pgrep" {
		return false
	}
	parents, own := 0, false
	for i, f := range args {
		s, ok := f.t.guess()
		if ok && !strings.HasPrefix(s, "--p") && (strings.HasPrefix(s, "--") || len(s) < 2 || s[0] != '-' || !strings.Contains(s, "P")) {
			continue
		}
		if !ok && i > 0 && args[i-1].t.is("-P") {
			continue
		}
		if parents++; s == "-P" && i+1 < len(args) {
			of := args[i+1].t
			own = of.is(hole) && slices.Equal(of.from, []string{ownProcess})
		}
	}
	return own && parents == 1
}

// printedBy is where the output of a program that is not computed comes from:
// the program, unless it makes its output of what the script holds.
func (w *walker) printedBy(c *invocation) []string {
	name, ok := c.argv[0].t.guess()
	if p, _, own := w.tables.Program(name); w.in.kind != "" && w.in.t.has(known) && (!ok || !own || !p.Own || p.Interpreter != "") {
		return []string{"computed"}
	}
	if !ok || name == "" { // of a program that the caller names
		return append([]string{"command"}, c.argv[0].t.from...)
	}
	p, short, _ := w.tables.Program(name)
	if len(p.From) > 0 {
		return nil
	}
	if _, special := w.x.specials[short]; special && !p.Own || p.Interpreter != "" || w.startsOthers(&p, c) || p.Wrapper {
		return []string{"computed"}
	}
	if _, is := filters[short]; is {
		return []string{"computed"}
	}
	return []string{"command"}
}

// startsOthers reports that a program is told to start another, or to print
// text as it is told to.
func (w *walker) startsOthers(p *facts.Program, c *invocation) bool {
	if p.Own {
		return false
	}
	for _, r := range p.Runs {
		if r.Flag == "" {
			return true
		}
	}
	args := c.args()
	for i, f := range args {
		if f.t.is("-print") || f.t.is("-print0") || f.t.is("-printf") && i+1 < len(args) && printsNames(args[i+1].t) {
			args = slices.Clone(args)
			args[i].t = lit("-true") // what is found is told by its name, as it is without
		}
	}
	return len(p.Runs) > 0 && slices.ContainsFunc(args, func(f field) bool {
		s, ok := f.t.guess()
		return !ok && f.t.is(hole) || strings.Contains(s, "print") || slices.ContainsFunc(p.Runs, func(r facts.Run) bool { return strings.HasPrefix(s, r.Flag) })
	})
}

// printsNames: a format of find that has names of files in it, and no words of
// its own.
func printsNames(format text) bool {
	s, ok := format.one()
	if !ok {
		return false
	}
	return strings.Trim(strings.NewReplacer("%f", "", "%p", "", "%P", "", "%h", "", `\n`, "", `\t`, "", `\0`, "").Replace(s), " /\n") == ""
}

// shellOnItself is bash "$0".
func (w *walker) shellOnItself(c *invocation) {
	for _, f := range c.args() {
		if w.isSelf(f.t) {
			name, _ := c.argv[0].t.guess()
			if p, _, ok := w.tables.Program(name); ok && p.Script {
				w.runsItself(c)
			}
		}
	}
}

// original puts the program in place of a copy of it that the script made, and
// a file that the script wrote into a folder of its PATH in place of its name.
func (w *walker) original(c *invocation) {
	name, ok := c.argv[0].t.guess()
	if !ok || name == "" {
		return
	}
	if !strings.Contains(name, "/") {
		if name, ok = w.inPath(name); !ok {
			return
		}
		c.argv = slices.Clone(c.argv)
		c.argv[0].t = lit(name)
	}
	if src, ok := w.renamed[w.absolute(name)]; ok {
		c.argv = slices.Clone(c.argv)
		c.argv[0].t = lit(src)
	}
}

// inPath finds a program that the script put where it looks for programs.
func (w *walker) inPath(name string) (string, bool) {
	v := w.st.vars.get("PATH")
	if v == nil {
		return "", false
	}
	for _, folders := range v.scalar().all() {
		for _, dir := range strings.Split(folders, ":") {
			file := dir + "/" + name
			if dir == "" || !known(dir) {
				continue
			}
			if _, copied := w.renamed[w.absolute(file)]; copied {
				return file, true
			}
			if _, ok := w.load(lit(file)); ok {
				return file, true
			}
		}
	}
	return "", false
}

// report hands a command to the builder, once for each that looks the same.
func (w *walker) report(c *invocation) facts.Value {
	argv := make([]facts.Value, len(c.argv))
	for i, f := range c.argv {
		argv[i] = w.sheltered(f.t).value()
	}
	o := facts.CommandOpts{
		Pos: c.pos, Redirs: c.rd.list, Background: c.background, In: w.inside,
		PipeFrom: w.in.from, PipeTo: w.in.to,
	}
	if len(argv) > 0 && !argv[0].Known() {
		o.Word = c.word(c.argv)
	}
	if w.in.kind != "" {
		o.Stdin, o.StdinKind = w.in.t.value(), w.in.kind
		if !w.in.used {
			o.StdinPos = w.in.pos
		}
	}
	if len(c.rd.list) > 0 && c.out.alts != nil {
		o.Out = c.out.value()
	}
	if len(c.env) > 0 {
		o.Env = map[string]facts.Value{}
		for name, t := range c.env {
			o.Env[name] = w.searched(name, t).value()
		}
	}
	key := ""
	if w.repeat > 0 {
		key = w.signature(c, argv, o)
		if v, seen := w.memo[key]; seen {
			return v
		}
	}
	v := w.b.Command(shorten(argv), o)
	w.b.SetCwd(w.st.cwd, w.st.or)
	if w.repeat > 0 {
		w.memo[key] = v
	}
	return v
}

// signature tells commands apart that come from one place of the source.
func (w *walker) signature(c *invocation, argv []facts.Value, o facts.CommandOpts) string {
	var b strings.Builder
	b.WriteString(w.st.cwd)
	b.WriteByte(byte(c.pos.Line))
	b.WriteByte(byte(c.pos.Line >> 8))
	b.WriteByte(byte(c.pos.Line >> 16))
	b.WriteByte(byte(c.pos.Col))
	b.WriteByte(byte(c.pos.Col >> 8))
	write := func(v facts.Value) {
		for _, a := range v.Alts {
			b.WriteString(a)
			b.WriteByte(0)
		}
		b.WriteString(v.Prefix)
		b.WriteByte(1)
		b.WriteString(v.Suffix)
		b.WriteString(strings.Join(v.From, "\x02"))
		b.WriteByte(3)
	}
	for _, v := range argv {
		write(v)
	}
	write(o.Stdin)
	for _, r := range o.Redirs {
		write(r.Target)
	}
	b.WriteByte(byte(w.b.Depth()))
	return b.String()
}

// keptWords is how many words of a command are looked at, before plain numbers
// are left out.
const keptWords = 128

// shorten leaves numbers out of a very long command: {1..10000} tells a rule
// nothing.
func shorten(argv []facts.Value) []facts.Value {
	if len(argv) <= keptWords {
		return argv
	}
	out := argv[:keptWords:keptWords]
	for _, v := range argv[keptWords:] {
		if s, ok := v.One(); !ok || digits(s, len(s), 10) < len(s) {
			out = append(out, v)
		}
	}
	return out
}
