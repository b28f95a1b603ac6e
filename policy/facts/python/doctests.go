package python

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// maxDoctest bounds the code in docstrings that is looked at.
const maxDoctest = 16 << 10

// doctests scans and follows the examples in docstrings, which doctest runs.
func (c *invocation) doctests() *val {
	if c.it.b.Depth() > 2 || c.it.inlined > 0 {
		return nil
	}
	room := maxDoctest
	try := func(code string) {
		if room -= len(code); room < 0 {
			return
		}
		if t := c.it.g.parse(code); t == nil || t.root == nil || t.errors > 0 {
			return
		}
		if c.it.quiet == 0 {
			c.it.b.Nested(facts.Python, facts.Text(code), facts.NestedOpts{Pos: c.it.pos(c.n), Via: []string{c.name}})
		}
		if t := c.it.inlinable(str(code)); t != nil {
			c.it.inline(t, &invocation{it: c.it, name: "exec", arguments: &arguments{}, n: c.n, s: c.it.module}, c.it.module)
		}
	}
	if text, ok := c.nth(0).oneText(); ok { // a session in place of a module
		try(interactive(text))
		return nil
	}
	c.it.examples(c.it.t.root, try)
	return nil
}

// examples gives the code that the docstrings under n hold.
func (it *interp) examples(n *node, f func(code string)) {
	for c := n.first; c != nil; c = c.next {
		if docstring(c) {
			if code := interactive(it.t.text(c)); code != "" {
				f(code)
			}
		}
		if c.size > 1 {
			it.examples(c, f)
		}
	}
}

// interactive is what an interactive session in a text types.
func interactive(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t'\"r")
		for _, mark := range []string{">>>", "..."} {
			if code, ok := strings.CutPrefix(line, mark); ok && (code == "" || code[0] == ' ') {
				out.WriteString(strings.TrimPrefix(code, " ") + "\n")
			}
		}
	}
	return out.String()
}
