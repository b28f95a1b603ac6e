package python

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// applyOwn follows functions of the program that something outside is given
// to call, with the arguments that the tables say it gets: a thread's target,
// a task of a pool, a timer.
func (it *interp) applyOwn(name string, a *arguments, n *node, s *scope) {
	api, ok := it.b.API(name)
	if !ok {
		return
	}
	for i := range api.Effects {
		if e := &api.Effects[i]; e.Do == "apply" {
			it.applyEffect(e, a, n, s)
		}
	}
}

func (it *interp) applyEffect(e *facts.Effect, a *arguments, n *node, s *scope) {
	var f *val
	for _, ref := range e.Arg {
		if f = a.ref(ref); f != nil {
			break
		}
	}
	looked := f != nil && f.kind == kUnknown && slices.Contains(f.from, "namespace") // by a name that is not known
	if f == nil || !looked && f.kind != kFunc && f.kind != kClass && f.kind != kWrap && f.kind != kInst {
		return
	}
	given := &arguments{how: "value"}
	for _, ref := range e.With {
		if over, each := strings.CutPrefix(ref, "each "); each {
			it.applyEach(f, a.from(over), n, s)
			return
		}
		it.spreadRef(given, a, strings.TrimPrefix(ref, "named "))
	}
	for _, name := range []string{"kwargs", "kwds"} {
		if kw := a.kw[name]; kw != nil {
			given.spread(kw)
		}
	}
	it.call(f, given, n, s)
}

// eachCommand reports every list of words that a command may be, where it may
// be one of several or something unknown, and every line of one of which no
// more than the beginning is known, and gives back the rest.
func (it *interp) eachCommand(name string, a *arguments, self *val, n *node) *arguments {
	if len(a.pos) == 0 || !oneOfLists(a.pos[0]) && !oneOfLines(a.pos[0]) || !it.does(name, "argv", "execv", "shell") {
		return a
	}
	rest := *a
	var other *val
	for i, b := range a.pos[0].x.alts {
		if b.isSeq() || b.kind == kUnknown && head(b) != "" && (other != nil || i+1 < len(a.pos[0].x.alts)) {
			rest.pos = append([]*val{b}, a.pos[1:]...)
			it.report(name, &rest, self, n)
		} else {
			other = join(other, b)
		}
	}
	rest.pos = append([]*val{other}, a.pos[1:]...)
	return &rest
}

// oneOfLists reports a value that is a list of words, or something unknown.
func oneOfLists(v *val) bool {
	lists, others := 0, 0
	if v.kind == kAlt {
		for _, b := range v.x.alts {
			if b.isSeq() {
				lists++
			} else {
				others++
			}
		}
	}
	return lists > 0 && others > 0
}

// oneOfLines reports a value that is one of several texts of which the
// beginnings are known, and differ.
func oneOfLines(v *val) bool {
	if v.kind != kAlt || v.open {
		return false
	}
	begun := 0
	for _, b := range v.x.alts {
		if b.kind == kUnknown && head(b) != "" {
			begun++
		}
	}
	return begun > 0 && !strings.ContainsAny(head(v), " \t")
}

// applyEach calls f for every row of what it is mapped over.
func (it *interp) applyEach(f *val, over []*val, n *node, s *scope) {
	if len(over) > 0 {
		c := &invocation{it: it, arguments: &arguments{}, n: n, s: s}
		c.each(f, false, over...)
	}
}

// spreadRef adds what one reference of the tables names to the arguments.
func (it *interp) spreadRef(given, a *arguments, ref string) {
	if strings.HasSuffix(ref, "*") {
		given.pos = append(given.pos, a.from(strings.TrimSuffix(ref, "*"))...)
		for _, k := range a.keys {
			given.set(k, a.kw[k])
		}
		return
	}
	v := a.ref(ref)
	switch {
	case v == nil:
	case v.kind == kDict:
		given.spread(v)
	case v.isSeq():
		given.pos = append(given.pos, v.x.items...)
		given.open = given.open || v.open
	default:
		given.open, given.rest = true, mix(given.rest, v.origins(0))
	}
}

// ref is the argument at a place or of a name.
func (a *arguments) ref(ref string) *val {
	if i, err := strconv.Atoi(ref); err == nil {
		return a.at(i, "")
	}
	return a.kw[ref]
}

// from are the positional arguments from a place on.
func (a *arguments) from(ref string) []*val {
	if i, err := strconv.Atoi(ref); err == nil && i >= 0 && i < len(a.pos) {
		return a.pos[i:]
	}
	return nil
}
