package facts

import (
	"maps"
	"path"
	"slices"
	"strings"
)

const maxWrappers = 24

// Command records a program that is started with argv: its wrappers are
// removed, code in its arguments or on its standard input is scanned, and
// files and hosts follow from its table. It returns what it prints, as far as
// that is known (its origins: "net:HOST" for curl).
func (b *Builder) Command(argv []Value, o CommandOpts) Value {
	saved := b.via
	b.via = join(b.via, o.Via)
	defer func() { b.via = saved }()
	c := &command{b: b, o: o}
	for name, v := range o.Env {
		c.setEnv(name, v)
	}
	c.redirections()
	return c.run(argv, nil)
}

// command is one call of [Builder.Command].
type command struct {
	b     *Builder
	o     CommandOpts
	env   map[string]string
	given map[string]Value // the same, as they are
	depth int
}

func (c *command) setEnv(name string, v Value) {
	if c.env == nil {
		c.env = map[string]string{}
	}
	one, _ := v.One()
	if one == "" {
		one = v.Head()
	}
	if len(c.env) < 64 {
		c.env[name] = cut(one)
		if c.given == nil {
			c.given = maps.Clone(c.b.start.Env)
		}
		if c.given == nil {
			c.given = map[string]Value{}
		}
		c.given[name] = v
	}
	if c.b.s.tables.EnvClass(name) != "" {
		c.b.Env("write", Text(name), v, c.o.Pos)
	} else {
		c.b.commandIn(name, v, c.o.Pos)
	}
}

// unknown says what is known of a program whose name is not: how it is written,
// or how it begins.
func (c *command) unknown(v Value) string {
	if c.o.Word != "" {
		return short(c.o.Word)
	}
	if h := v.Head(); h != "" {
		return short(h)
	}
	return c.b.excerpt(c.o.Pos)
}

// run records argv, which wrappers (outermost first) start.
func (c *command) run(argv []Value, wrappers []string) Value {
	b := c.b
	if len(argv) == 0 || b.Full() {
		return Value{}
	}
	c.depth++
	if c.depth > maxWrappers {
		b.Dynamic(DynTooDeep, "wrapped commands", c.o.Pos)
		return Opaque()
	}
	if len(argv) > maxItems {
		b.Dynamic(DynLimit, "words of a command", c.o.Pos)
		argv = argv[:maxItems]
	}
	names := argv[0].Alts
	if !argv[0].Known() {
		base, words := b.interpreter(argv)
		b.Unknown(DynCommand, c.unknown(argv[0]), c.o.Pos, argv[0].From, words)
		if base != "" {
			return c.program(base, argv, wrappers)
		}
		if len(names) == 0 {
			c.record("", argv, parseArgv(Program{}, argv), wrappers)
			return Opaque(argv[0].From...)
		}
	}
	var out Value
	for i, n := range names {
		v := c.program(n, argv, wrappers)
		if i == 0 {
			out = v
		} else {
			out = Union(out, v)
		}
	}
	return out
}

// Program finds a program's entry by its path or name: python3.11 is python3.
func (t *Tables) Program(name string) (Program, string, bool) {
	if name == "" {
		return Program{}, "", false
	}
	base := path.Base(name)
	p, ok := t.Programs.Get(base)
	for short := base; !ok; {
		s := strings.TrimRight(short, "0123456789")
		s = strings.TrimRight(s, ".-")
		if s == short || s == "" {
			break
		}
		short = s
		if p, ok = t.Programs.Get(short); ok {
			base = short
		}
	}
	for i := 0; ok && p.Like != "" && i < 8; i++ {
		p, _ = t.Programs.Get(p.Like)
	}
	return p, base, ok
}

func (c *command) program(name string, argv []Value, wrappers []string) Value {
	b := c.b
	if (b.lang != Shell || c.depth > 1) && strings.ContainsAny(name, "*?[") && name != "[" && name != "[[" && !strings.ContainsAny(name, " \t\n{}();|&$'\"") { // no text that is no name
		b.Dynamic(DynGlob, name, c.o.Pos)
	}
	prog, base, known := b.s.tables.Program(name)
	if len(argv) == 1 && prog.Interpreter == "" && strings.HasPrefix(path.Clean(name), "/usr/share/") {
		prog, base, known = Program{}, path.Base(name), false // programs of that name lie elsewhere
	}
	p := parseArgv(prog, argv)
	p.stdin, p.hasStdin = c.o.Stdin, c.o.StdinKind != "" && c.o.StdinKind != "tty"
	c.record(name, argv, p, wrappers)
	if strings.Contains(name, "/") {
		c.executed(name, argv)
	}
	if known && b.lang == Shell {
		b.hiddenName(base, DynHiddenCommand, c.o.Pos)
	}
	if !known {
		c.handed(base, p)
		return Opaque(p.stdin.From...)
	}
	x := &effects{b: b, args: cmdArgs{p}, pos: c.o.Pos, by: base, via: base}
	if prog.Wrapper { // it may start its command in another folder
		defer func(dir string) { b.cwd = dir }(b.cwd)
	}
	x.all(prog.Effects)
	switch {
	case base == "find":
		c.walks(p)
	case base == "git":
		c.gitSettings(p)
	case slices.Contains(callers, base):
		c.calls(p)
	}
	via := append(slices.Clone(wrappers), base)
	out := c.inner(base, prog, p, argv, via)
	from := slices.Concat(out.From, prog.From, x.hosts, x.paths)
	if len(x.paths) == 0 || len(p.operands) == 0 {
		from = append(from, p.stdin.From...)
	}
	if top, ok := found(base, p); ok {
		return Partial(top, "").WithFrom(from...)
	}
	return Opaque(from...)
}

