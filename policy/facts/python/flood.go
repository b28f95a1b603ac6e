package python

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// manyHeld are more open files than any program has use for.
const manyHeld = 100_000

// holders give what takes one of the places for open files.
var holders = set(`open os.open os.fdopen os.dup os.memfd_create os.eventfd os.pipe os.openpty fd socket.socket socket.socketpair
	socket.create_connection pathlib.Path.open tempfile.TemporaryFile tempfile.NamedTemporaryFile`)

// keepsOpen notices that what is open is kept, over and over.
func (it *interp) keepsOpen(v *val, times float64, n *node) {
	if v.kind != kObj || !holders[v.text] || times < manyHeld && len(it.shape.endless) == 0 {
		return
	}
	it.structure(facts.StructResourceBurn, "more is kept open than there is room for, by "+v.text, n)
}

// counts reports a value that gives one thing after the other without an end.
func counts(v *val) bool {
	return v.kind == kObj && (v.text == "itertools.count" || v.text == "itertools.cycle")
}

// neverDone reports that a loop goes over an iterator that has no end, or asks
// one for a number as its condition, and that nothing in it leaves.
func (it *interp) neverDone(n *node, s *scope) bool {
	body := n.child("body")
	if body == nil || breaks(body) {
		return false
	}
	if n.kind != "while_statement" {
		right := n.child("right")
		return right != nil && right.kind == "identifier" && it.countsOn(right, s)
	}
	cond := n.child("condition")
	if cond != nil && cond.kind == "comparison_operator" && strings.ContainsAny(it.t.text(cond), ">!") {
		cond = cond.nth(0)
	}
	return it.nextOf(cond, s)
}

// nextOf reports next(i), where i has no end.
func (it *interp) nextOf(n *node, s *scope) bool {
	if n == nil || n.kind != "call" || it.t.text(n.child("function")) != "next" {
		return false
	}
	args := n.child("arguments")
	return args != nil && args.size < 64 && it.countsOn(args.nth(0), s)
}

// countsOn evaluates n, which is reported elsewhere.
func (it *interp) countsOn(n *node, s *scope) bool {
	if n == nil {
		return false
	}
	it.quiet++
	defer func() { it.quiet-- }()
	return counts(it.eval(n, s))
}
