package facts

import (
	"maps"
	"slices"
	"strings"
)

// secretClasses are of paths that nobody names to a program but for what stands
// there.
var secretClasses = []string{"credential", "identity", "process_secrets", "kernel_memory"}

// namesOnly are programs without an entry that look at a path's text alone.
var namesOnly = []string{"echo", "printf", ":", "true", "false", "set", "export", "unset", "alias", "unalias", "type", "which", "print", "cd", "pushd", "let", "eval", "read", "man", "basename", "dirname", "realpath", "readlink", "pathchk", "expr", "getfattr", "cygpath", "return", "shift", "local", "declare", "typeset", "readonly", "umask", "mountpoint"}

// handed records that a program which no table names reads the secrets whose
// paths it is given, as a word, behind an option's =, or behind an @.
func (c *command) handed(base string, p *parsed) {
	if slices.Contains(namesOnly, base) {
		return
	}
	look := func(v Value) {
		for _, s := range v.Alts {
			s = strings.TrimLeft(s, "@<")
			if _, value, ok := strings.Cut(s, "="); ok {
				s = strings.TrimLeft(value, "@")
			}
			if s == "" || s[0] != '/' && s[0] != '~' || strings.ContainsAny(s, " \n:") {
				continue
			}
			if slices.Contains(secretClasses, c.b.s.tables.PathClass(c.b.abs(s))) {
				c.b.File(Use{Pos: c.o.Pos, Op: OpRead, What: Text(s).WithFrom(v.From...), By: base})
			}
		}
	}
	for _, o := range p.operands {
		look(o)
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		for _, it := range asItems(p.values[name]) {
			look(it)
		}
	}
}
