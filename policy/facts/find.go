package facts

import (
	"slices"
	"strings"
)

// walks records the folders behind the first that find looks through, which
// the table has.
func (c *command) walks(p *parsed) {
	if len(p.operands) < 2 {
		return
	}
	for _, dir := range c.roots(p)[1:] {
		u := Use{Pos: c.o.Pos, Op: OpList, What: dir, By: "find"}
		c.b.File(u)
		if slices.Contains(p.flags, "delete") {
			u.Op, u.Recursive = OpDelete, true
			c.b.File(u)
		}
	}
}

// found is how the names begin that find prints.
func found(base string, p *parsed) (string, bool) {
	if base != "find" || len(p.operands) == 0 {
		return "", false
	}
	top, ok := p.operands[0].One()
	if !ok || top == "" || top[0] != '/' && top[0] != '~' {
		return "", false
	}
	return strings.TrimSuffix(top, "/") + "/", true
}
