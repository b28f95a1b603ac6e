package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// shape is what is gathered about loops, for facts about the program's form.
type shape struct {
	endless []*node // loops around the place that never end by themselves
	forked  bool
	turns   float64 // how often the place is reached, by loops whose rounds are known; 0 is once
	said    map[string]bool
}

// enterLoop notes a loop; the result is called at its end.
func (it *interp) enterLoop(n *node) func() {
	if !it.endless(n) {
		return func() {}
	}
	it.shape.endless = append(it.shape.endless, n)
	return func() { it.shape.endless = it.shape.endless[:len(it.shape.endless)-1] }
}

// turns is how often a loop over that goes round, 0 where that is not known.
func turns(over *val, items []*val) float64 {
	if over.x != nil && over.x.size > 0 && over.kind == kList {
		return float64(over.x.size)
	}
	return float64(len(items))
}

// repeated multiplies the turns of the place; the result ends that.
func (it *interp) repeated(n float64) func() {
	before := it.shape.turns
	if n > 1 {
		it.shape.turns = max(before, 1) * n
	}
	return func() { it.shape.turns = before }
}

// endless: while True, while 1, for … in itertools.count() without an end.
func (it *interp) endless(n *node) bool {
	body := n.child("body")
	if body == nil || breaks(body) {
		return false
	}
	if n.kind != "while_statement" {
		return it.unending(n.child("right"))
	}
	c := n.child("condition")
	for c != nil && c.kind == "parenthesized_expression" {
		c = c.nth(0)
	}
	switch {
	case c == nil:
		return false
	case c.kind == "not_operator":
		v := c.nth(0)
		return v != nil && (v.kind == "false" || v.kind == "none" || v.kind == "integer" && it.t.text(v) == "0")
	}
	return c.kind == "true" || c.kind == "integer" && it.t.text(c) != "0" || c.kind == "string" && c.size > 3
}

// unending reports an iterator that never ends.
func (it *interp) unending(n *node) bool {
	if n == nil || n.kind != "call" {
		return false
	}
	name := lastPart(it.t.text(n.child("function")))
	return name == "count" || name == "cycle"
}

// starters make processes that go on with the program, or run part of it.
var starters = set(`os.fork os.forkpty pty.fork multiprocessing.Process.start subprocess.Popen os.posix_spawn os.spawnl os.spawnv os.startfile`)

// notice sees every call that is reported, for the shapes that calls make.
func (it *interp) notice(name string, a *arguments, n *node) {
	forks := strings.Contains(name, "fork")
	endless, recursive := len(it.shape.endless) > 0, it.recursive()
	switch {
	case !starters[name]:
	case name == "subprocess.Popen":
		if endless && !it.foreign(a) {
			it.structure(facts.StructForkBomb, name, n)
		}
	case recursive || endless && !it.serves(n) || forks && it.shape.forked && len(it.calls) == 0 && it.loops > 0:
		it.structure(facts.StructForkBomb, name, n)
	}
	it.shape.forked = it.shape.forked || forks
	it.scans(name, a, n)
	it.receivedCode(name, a, n)
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

// recursive reports that the function that is being followed calls itself.
func (it *interp) recursive() bool {
	for _, f := range it.calls {
		if f.active > 1 || f.callsItself() {
			return true
		}
	}
	return false
}

// callsItself is selfCall, looked for once.
func (f *function) callsItself() bool {
	if f.itself == nil {
		found := f.selfCall(f.body)
		f.itself = &found
	}
	return *f.itself
}

// selfCall looks for a call of the function's own name in its body.
func (f *function) selfCall(n *node) bool {
	if n == nil || f.lambda || n.size > 4000 {
		return false
	}
	for c := n.first; c != nil; c = c.next {
		if c.kind == "call" {
			if name := c.child("function"); name != nil && name.kind == "identifier" && f.t.text(name) == f.name {
				return true
			}
		}
		if c.size > 1 && f.selfCall(c) {
			return true
		}
	}
	return false
}

// receivedCode: what comes from the network is run.
func (it *interp) receivedCode(name string, a *arguments, n *node) {
	if !it.runs(name) {
		return
	}
	for _, v := range a.all() {
		if it.takesData(v.fact()) {
			continue
		}
		for _, from := range v.origins(0) {
			if from == "net" || strings.HasPrefix(from, "net:") {
				it.structure(facts.StructRecvExec, name, n)
				return
			}
		}
	}
}

// takesData reports whether a command names a program that starts nothing and
// runs no code: what else it is given is data. Where a program's options can
// start others, that is a finding of its own.
func (it *interp) takesData(argv facts.Value) bool {
	if argv.Type != "list" || len(argv.Items) == 0 {
		return false
	}
	name, ok := argv.Items[0].One()
	if !ok {
		return false
	}
	p, _, known := it.b.Tables().Program(name)
	return known && p.Interpreter == "" && !p.Wrapper && !p.Applet && !p.CodeArg && !p.Join && !p.Stdin && len(p.Runs) == 0
}

func (it *interp) structure(kind, detail string, n *node) {
	key := kind + detail
	if it.quiet > 0 || it.shape.said[key] {
		return
	}
	if it.shape.said == nil {
		it.shape.said = map[string]bool{}
	}
	it.shape.said[key] = true
	it.b.Struct(kind, detail, it.pos(n))
}
