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
	for _, dir := range p.roots()[1:] {
		c.b.File(Use{Pos: c.o.Pos, Op: OpList, What: dir, By: "find"})
	}
}

// handsTo is what find hands to a program: what is called as it looks for, where the
// program deletes that, and folders with all below them for any other.
func (c *command) handsTo(words []Value, p *parsed) []Value {
	if len(words) > 0 {
		if prog, _, ok := c.b.s.tables.Program(words[0].Head()); ok && slices.ContainsFunc(prog.Effects, func(e Effect) bool { return e.Op == OpDelete }) {
			return p.named()
		}
	}
	return p.roots()
}

// named are the roots, or, where these lie in the folder that find runs in and it
// looks for a name and nothing else, what is called so there.
func (p *parsed) named() []Value {
	out := p.roots()
	name, ok := p.values["-name"].One()
	if !ok || strings.Trim(name, "*?.") == "" || strings.Contains(name, "[") || slices.Contains(p.flags, "o") || slices.Contains(p.flags, "or") || slices.Contains(p.flags, "not") ||
		slices.ContainsFunc(p.operands, func(o Value) bool { return o.Head() == "!" || o.Head() == "," }) {
		return out
	}
	for i, o := range out {
		if root, known := o.One(); known && root != "" && root[0] != '/' && root[0] != '~' && !strings.Contains(root, "..") {
			out[i] = Text(strings.TrimSuffix(root, "/") + "/" + name)
		}
	}
	return out
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
