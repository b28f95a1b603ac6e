package python

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// paced reports that the innermost loop without an end starts no more than one
// thing at a time, or no more than somebody asks for: it waits at each turn. A
// program that may be this one does so too, and is never paced.
func (it *interp) paced(name string, a *arguments, n *node) bool {
	if len(it.shape.endless) == 0 || it.at != nil || n == nil || !it.mayLook() {
		return false
	}
	body := it.shape.endless[len(it.shape.endless)-1].child("body")
	switch {
	case body == nil:
		return false
	case name == "threading.Thread.start":
	case name != "subprocess.Popen" || !it.another(a):
		return false
	}
	return it.waitsEachTurn(body) || name == "subprocess.Popen" && !swallows(body) && it.waitedFor(it.around(body, n), n)
}

// mayWait: a loop that starts programs, and has something in it that sounds as
// if it waited. That is no reason to let it pass, and none to be sure of harm.
func (it *interp) mayWait(a *arguments, n *node) bool {
	if len(it.shape.endless) == 0 || it.at != nil || n == nil || !it.foreign(a) || !it.mayLook() {
		return false
	}
	body := it.shape.endless[len(it.shape.endless)-1].child("body")
	return body != nil && (it.soundsWaiting(body) || it.soundsWaiting(it.around(body, n)))
}

// around is the block in which a call stands: the loop's own, or the body of the
// function that is followed.
func (it *interp) around(body, n *node) *node {
	if body.start <= n.start && body.end >= n.end || len(it.calls) == 0 {
		return body
	}
	if f := it.calls[len(it.calls)-1]; f.t == it.t && f.body != nil && f.body.start <= n.start && f.body.end >= n.end {
		return f.body
	}
	return body
}

// another: the program is one whose name stands there, and runs no code.
func (it *interp) another(a *arguments) bool {
	argv := a.get(0, "args")
	if argv == nil || a.open || !it.foreign(a) || a.kw["executable"] != nil || a.kw["shell"] != nil || a.kw["preexec_fn"] != nil {
		return false
	}
	first := argv
	if argv.isSeq() && len(argv.x.items) > 0 {
		first = argv.x.items[0]
	}
	name, ok := first.oneText()
	if !ok || name == "" || strings.ContainsAny(name, " ./") {
		return false
	}
	p, _, known := it.b.Tables().Program(name)
	return !known || p.Interpreter == "" && !p.Wrapper && !p.Applet && !p.CodeArg && !p.Join && !p.Stdin && len(p.Runs) == 0
}

// foreign: nothing that is handed over says that this program is started.
func (it *interp) foreign(a *arguments) bool {
	return !slices.ContainsFunc(a.all(), func(v *val) bool { return itself(v, 0) })
}

func itself(v *val, depth int) bool {
	if depth > 3 {
		return true
	}
	if slices.Contains(v.from, "argv") || slices.Contains(v.from, "self") || v.kind == kRef && (v.text == "sys.executable" || v.text == "sys.argv") {
		return true
	}
	if v.x == nil {
		return v.isText() && strings.Contains(v.text, "python")
	}
	return slices.ContainsFunc(append(slices.Clone(v.x.items), v.x.alts...), func(p *val) bool { return itself(p, depth+1) })
}

// waitsEachTurn: one of a loop's own statements waits, and none before it goes
// round without that.
func (it *interp) waitsEachTurn(body *node) bool {
	for c := body.first; c != nil; c = c.next {
		if c.kind == "expression_statement" && it.pauses(c) {
			return true
		}
		if contains(c, "continue_statement") || c.kind == "try_statement" {
			return false
		}
	}
	return false
}

// acceptsEachTurn is the same of a server, which may also give up a turn when
// nobody came.
func (it *interp) acceptsEachTurn(body *node) bool {
	for c := body.first; c != nil; c = c.next {
		if c.kind == "expression_statement" && it.accepts(c) || c.kind == "try_statement" && it.acceptsOrLeaves(c) {
			return true
		}
		if contains(c, "continue_statement") {
			return false
		}
	}
	return false
}

// pauses looks for a call that waits in any case: for a line of somebody at the
// terminal, a while, or what another thread hands over.
func (it *interp) pauses(n *node) bool {
	if perhaps[n.kind] {
		return false
	}
	if n.kind == "call" && it.waiting(n) {
		return true
	}
	for c := n.first; c != nil; c = c.next {
		if it.pauses(c) {
			return true
		}
	}
	return false
}

