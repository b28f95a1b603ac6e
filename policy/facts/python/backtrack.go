package python

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// backtracks notices a pattern that never comes to an end on a text that stands
// in the program, and characters that are put into a terminal as if somebody had
// typed them.
func (c *invocation) backtracks() {
	if c.name == "fcntl.ioctl" {
		if op := c.nth(1); op.text == "termios.TIOCSTI" || op.kind == kInt && op.text == "21522" {
			if typed, ok := c.nth(2).oneText(); ok && strings.Trim(typed, "\x00") == "" {
				return // which wakes up who reads there, and says nothing
			}
			if c.it.quiet == 0 {
				c.it.b.Action("keys", "input is put into a terminal", c.name, c.it.pos(c.n))
			}
		}
		return
	}
	if !strings.HasPrefix(c.name, "re.") && !strings.HasPrefix(c.name, "regex.") {
		return
	}
	method := lastPart(c.name)
	at := 1
	var pattern string
	var ok bool
	switch {
	case method == "compile" || method == "escape":
		return
	case strings.Count(c.name, ".") > 1: // of what was compiled
		at = 0
		if c.self == nil || c.self.x == nil || len(c.self.x.recv) == 0 {
			return
		}
		pattern, ok = c.self.x.recv[0].One()
	default:
		pattern, ok = c.nth(0).oneText()
	}
	if method == "sub" || method == "subn" {
		at++
	}
	text, known := c.nth(at).oneText()
	if ok && known && facts.Backtracks(pattern, text, method == "match" || method == "fullmatch", method == "fullmatch") {
		c.it.structure(facts.StructHugeAlloc, "a pattern that goes back without end", c.n)
	}
}
