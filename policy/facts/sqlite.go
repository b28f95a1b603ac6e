package facts

import (
	"slices"
	"strings"
)

// dotCommands are sqlite3's own commands that name a file, and what is done to
// it; "" is that its code is loaded.
var dotCommands = map[string]string{
	".import": OpRead, ".restore": OpRead, ".read": OpRead, ".output": OpWrite, ".once": OpWrite, ".log": OpWrite, ".trace": OpWrite,
	".backup": OpWrite, ".save": OpWrite, ".clone": OpWrite, ".open": OpWrite, ".load": "",
}

// sqlFunctions are functions of sqlite3's shell by how a call begins, and what
// they do to a file.
var sqlFunctions = []struct{ name, op string }{{"writefile(", OpWrite}, {"readfile(", OpRead}, {"load_extension(", ""}}

// sqlite follows what sqlite3 is told by words, options and standard input.
func (c *command) sqlite(p *parsed) {
	texts := asItems(p.values["-cmd"])
	if len(p.operands) > 1 {
		texts = append(slices.Clone(texts), p.operands[1:]...)
	}
	if p.hasStdin {
		texts = append(slices.Clone(texts), p.stdin)
	}
	eachLine(texts, func(line string) {
		c.dotCommand(strings.Fields(line))
		c.sqlCalls(line)
	})
}

// dotCommand is one line that begins with a dot, or does not.
func (c *command) dotCommand(words []string) {
	if len(words) < 2 || len(words[0]) < 3 || words[0][0] != '.' {
		return
	}
	op, known := dotCommands[words[0]]
	if !known {
		return
	}
	words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
	if len(words) == 0 {
		return
	}
	file := strings.Trim(words[0], `"'`)
	if strings.HasPrefix(file, "|") {
		return // a program, which is followed as such
	}
	if op == OpWrite {
		file = words[len(words)-1] // .backup takes the name of a database before it
	}
	if file != "stdout" && file != "off" {
		c.sqlFile(op, strings.Trim(file, `"'`))
	}
}

// sqlCalls follows calls of functions that are given the name of a file.
func (c *command) sqlCalls(line string) {
	low := strings.ToLower(line)
	if len(low) != len(line) {
		line = low
	}
	for _, f := range sqlFunctions {
		for i, at := 0, 0; i < 16; i++ {
			next := strings.Index(low[at:], f.name)
			if next < 0 {
				break
			}
			at += next + len(f.name)
			arg := strings.TrimLeft(line[at:], " ")
			if arg == "" || arg[0] != '\'' && arg[0] != '"' {
				continue
			}
			arg, _, _ = strings.Cut(arg[1:], arg[:1])
			c.sqlFile(f.op, arg)
		}
	}
}

// sqlFile is a file that is read, written, or loaded as machine code.
func (c *command) sqlFile(op, file string) {
	if op == "" {
		c.b.Dynamic(DynOpaqueCode, "sqlite3 loads "+short(file), c.o.Pos, "file:"+c.b.abs(file))
		return
	}
	c.b.File(Use{Pos: c.o.Pos, Op: op, What: Text(file), By: "sqlite3"})
}