// inner follows all ways in which a program starts another or runs code.
func (c *command) inner(base string, prog Program, p *parsed, argv []Value, via []string) Value {
	var out Value
	x := &effects{args: cmdArgs{p}}
	for _, r := range prog.Runs {
		if x.holds(r.When) {
			c.started(base, r, prog, p, argv, via)
		}
	}
	switch {
	case prog.Applet:
		if len(p.index) > 0 {
			out = c.run(argv[p.index[0]:], via)
		}
	case prog.Wrapper:
		out = c.wrapped(prog, p, argv, via)
	}
	if prog.Interpreter != "" {
		c.interpret(base, prog, p)
	}
	return out
}

func (c *command) wrapped(prog Program, p *parsed, argv []Value, via []string) Value {
	skip := prog.Skip
	for skip < len(p.operands) && prog.Assign {
		w := p.operands[skip].Head()
		if len(p.operands[skip].Alts) > 0 {
			w = p.operands[skip].Alts[0]
		}
		name, _, ok := strings.Cut(w, "=")
		if !ok || name == "" || strings.Contains(name, "/") {
			break
		}
		c.setEnv(name, cutPrefix(p.operands[skip], name+"="))
		skip++
	}
	if skip >= len(p.operands) {
		return Value{}
	}
	words := slices.Clone(argv[p.index[skip]:])
	if prog.Stdin {
		words = c.fromStdin(p, words)
	}
	return c.run(words, via)
}

// fromStdin adds the words that xargs and its like read.
func (c *command) fromStdin(p *parsed, words []Value) []Value {
	in := p.stdin
	if file, ok := p.values["-a"]; ok {
		if in, ok = c.b.Load(file); !ok {
			in = Opaque("file:" + c.b.abs(file.Head()))
		}
	}
	items := []Value{Opaque(in.From...)}
	if s, ok := in.One(); ok {
		items = nil
		for _, f := range strings.FieldsFunc(s, p.betweenWords()) {
			items = append(items, Text(f))
		}
	}
	if hole, ok := p.values["-I"]; ok {
		mark, _ := hole.One()
		for i, w := range words {
			if s, known := w.One(); known && mark != "" && strings.Contains(s, mark) {
				before, after, _ := strings.Cut(s, mark)
				words[i] = Concat(Text(before), firstOf(items), Text(after))
			}
		}
		return words
	}
	return append(words, items...)
}

// betweenWords tells what stands between the words that xargs and its like read.
func (p *parsed) betweenWords() func(rune) bool {
	_, lines := p.values["-I"]
	ends := "\n\x00"
	switch by := p.values["-d"]; {
	case slices.Contains(p.flags, "0"):
		ends = "\x00"
	case len(by.Alts) == 1 && by.Alts[0] != `\n`:
		ends = by.Alts[0]
	case len(by.Alts) == 1:
	case !lines:
		ends += " \t"
	}
	return func(r rune) bool { return strings.ContainsRune(ends, r) }
}

func firstOf(items []Value) Value {
	out := Value{}
	for i, it := range items {
		if i == 0 {
			out = it
		} else {
			out = Union(out, it)
		}
	}
	return out
}

func (c *command) started(base string, r Run, prog Program, p *parsed, argv []Value, via []string) {
	switch {
	case len(r.Until) > 0:
		c.untilRuns(r, p, argv, via)
	case r.Flag != "":
		v, ok := p.values[r.Flag]
		if r.Flag == "stdin" {
			v, ok = p.stdin, p.hasStdin
		}
		if !ok {
			return
		}
		for _, it := range asItems(v) {
			if r.Prefix != "" {
				if !strings.HasPrefix(it.Head(), r.Prefix) {
					continue
				}
				it = cutPrefix(it, r.Prefix)
			}
			c.code(r, base, it)
		}
	case r.Operand > 0:
		ref := cmdArgs{p}
		v, ok := ref.operands(itoa(r.Operand))
		if r.Rest {
			v, ok = ref.operands(itoa(r.Operand) + "*")
		}
		if ok {
			c.code(r, base, v)
		}
	}
}

