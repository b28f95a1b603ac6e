package python

import (
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// iterate gives the items of v in order, and whether these are all.
func (it *interp) iterate(v *val, n *node) ([]*val, bool) {
	switch v.kind {
	case kList, kTuple, kSet:
		return v.x.items, !v.open
	case kDict:
		var keys []*val
		for _, k := range v.x.order {
			keys = append(keys, keyValue(k))
		}
		if v.open && len(keys) > 0 {
			keys = append(keys, derived(v)) // what else it holds is met as well
		}
		return keys, !v.open
	case kStr, kBytes:
		return characters(v)
	case kRef:
		if v.text == "os.environ" {
			return it.eachName(n), false
		}
		if len(v.from) > 0 {
			return []*val{{from: v.from}}, false
		}
		if it.theirs(v) {
			return []*val{mark(ofTheirs)}, false
		}
	case kUnknown:
		if marked(v, ofTheirs) || marked(v, ofListing) {
			return []*val{partOf(v)}, false
		}
	case kObj:
		if v.text == environCopy {
			return it.eachName(n), false
		}
		if item := listed(v); item != nil {
			return []*val{item}, false
		}
	case kSpace:
		if v.x == nil && v.text == "" {
			return ownNames().x.items, true
		}
		if v.x != nil && it.theirs(v.x.self) {
			return []*val{mark(ofTheirs)}, false
		}
	case kAlt:
		var all []*val
		for _, b := range v.x.alts {
			items, ok := it.iterate(b, n)
			if !ok {
				return nil, false
			}
			all = append(all, items...)
		}
		return all, false
	case kClass:
		return v.x.cls.members()
	case kInst:
		if v.x.cls.tuple {
			return v.x.cls.items(), true
		}
		if m := v.x.cls.member("__iter__", 0); m != nil && m.kind == kFunc {
			got := it.follow(m.x.fn, &arguments{}, v, n)
			if got.isSeq() {
				return got.x.items, false
			}
		}
	default: // its items are not known
	}
	return nil, false
}

// characters are the items of a text, or of bytes.
func characters(v *val) ([]*val, bool) {
	s, ok := v.one()
	if !ok || len(s) > 4096 {
		return nil, false
	}
	out := make([]*val, 0, len(s))
	if v.kind == kBytes {
		for i := range len(s) {
			out = append(out, integer(int64(s[i])).with(v.from))
		}
		return out, true
	}
	for _, r := range s {
		out = append(out, str(string(r)).with(v.from))
	}
	return out, true
}

// listed is what stands for each item of a listing.
func listed(v *val) *val {
	switch {
	case v.text == "os.listdir":
		return mark(ofListing)
	case v.x != nil && v.x.how == ofTheirs:
		return mark(ofTheirs)
	case listings[v.text] && v.x != nil && v.x.self != nil && isPath(v.x.self):
		return joinPath(v.x.self, unknown)
	}
	return nil
}

// listings give the paths below one.
var listings = map[string]bool{"pathlib.Path.iterdir": true, "pathlib.Path.glob": true, "pathlib.Path.rglob": true}

// items are the fields of a named tuple.
func (c *class) items() []*val {
	out := make([]*val, len(c.fields))
	for i, name := range c.fields {
		if out[i] = c.member(name, 0); out[i] == nil {
			out[i] = unknown
		}
	}
	return out
}

// members are what an enumeration lists: the constants of its body.
func (c *class) members() ([]*val, bool) {
	if o := c.outside(0); o == nil || !strings.HasPrefix(o.text, "enum.") {
		return nil, false
	}
	var out []*val
	for _, name := range slices.Sorted(maps.Keys(c.scope.vars)) {
		if v := c.scope.vars[name]; v != nil && (v.isConst() || v.isSeq() || v.kind == kDict) && name[0] != '_' {
			out = append(out, v)
		}
	}
	return out, true
}

// keyValue is the constant that a dict key stands for.
func keyValue(key string) *val {
	k := kind(0)
	for i := range len(key) {
		if key[i] == ':' {
			if k == 0 {
				return unknown
			}
			return &val{kind: k, text: key[i+1:]}
		}
		if key[i] < '0' || key[i] > '9' {
			return unknown
		}
		k = k*10 + kind(key[i]-'0')
	}
	return unknown
}

func (it *interp) dumpEnv(n *node) {
	if it.quiet == 0 {
		it.b.Env("dump", facts.Value{}, facts.Value{}, it.pos(n))
	}
}

// listEnv: all variables are gone through, or those of one prefix.
func (it *interp) listEnv(n *node) {
	if it.picks == 0 && it.sifting == 0 {
		it.dumpEnv(n)
	} else if it.quiet == 0 {
		it.b.Env("filter", facts.Value{}, facts.Value{}, it.pos(n))
	}
}

// environCopy is the type of a copy of the environment.
const environCopy = "os.environ.copy"

// eachName is the name of any variable: their values are got one by one, see env.
func (it *interp) eachName(n *node) []*val {
	it.sifting++
	defer func() { it.sifting-- }()
	it.listEnv(n)
	return []*val{{from: it.eachEnv()}}
}

// eachEnv is where what is gone through comes from.
func (it *interp) eachEnv() []string {
	if it.picks > 0 {
		return []string{"env"}
	}
	return []string{"env", everyVariable}
}

// everyVariable is the origin of what goes through the whole environment.
const everyVariable = "env_each"

// sifting are functions and methods that look at texts, or gather them.
var sifting = map[string]bool{
	"lower": true, "upper": true, "casefold": true, "strip": true, "lstrip": true, "rstrip": true, "split": true, "rsplit": true,
	"partition": true, "rpartition": true, "replace": true, "removeprefix": true, "removesuffix": true, "startswith": true, "endswith": true,
	"isdigit": true, "isupper": true, "islower": true, "title": true, "append": true, "add": true, "setdefault": true, "get": true, "pop": true,
	"items": true, "keys": true, "values": true, "encode": true, "decode": true, "encodekey": true, "encodevalue": true, "decodekey": true, "decodevalue": true, "len": true, "str": true, "int": true, "bool": true, "match": true,
	"search": true, "fullmatch": true, "isinstance": true, "sorted": true, "dict": true, "list": true,
	"any": true, "all": true,
}

// sifts reports that nothing under n hands out what it goes through: all it
// calls looks at texts, or gathers them. Where the gathered goes is followed.
func (it *interp) sifts(n *node) bool { return it.siftsIn(n, nil) }

// siftsIn is sifts; around are the bodies of functions that lead to n.
func (it *interp) siftsIn(n *node, around []*node) bool {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "call":
			f := c.child("function")
			if f != nil && f.kind == "attribute" {
				f = f.child("attribute")
			}
			if f == nil || !sifting[it.t.text(f)] && !it.ownSifts(f, around) {
				return false
			}
		case "yield", "raise_statement", "interpolation":
			return false
		}
		if c.size > 1 && !it.siftsIn(c, around) {
			return false
		}
	}
	return true
}

