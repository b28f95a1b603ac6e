package facts

import (
	"slices"
	"strings"
)

// editors are programs that take the commands of ex.
var editors = []string{"vim", "vi", "ex", "view", "nvim", "vimdiff", "gvim", "rvim"}

// edits follows the commands that an editor is given by options, by a first
// word with a plus, or on standard input.
func (c *command) edits(p *parsed) {
	var lines []Value
	for _, flag := range []string{"-c", "--cmd"} {
		if v, ok := p.values[flag]; ok {
			lines = append(lines, asItems(v)...)
		}
	}
	for _, o := range p.operands {
		if strings.HasPrefix(o.Head(), "+") {
			lines = append(lines, cutPrefix(o, "+"))
		} else if s, ok := o.One(); ok && strings.HasPrefix(s, "+") {
			lines = append(lines, Text(s[1:]))
		}
	}
	if p.hasStdin && p.stdin.Known() {
		lines = append(lines, p.stdin)
	}
	eachLine(lines, func(line string) {
		for _, part := range strings.Split(line, "|") {
			c.exCommand(strings.TrimSpace(part), 0)
		}
		if _, cmd, ok := strings.Cut(line, "!"); ok && strings.Contains(line, "|") {
			c.exShell(cmd) // a pipe of the shell's
		}
	})
}

// eachLine goes through the lines of what texts may be, up to a bound.
func eachLine(texts []Value, do func(line string)) {
	n := 0
	for _, v := range texts {
		for _, text := range v.Alts {
			for line := range strings.Lines(text) {
				if n++; n > maxItems {
					return
				}
				do(line)
			}
		}
	}
}

func (c *command) exShell(line string) {
	before := len(c.b.s.doc.Dynamic)
	c.nested(Shell, "ex", Text(strings.TrimSpace(line)))
	c.b.s.unparsed(before)
}

// exCommand follows one command of ex: a range, a name that may be shortened,
// and what it is done with.
func (c *command) exCommand(line string, depth int) {
	line = strings.TrimLeft(line, ":%$.,;0123456789+- \t")
	end := 0
	for end < len(line) && (line[end] >= 'a' && line[end] <= 'z') {
		end++
	}
	name, rest := line[:end], line[end:]
	bang := strings.HasPrefix(rest, "!")
	rest = strings.TrimSpace(strings.TrimPrefix(rest, "!"))
	short := func(least, whole string) bool {
		return strings.HasPrefix(whole, name) && strings.HasPrefix(name, least)
	}
	switch {
	case name == "":
		if bang {
			c.exShell(rest)
		}
	case depth > 4:
	case short("sil", "silent"), short("exe", "execute") && !strings.ContainsAny(rest, `"'`), short("verb", "verbose"), short("noa", "noautocmd"):
		if bang && name[0] != 's' {
			return
		}
		c.exCommand(rest, depth+1)
	case short("exe", "execute"):
		c.exCommand(strings.Trim(rest, `"' `), depth+1)
		c.exCalls(rest)
	case short("r", "read"), short("w", "write"):
		switch cmd, shell := strings.CutPrefix(rest, "!"); {
		case shell, bang && name[0] == 'r':
			c.exShell(cmd)
		case rest != "" && name[0] == 'r':
			c.b.File(Use{Pos: c.o.Pos, Op: OpRead, What: Text(rest), By: "ex"})
		case rest != "":
			c.b.File(Use{Pos: c.o.Pos, Op: OpWrite, What: Text(strings.TrimLeft(rest, "> ")), By: "ex"})
		}
	case short("e", "edit") && rest != "", short("vi", "visual") && rest != "", short("sp", "split") && rest != "", short("tabe", "tabedit") && rest != "":
		c.b.File(Use{Pos: c.o.Pos, Op: OpRead, What: Text(rest), By: "ex"})
	case short("so", "source"), short("ru", "runtime"), name == "luafile", name == "pyfile":
		c.b.File(Use{Pos: c.o.Pos, Op: OpExec, What: Text(rest), By: "ex"})
		c.b.Dynamic(DynOpaqueCode, "an editor's script", c.o.Pos, "file:"+c.b.abs(rest))
	case slices.Contains([]string{"py", "python", "py3", "python3", "pyx"}, name):
		c.nested(Python, "ex", Text(rest))
	case slices.Contains([]string{"lua", "perl", "ruby", "mzscheme", "tcl"}, name):
		c.b.Dynamic(DynOpaqueCode, name+": "+rest, c.o.Pos)
	case short("ter", "terminal") && rest != "":
		c.exShell(strings.TrimLeft(rest, "+ "))
	default:
		c.exCalls(rest)
	}
}

// exFunctions are functions of an editor's language by how a call begins, and what
// they do to a file; "" is that they start a program.
var exFunctions = []struct{ name, op string }{
	{"system(", ""}, {"systemlist(", ""}, {"job_start(", ""}, {"jobstart(", ""}, {"term_start(", ""}, {"delete(", OpDelete}, {"readfile(", OpRead},
}

// exCalls follows calls of functions that start programs or change files.
func (c *command) exCalls(text string) {
	for _, f := range exFunctions {
		for i, rest := 0, text; i < 16; i++ {
			_, after, ok := strings.Cut(rest, f.name)
			if !ok {
				break
			}
			rest = after
			after = strings.TrimLeft(after, " [")
			if after == "" || after[0] != '"' && after[0] != '\'' {
				continue
			}
			arg, _, _ := strings.Cut(after[1:], after[:1])
			if f.op == "" {
				c.exShell(arg)
			} else {
				c.b.File(Use{Pos: c.o.Pos, Op: f.op, What: Text(arg), By: "ex"})
			}
		}
	}
}
