package facts

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// executed is a program named by a path: what the program itself wrote there
// is scanned.
func (c *command) executed(name string, argv []Value) {
	c.b.File(Use{Pos: c.o.Pos, Op: OpExec, What: Text(name), By: "exec"})
	if text, ok := c.b.Load(Text(name)); ok {
		c.script(Shell, text, name, argv[1:])
	}
}

// script scans a text as the shell would start it: its first line may name
// another interpreter, and may be known where the rest is not.
func (c *command) script(lang Lang, text Value, name string, args []Value) {
	nest := func(lang Lang, v Value) {
		c.b.Nested(lang, v, NestedOpts{Pos: c.o.Pos, Via: []string{name}, Start: c.startOf(lang, args)})
	}
	for _, s := range text.Alts {
		nest(c.interpreter(lang, s), Text(s).WithFrom(text.From...))
	}
	if text.Known() {
		return
	}
	if head := text.Head(); strings.Contains(head, "\n") {
		lang = c.interpreter(lang, head)
	}
	text.Alts = nil
	nest(lang, text)
}

// interpreter is the language of a text by its first line.
func (c *command) interpreter(lang Lang, text string) Lang {
	line, _, _ := strings.Cut(text, "\n")
	if line, ok := strings.CutPrefix(line, "#!"); ok {
		for _, w := range strings.Fields(line) {
			if p, _, known := c.b.s.tables.Program(w); known && p.Interpreter != "" {
				lang = p.Interpreter
			}
		}
	}
	return lang
}

// interpret scans the code that an interpreter is given: in a flag, as an
// operand, as a file that the program wrote, or on standard input.
func (c *command) interpret(base string, prog Program, p *parsed) {
	found := false
	if prog.Interpreter == JavaScript {
		c.preloaded(p)
	}
	for _, f := range prog.CodeFlags {
		if v, ok := p.values[f]; ok {
			found = true
			for _, it := range asItems(v) {
				if c.b.s.langs[prog.Interpreter] == nil {
					c.unread(prog, it, p.items("-M"))
				}
				c.b.Nested(prog.Interpreter, it, NestedOpts{Pos: c.o.Pos, Via: []string{base + " " + f}, Start: c.startOfCode(prog.Interpreter, p.operands)})
			}
		}
	}
	if found {
		return
	}
	if m, ok := p.values["-m"]; ok && prog.Interpreter == Python && !slices.ContainsFunc(m.Alts, interactive) {
		return // a module, which has what it reads for itself
	}
	if prog.CodeArg && len(p.operands) > 0 {
		v := p.operands[0]
		if prog.Join {
			v = Join(Text(" "), p.operands)
		}
		c.b.Nested(prog.Interpreter, v, NestedOpts{Pos: c.o.Pos, Via: []string{base}})
		return
	}
	fromStdin := prog.Interpreter == Shell && prog.StdinCode && slices.Contains(p.flags, "s") // sh -s -- ARGS
	if prog.Script && len(p.operands) > 0 && !fromStdin {
		c.scriptFile(base, prog, p.operands)
		return
	}
	if prog.StdinCode && !p.hasStdin && len(p.operands) == 0 && onlyOf(p.flags, "i", "s", "l", "x", "u", "p") {
		c.b.Dynamic(DynOpaqueCode, base+" reads what stands on standard input", c.o.Pos, "stdin")
	}
	if !prog.StdinCode || !p.hasStdin {
		return
	}
	if c.b.s.langs[prog.Interpreter] == nil {
		c.unread(prog, p.stdin, p.items("-M"))
	}
	o := NestedOpts{Pos: c.o.Pos, Via: []string{base}, Start: c.startOf(prog.Interpreter, p.operands)}
	if c.o.StdinPos.Line > 0 {
		o.Pos, o.Verbatim = c.o.StdinPos, true
	}
	c.b.Nested(prog.Interpreter, p.stdin, o)
}

// preloaded is what Node loads before its program: standard input, or a file that
// the text wrote.
func (c *command) preloaded(p *parsed) {
	for _, flag := range []string{"-r", "--require", "--import", "--loader"} {
		for _, it := range asItems(p.values[flag]) {
			if s, ok := it.One(); ok && slices.Contains(stdinNames, s) && p.hasStdin {
				c.b.Nested(JavaScript, p.stdin, NestedOpts{Pos: c.o.Pos, Via: []string{"node " + flag}})
			}
		}
	}
}