// ownSifts is sifts for a function of the module that is called by its name.
func (it *interp) ownSifts(f *node, around []*node) bool {
	if f.kind != "identifier" || len(around) > 2 {
		return false
	}
	v := it.module.vars[identifier(it.t.text(f))]
	if v != nil && v.kind == kRef && memberTests[v.text] {
		return true
	}
	if v == nil || v.kind != kFunc || v.x.fn.t != it.t || v.x.fn.body == nil {
		return false
	}
	body := v.x.fn.body
	return slices.Contains(around, body) || it.siftsIn(body, append(slices.Clone(around), body))
}

// memberTests are methods of constants that were given a name.
var memberTests = map[string]bool{"set.__contains__": true, "dict.__contains__": true, "list.__contains__": true, "dict.get": true}

// pickers are methods that tell one name from others.
var pickers = []string{".startswith(", ".endswith(", ".match(", ".fullmatch(", ".search("}

// picked reports a condition that compares with a text that is not empty.
func (it *interp) picked(cond *node, s *scope) bool {
	if cond == nil {
		return false
	}
	text := it.t.text(cond)
	if !slices.ContainsFunc(pickers, func(p string) bool { return strings.Contains(text, p) }) || strings.Contains(text, " or ") || strings.Contains(text, "not ") || facts.SeeksSecrets(text) {
		return false
	}
	found := false
	var look func(n *node)
	look = func(n *node) {
		for c := n.first; c != nil; c = c.next {
			if c.kind == "string" {
				found = found || len(strings.Trim(it.t.text(c), "rbuf\"'^.*")) > 1
			} else {
				look(c)
			}
		}
	}
	look(cond)
	return found || it.prefixed(wrapped(cond), s)
}

