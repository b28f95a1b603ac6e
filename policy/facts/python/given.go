package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// What a function of the program is given by calls that could not be followed
// to it is told by origins of its parameters, beside "param":
//
//   - "program": something of the program itself that was not followed;
//   - "words": text of the program that was not followed, and is no Python that
//     does anything, though it may be a command;
//   - "handed": whatever calls a function that was handed to something outside.
//
// A parameter that has none of them is what a caller out of sight hands over.
const (
	fromProgram = "program"
	fromWords   = "words"
	fromOutside = "handed"
)

// ofProgram is what a value may hold of the program's own text.
type ofProgram uint8

const (
	nothingOfIt ofProgram = iota
	wordsOfIt             // a message, a name with spaces, a command
	codeOfIt
)

// lookedUp is the text of an attribute whose name is not known: it may be a
// function of the program.
const lookedUp = "attribute"

// anyFunction stands for calls of something that has no name.
const anyFunction = ""

// defined notes that the program has a function of that name.
func (it *interp) defined(name string) {
	if it.passed == nil {
		it.passed = map[string][]string{anyFunction: nil}
	}
	if _, ok := it.passed[name]; !ok {
		it.passed[name] = nil
	}
}

// passes notes what a call hands to a function of that name, of an object that
// is not known: it may be one of the program.
func (it *interp) passes(name string, a *arguments) {
	before, ok := it.passed[name]
	if ok && (len(before) == 0 || before[len(before)-1] != fromProgram) {
		it.passed[name] = mix(before, it.origins(a))
	}
}

// origins are where arguments come from, and "program" or "words" at the end
// where something in them may be text of the program, or is made there.
func (it *interp) origins(a *arguments) []string {
	var from []string
	most := nothingOfIt
	add := func(v *val) {
		if most < codeOfIt {
			most = max(most, it.holds(v, 0))
			from = mix(from, v.origins(0))
		}
	}
	for _, v := range a.pos {
		add(v)
	}
	for _, k := range a.keys {
		add(a.kw[k])
	}
	if from = mix(from, a.rest); len(from) > 6 {
		most = codeOfIt
	}
	switch most {
	case codeOfIt:
		return mix(clipped(from), []string{fromProgram})
	case wordsOfIt:
		return mix(clipped(from), []string{fromWords})
	case nothingOfIt:
	}
	return from
}

// clipped leaves room for one more.
func clipped(from []string) []string { return from[:min(len(from), 6)] }

// holds says what of the program's text may be in a value: what is told of a
// value by its origins alone is not.
func (it *interp) holds(v *val, depth int) ofProgram {
	switch v.kind {
	case kNone, kBool, kInt, kFloat, kRef, kFunc, kClass, kWrap, kSpace:
		return nothingOfIt
	case kUnknown:
		if len(v.from) == 0 || v.x != nil {
			return codeOfIt
		}
		return nothingOfIt
	case kStr, kBytes:
		return it.ofTexts(v.all())
	case kAlt:
		return it.most(v.x.alts, depth)
	case kList, kTuple, kSet:
		if depth > 2 || len(v.x.items) > 16 {
			return codeOfIt
		}
		return it.most(v.x.items, depth)
	case kDict:
		if depth > 2 || len(v.x.order) > 16 {
			return codeOfIt
		}
		out := nothingOfIt
		for _, k := range v.x.order {
			out = max(out, it.holds(v.x.dict[k], depth+1))
		}
		return out
	case kInst:
		if depth > 1 || len(v.x.cls.attrs) > 32 {
			return codeOfIt
		}
		out := nothingOfIt
		for _, a := range v.x.cls.attrs {
			out = max(out, it.holds(a, depth+1))
		}
		return out
	default: // an object of something outside
		if len(v.from) > 0 || v.x == nil {
			return nothingOfIt
		}
		if v.x.str != nil {
			return codeOfIt
		}
		return it.holdsFacts(v.x.recv)
	}
}

func (it *interp) most(vs []*val, depth int) ofProgram {
	out := nothingOfIt
	for _, v := range vs {
		out = max(out, it.holds(v, depth+1))
	}
	return out
}

func (it *interp) holdsFacts(vs []facts.Value) ofProgram {
	out := nothingOfIt
	for _, v := range vs {
		if v.Prefix != "" {
			return codeOfIt
		}
		out = max(out, it.ofTexts(v.Alts), it.holdsFacts(v.Items), it.holdsFacts(v.Recv))
	}
	return out
}

func (it *interp) ofTexts(texts []string) ofProgram {
	out := nothingOfIt
	for _, t := range texts {
		out = max(out, it.ofText(t))
	}
	return out
}