// stdinNames are paths of standard input.
var stdinNames = []string{"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}

// interactive: modules of Python that run what they read.
func interactive(module string) bool {
	return slices.Contains([]string{"code", "pdb", "IPython", "ptpython", "asyncio", "idlelib"}, module)
}

// plainModule is a module that perl -M names, and what is imported from it; re
// makes code of patterns that are put together.
var plainModule = lazyregexp.New(`^-?(?:[A-Z]\w*(?:::\w+)*|strict|warnings|utf8|integer|bigint|bignum|feature|lib|v?[\d.]+)(?:=[\w:,./]*| qw\([\w: ]*\))?$`)

// unread is code in a language without extractor, and the modules that it is
// given: it may do whatever the words say that stand in it. What it starts is judged
// at its start.
func (c *command) unread(prog Program, code Value, modules []Value) {
	texts := slices.Clone(code.Alts)
	if prog.Interpreter == "perl" {
		for _, m := range modules {
			if s, ok := m.One(); !ok || !plainModule().MatchString(s) {
				texts = append(texts, m.Alts...) // perl takes it for a part of the program
			}
		}
	}
	if !code.Known() {
		texts = append(texts, code.Head())
	}
	for _, s := range texts {
		if slices.ContainsFunc(prog.Words, func(word string) bool { return says(s, word) }) {
			c.b.Dynamic(DynOpaqueCode, string(prog.Interpreter)+": "+short(s), c.o.Pos, code.From...)
			return
		}
	}
}

// says reports that a word stands in a text, and not as a part of another one, nor as
// all of a pattern: /chmod/.
func says(text, word string) bool {
	for rest := text; ; {
		i := strings.Index(rest, word)
		if i < 0 || word == "" {
			return i == 0
		}
		before, after := rest[:i], rest[i+len(word):]
		joined := before != "" && wordByte(before[i-1]) && wordByte(word[0]) || after != "" && wordByte(after[0]) && wordByte(word[len(word)-1])
		if !joined && (!strings.HasSuffix(before, "/") || !strings.HasPrefix(after, "/")) {
			return true
		}
		rest = rest[i+1:]
	}
}

func onlyOf(flags []string, these ...string) bool {
	for _, f := range flags {
		if !slices.Contains(these, f) {
			return false
		}
	}
	return true
}

// startOf is how code is started with these arguments. Those of a shell's own
// source and eval are not followed here.
func (c *command) startOf(lang Lang, args []Value) Start {
	if lang != Shell {
		return Start{}
	}
	env := c.given
	if env == nil {
		env = c.b.start.Env
	}
	return Start{Known: true, Args: slices.Clone(args), Env: env}
}

// startOfCode is how the code of -c is started: the first word behind it stands
// for a name.
func (c *command) startOfCode(lang Lang, operands []Value) Start {
	if len(operands) == 0 {
		return c.startOf(lang, nil)
	}
	s := c.startOf(lang, operands[1:])
	s.Zero = &operands[0]
	return s
}

func (c *command) scriptFile(base string, prog Program, operands []Value) {
	file, start := operands[0], Start{}
	if base != "." && base != "source" {
		start = c.startOf(prog.Interpreter, operands[1:])
	}
	if s, ok := file.One(); ok && slices.Contains(stdinNames, s) {
		c.b.Nested(prog.Interpreter, c.o.Stdin, NestedOpts{Pos: c.o.Pos, Via: []string{base}, Start: start})
		return
	}
	if file.Type == ProcSubst {
		text := file
		text.Type = "str"
		c.b.Nested(prog.Interpreter, text, NestedOpts{Pos: c.o.Pos, Via: []string{base, "<( )"}, Start: start})
		return
	}
	c.b.File(Use{Pos: c.o.Pos, Op: OpExec, What: file, By: base})
	text, ok := c.b.Load(file)
	if !ok && base != "." && base != "source" {
		text, ok = c.b.Lying(file)
	}
	if ok {
		c.b.Nested(prog.Interpreter, text, NestedOpts{Pos: c.o.Pos, Via: []string{base}, Start: start})
	} else if !file.Known() && len(file.Alts) == 0 {
		c.b.Dynamic(DynFile, base+" of a file that is not known", c.o.Pos, c.b.within(file)...)
	}
}

// within adds to the origins of a file's name the folder that it lies in,
// where that is known.
func (b *Builder) within(file Value) []string {
	dir := file.Head()
	dir = dir[:strings.LastIndexByte(dir, '/')+1]
	if strings.Trim(dir, "./") == "" || strings.HasPrefix(file.Tail(), "..") {
		return file.From
	}
	return append(slices.Clone(file.From), "file:"+strings.TrimSuffix(b.abs(dir), "/")+"/")
}

// ProcSubst is the type of a word that is a process substitution, <(…). Its
// text is what that process prints.
const ProcSubst = "procsubst"

// interpreter is the name of a program that is given code and of which only the
// folder is not known, as that of an environment that the caller names; and the
// words that it is given beside the code, which is judged for itself. It is ""
// where there is no such code.
func (b *Builder) interpreter(argv []Value) (string, []Value) {
	words := argv[1:]
	i := strings.LastIndexByte(argv[0].Tail(), '/')
	if i < 0 || len(argv[0].Alts) > 0 {
		return "", words
	}
	prog, base, ok := b.s.tables.Program(argv[0].Tail()[i+1:])
	if !ok || b.s.langs[prog.Interpreter] == nil {
		return "", words
	}
	for j := 0; j+1 < len(words); j++ {
		if flag, ok := words[j].One(); ok && slices.Contains(prog.CodeFlags, flag) && words[j+1].Known() {
			return base, slices.Concat(words[:j], words[j+2:])
		}
	}
	return "", words
}