// prefixed reports a condition that compares the beginning of a name with a
// value that is no empty text, or is what a caller out of sight hands over.
func (it *interp) prefixed(n *node, s *scope) bool {
	for c := n.first; c != nil; c = c.next {
		if f, args := c.child("function"), c.child("arguments"); c.kind == "call" && f != nil && args != nil && f.kind == "attribute" && it.t.text(f.child("attribute")) == "startswith" {
			it.quiet++
			v := it.evalOr(args.nth(0), s)
			it.quiet--
			if v.kind == kStr && !v.open && !slices.ContainsFunc(v.all(), func(t string) bool { return len(t) < 2 }) {
				return true
			}
			return v.kind == kUnknown && len(v.from) == 1 && v.from[0] == "param"
		}
		if c.size > 1 && it.prefixed(c, s) {
			return true
		}
	}
	return false
}

// comprehension folds a comprehension over constants, and follows the body
// once with what is known where it cannot.
func (it *interp) comprehension(k kind, n *node, outer *scope) *val {
	s := newScope(outer)
	s.globals, s.fn = outer.globals, outer.fn
	var clauses []*node
	n.each(func(c *node) {
		if c.kind == "for_in_clause" || c.kind == "if_clause" {
			clauses = append(clauses, c)
		}
	})
	out := list(k, nil)
	if k == kDict {
		out.x.dict = map[string]*val{}
	}
	body := n.child("body")
	if body == nil {
		return unknown
	}
	for _, c := range clauses {
		if c.kind == "if_clause" && it.picked(c, s) {
			it.picks++
			defer func() { it.picks-- }()
			break
		}
	}
	if it.sifts(n) {
		it.sifting++
		defer func() { it.sifting-- }()
	}
	rounds := 0
	add := func() {
		rounds++
		if k != kDict {
			out.x.items = append(out.x.items, it.eval(body, s))
			return
		}
		out.put(it.evalOr(body.child("key"), s), it.evalOr(body.child("value"), s))
	}
	it.clause(clauses, out, s, add, &rounds, int(n.size))
	return out
}

// clause runs the clauses from the first on, and add for every combination.
func (it *interp) clause(clauses []*node, out *val, s *scope, add func(), rounds *int, cost int) {
	if it.over {
		return
	}
	if len(clauses) == 0 {
		add()
		return
	}
	c, rest := clauses[0], clauses[1:]
	if c.kind == "if_clause" {
		is, certain := it.evalOr(c.nth(0), s).truth()
		if certain && !is {
			return
		}
		out.open = out.open || !certain
		it.clause(rest, out, s, add, rounds, cost)
		return
	}
	left, right := c.child("left"), c.child("right")
	over := it.evalOr(right, s)
	items, known := it.iterate(over, c)
	defer it.repeated(turns(over, items))()
	if known && len(items) <= 4096 && (len(items)+*rounds)*cost*it.unroll <= 8*unrollNodes && it.steps < it.limit/2 {
		for _, item := range items {
			it.assign(left, item, s)
			it.clause(rest, out, s, add, rounds, cost)
		}
		return
	}
	out.open = true
	out.from = mix(out.from, over.origins(0))
	it.assign(left, widest(items, over), s)
	it.clause(rest, out, s, add, rounds, cost)
}

// oneOfEach is what a loop may go over where that is one of several lists: the
// items of all of them.
func oneOfEach(v *val) *val {
	if v.kind != kAlt || v.open {
		return v
	}
	out := &val{kind: kList, x: &extra{}}
	for _, b := range v.x.alts {
		if !b.isSeq() || b.open || len(out.x.items)+len(b.x.items) > maxUnroll {
			return v
		}
		for _, item := range b.x.items {
			if !slices.Contains(out.x.items, item) {
				out.x.items = append(out.x.items, item)
			}
		}
		out.from = mix(out.from, b.from)
	}
	return out
}

// everyEnv reports the whole environment, or a copy of it.
func (v *val) everyEnv() bool {
	return v.kind == kRef && v.text == "os.environ" || v.kind == kObj && v.text == "os.environ.copy"
}