// ofText tells a single word that is no program's name from words, and these
// from what may be code.
func (it *interp) ofText(text string) ofProgram {
	plain := true
	for _, c := range text {
		switch {
		case wordRune(c) || c == '.' || c == '-' || c == ':' || c == ',':
		case c == '(' || c == '[' || c == '=' || c == '@' || c == '\\' || c > 126:
			return codeOfIt
		default:
			plain = false
		}
	}
	switch {
	case plain && len(text) <= 200:
		if _, program := it.b.Tables().Programs.Get(text); !program {
			return nothingOfIt
		}
		return wordsOfIt
	case strings.Contains(text, "import"), strings.Contains(text, "lambda"), strings.Contains(text, "__"), len(text) > 2000:
		return codeOfIt
	}
	return wordsOfIt
}

// kept notes that a function is put where it is not followed, under a name.
func (it *interp) kept(v *val, name string) {
	for _, b := range v.branches() {
		it.began(b.kind == kFunc || b.kind == kClass || b.kind == kInst)
		if b.kind == kFunc && len(b.x.fn.kept) < maxKept && !slices.Contains(b.x.fn.kept, name) {
			b.x.fn.kept = append(b.x.fn.kept, name)
			it.defined(name)
		}
	}
}

// keptAll is kept for what folding takes, which may call it, or keep it.
func (it *interp) keptAll(a *arguments) {
	for _, v := range a.pos {
		if v.kind == kFunc || v.kind == kAlt {
			it.kept(v, anyFunction)
		}
	}
	for _, v := range a.kw {
		if v.kind == kFunc || v.kind == kAlt {
			it.kept(v, anyFunction)
		}
	}
}

// maxKept bounds the names of one function; what has more is called by any.
const maxKept = 8

// handed is where the parameters of a function come from that was never
// followed: r knows what reaches it.
func (it *interp) handed(f *function, r *reach) []string {
	switch {
	case f.later:
		return []string{fromOutside}
	case it.idle:
		return nil // a caller out of sight
	case r == nil || f.lambda || !r.plain[f.body] || len(f.kept) == maxKept || slices.Contains(f.kept, anyFunction):
		return []string{fromOutside}
	}
	name := f.name
	if f.cls != nil && name == "__init__" {
		name = f.cls.name
	} else if f.cls.outsider(0) {
		return []string{fromOutside} // a base may call it
	}
	from := it.passed[name]
	if r.wild || r.loose[name] || r.loose[anyMethod] || f.cls != nil && r.loose[anyMethod+f.cls.name] {
		from = mix(from, it.passed[anyFunction])
	}
	for _, name := range f.kept {
		from = mix(from, it.passed[name])
	}
	if len(from) == 8 {
		return []string{fromProgram} // there may be more
	}
	return from
}

// ownModule notes that the program looks into a module that may be its own, in
// a way that names which are not known can be reached by.
func (it *interp) ownModule(v *val) {
	if it.own {
		return
	}
	for _, b := range v.branches() {
		switch b.kind {
		case kSpace:
			it.own = it.own || b.x == nil
		case kRef:
			it.own = it.own || b.text == "__main__" || b.text == "sys.modules"
		default:
			it.own = it.own || slices.Contains(b.from, "namespace") || slices.Contains(b.from, "module")
		}
	}
}

// assigns reports that the program may give some object an attribute of that
// name itself.
func (it *interp) assigns(name string) bool {
	return it.assigned()[anyFunction] || it.attributes[name]
}

// assigned are the attributes that the program gives to objects by their names,
// and [anyFunction] where it may give some by others.
func (it *interp) assigned() map[string]bool {
	if it.attributes == nil {
		it.attributes = map[string]bool{anyFunction: it.b.Depth() > 0}
		for _, w := range []string{"setattr", "__dict__", "vars(", "__setstate__", "setdefault", "globals("} {
			if strings.Contains(it.t.src, w) {
				it.attributes[anyFunction] = true
			}
		}
		it.targets(it.t.root, false)
	}
	return it.attributes
}

// targets notes the attributes that are bound under n, in any way; bound says
// that n is a target itself.
func (it *interp) targets(n *node, bound bool) {
	for c := n.first; c != nil; c = c.next {
		at := bound
		switch {
		case c.kind == "attribute" && bound:
			it.attributes[identifier(it.t.text(c.child("attribute")))] = true
			at = false
		case c.field == "left", c.kind == "as_pattern_target", c.field == "name" && n.kind == "named_expression", n.kind == "keyword_argument" && c.field == "name":
			at = true
			if c.kind == "attribute" {
				it.attributes[identifier(it.t.text(c.child("attribute")))] = true
			}
			if c.kind == "identifier" {
				it.attributes[identifier(it.t.text(c))] = true // of a class, or a field
			}
		case c.kind == "call" || c.field == "right" || c.field == "body":
			at = false
		}
		if c.size > 1 {
			it.targets(c, at)
		}
	}
}