// FromInput stands in the place of a language where a program is told to run
// what it reads.
const FromInput Lang = "input"

func (c *command) code(r Run, base string, v Value) {
	if r.Pattern != "" {
		if v.Items != nil {
			v = Join(Text(" "), v.Items)
		}
		for _, s := range v.Alts {
			if r.Lang == FromInput && len(c.b.s.tables.submatches(r.Pattern, s)) > 0 {
				c.nested(Shell, base, c.o.Stdin)
				continue
			}
			for _, cmd := range c.b.s.tables.submatches(r.Pattern, s) {
				if r.Lang != "" && c.b.s.langs[ParseLang(string(r.Lang))] == nil {
					c.b.Dynamic(DynOpaqueCode, base+": "+short(cmd), c.o.Pos)
					continue
				}
				before := len(c.b.s.doc.Dynamic)
				c.nested(r.Lang, base, Text(cmd))
				c.b.s.unparsed(before)
			}
		}
		return
	}
	c.nested(r.Lang, base, v)
}

func (c *command) nested(lang Lang, via string, v Value) {
	if lang == "" {
		lang = Shell
	}
	c.b.Nested(lang, v, NestedOpts{Pos: c.o.Pos, Via: []string{via}})
}

// untilRuns starts the argv behind a flag, up to a terminator: find -exec. {}
// stands for what find finds below its operands.
func (c *command) untilRuns(r Run, p *parsed, argv []Value, via []string) {
	for i := 1; i < len(argv); i++ {
		if w, ok := argv[i].One(); !ok || w != r.Flag {
			continue
		}
		var words []Value
		for i++; i < len(argv); i++ {
			w, ok := argv[i].One()
			if ok && slices.Contains(r.Until, w) {
				break
			}
			if ok && w == "{}" {
				words = append(words, c.handsTo(words, p)...)
				continue
			}
			words = append(words, argv[i])
		}
		c.run(words, via)
	}
}

// roots are the folders that find looks through.
func (p *parsed) roots() []Value {
	var out []Value
	for _, o := range p.operands {
		h := o.Head()
		if strings.HasPrefix(h, "-") || h == "(" || h == "!" {
			break
		}
		out = append(out, o)
		if len(out) == 4 || len(p.index) > len(out) && p.index[len(out)] != p.index[len(out)-1]+1 {
			break
		}
	}
	if len(out) == 0 {
		return []Value{Text(".")}
	}
	return out
}

// record keeps one program as a fact.
func (c *command) record(name string, argv []Value, p *parsed, wrappers []string) {
	b := c.b
	if !b.room() {
		return
	}
	f := Command{At: b.at(c.o.Pos), Flags: p.flags, Stdin: c.o.StdinKind, PipeFrom: c.o.PipeFrom, PipeTo: c.o.PipeTo,
		Background: c.o.Background, In: c.o.In, Env: c.env, Wrappers: wrappers}
	if name != "" {
		_, f.Name, _ = b.s.tables.Program(name)
		if strings.Contains(name, "/") {
			f.Path = name
		}
	}
	for i, w := range argv {
		if i == 64 {
			break
		}
		s, ok := w.One()
		if !ok {
			s = w.Head()
			f.Opaque = append(f.Opaque, i)
		}
		f.Argv = append(f.Argv, cut(s))
	}
	for i, w := range p.operands {
		if i == 64 {
			break
		}
		s, _ := w.One()
		f.Operands = append(f.Operands, cut(s))
	}
	for k, v := range p.values {
		if f.Values == nil {
			f.Values = map[string]string{}
		}
		f.Values[k] = cut(v.Head())
	}
	for _, r := range c.o.Redirs {
		r.Target = trim(r.Target, 0)
		f.Redirs = append(f.Redirs, r)
	}
	b.s.doc.Commands = append(b.s.doc.Commands, f)
}

// redirections records the files of redirections.
func (c *command) redirections() {
	data := c.o.Out
	if data.IsOpaque() && data.From == nil {
		data = c.o.Stdin
	}
	for _, r := range c.o.Redirs {
		u := Use{Pos: c.o.Pos, What: r.Target, By: r.Op, Data: data}
		switch r.Op {
		case ">", ">|", "&>", ">&":
			u.Op = OpWrite
		case ">>", "&>>":
			u.Op = OpAppend
		case "<":
			u.Op = OpRead
		case "<>":
			u.Op = OpWrite
		default:
			continue
		}
		if s, ok := r.Target.One(); ok && (s == "-" || s != "" && strings.Trim(s, "0123456789") == "") && r.Op == ">&" {
			continue
		}
		c.b.File(u)
	}
}