// waiting are calls by what the module's names stand for: a method or a function
// of the program with such a name is none of them.
func (it *interp) waiting(call *node) bool {
	f := call.child("function")
	if f == nil || f.kind != "identifier" && f.kind != "attribute" {
		return false
	}
	object, method, dotted := strings.Cut(it.t.text(f), ".")
	if !dotted {
		method = object
	}
	if _, own := it.passed[method]; own || strings.Contains(method, ".") {
		return false
	}
	v := it.module.vars[object]
	name := object
	switch {
	case v != nil && (v.kind == kRef || v.kind == kObj):
		name = v.text
	case v != nil || dotted:
		return false
	}
	if dotted {
		name += "." + method
	}
	switch {
	case it.patched[name] != nil:
		return false
	case name == "time.sleep":
		return it.long(call.child("arguments"))
	case name == "input":
		return true
	}
	args := call.child("arguments")
	return queueGets[name] && args != nil && args.nth(0) == nil
}

// queueGets give what another thread or process puts in, and wait for that.
var queueGets = set("queue.Queue.get queue.LifoQueue.get queue.PriorityQueue.get queue.SimpleQueue.get multiprocessing.Queue.get multiprocessing.JoinableQueue.get")

// long: a tenth of a second or more, by a number that stands there.
func (it *interp) long(args *node) bool {
	if args == nil || args.nth(0) == nil || args.nth(1) != nil {
		return false
	}
	seconds, err := strconv.ParseFloat(it.t.text(args.nth(0)), 64)
	return err == nil && seconds >= 0.1
}

// waitedFor: what a statement starts, the next one waits for.
func (it *interp) waitedFor(block, n *node) bool {
	for c := block.first; c != nil; c = c.next {
		if c.start > n.start || c.end < n.end {
			continue
		}
		if c.kind != "expression_statement" {
			return c.kind != "try_statement" && it.waitedFor(c, n)
		}
		as := c.nth(0)
		if as == nil || as.kind != "assignment" || as.child("right") == nil || as.child("right").start != n.start || as.child("right").end != n.end {
			return false
		}
		return c.next != nil && it.ends(c.next, it.t.text(as.child("left")))
	}
	return false
}

// ends reports p.wait() or p.communicate(), with nothing that could fail before.
func (it *interp) ends(n *node, process string) bool {
	switch n.kind {
	case "expression_statement", "return_statement", "assignment", "subscript", "attribute":
	case "call":
		if f := n.child("function"); f != nil && (it.t.text(f) == process+".wait" || it.t.text(f) == process+".communicate") {
			_, own := it.passed[lastPart(it.t.text(f))]
			return !own && n.child("arguments").nth(0) == nil
		}
	default:
		return false
	}
	for c := n.first; c != nil; c = c.next {
		if it.ends(c, process) {
			return true
		}
	}
	return false
}

// swallows: a failure within is left at that, and the loop goes on.
func swallows(n *node) bool { return contains(n, "except_clause") || contains(n, "with_statement") }

func contains(n *node, kind string) bool {
	if n.kind == kind {
		return true
	}
	for c := n.first; c != nil; c = c.next {
		if contains(c, kind) {
			return true
		}
	}
	return false
}

// pacing are the last words of calls that wait, most of the time.
var pacing = set("wait communicate join sleep get recv recvfrom read readline input accept poll select next_event wait_for_event getch")

// soundsWaiting looks for one of them, with something else than a zero.
func (it *interp) soundsWaiting(n *node) bool {
	if f := n.child("function"); n.kind == "call" && f != nil && pacing[lastPart(it.t.text(f))] {
		args := n.child("arguments")
		if args == nil || args.nth(0) == nil || strings.Trim(it.t.text(args.nth(0)), "0.") != "" {
			return true
		}
	}
	for c := n.first; c != nil; c = c.next {
		if it.soundsWaiting(c) {
			return true
		}
	}
	return false
}

// starting notes what a loop without an end starts, or a function that calls
// itself.
func (it *interp) starting(kind, name string, a *arguments, n *node) {
	if name == "subprocess.Popen" && it.mayWait(a, n) {
		kind = facts.StructInfiniteLoop
	}
	it.structure(kind, name, n)
}
