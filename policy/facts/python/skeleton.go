package python

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// A skeleton is a text that the program writes down but for holes, of which it
// is known what can fill them: numbers, names of files, and what an ordinary
// module that is not the program's says by itself.
const (
	ofTheirs  = "theirs"  // a module of others says it
	ofListing = "listing" // a file of a folder is called so, or a part of that
	ofNumber  = "number"
)

// piece is a part of a skeleton: known text, or a hole.
type piece struct {
	text string
	hole string // what fills it, "" where text is known
	from []string
}

// maxPieces bounds the pieces of a skeleton.
const maxPieces = 64

// mark is a text that is not known but for how it came to be.
func mark(how string) *val { return &val{x: &extra{how: how}} }

// manyOf are several of a kind.
func manyOf(how string) *val {
	out := list(kList, []*val{mark(how)})
	out.open = true
	return out
}

// partOf is what an item, or a cut, of v is: no more is known of that than of v.
func partOf(v *val) *val {
	if marked(v, ofTheirs) || marked(v, ofListing) {
		return mark(v.x.how)
	}
	return derived(v)
}

// counted is a number as text.
func counted(v *val) *val {
	if v.kind == kUnknown && !marked(v, ofOwnProcess) {
		return &val{from: v.from, x: &extra{how: ofNumber}}
	}
	return v
}

// pieces are those of a text, nil where it is no skeleton.
func (v *val) pieces() []piece {
	if s, ok := v.one(); ok && v.isText() && len(v.from) == 0 {
		return []piece{{text: s}}
	}
	switch {
	case v.kind != kUnknown || v.x == nil:
		return nil
	case v.x.how == ofNumber, v.x.how == ofOwnProcess, len(v.from) == 0 && (v.x.how == ofTheirs || v.x.how == ofListing):
		return []piece{{hole: v.x.how, from: v.from}}
	}
	return v.x.parts
}

// joined are the pieces of two texts, one behind the other.
func joined(a, b *val) []piece {
	p, q := a.pieces(), b.pieces()
	if len(p) == 0 || len(q) == 0 || len(p)+len(q) > maxPieces {
		return nil
	}
	return append(slices.Clip(p), q...)
}

// placeholder begins the name that stands for a hole.
const placeholder = "caisson_hole_"

func hollowName(name string) bool { return strings.Contains(name, placeholder) }

// explained reports that a text has no origins but those of its holes.
func explained(v *val) bool {
	return !slices.ContainsFunc(v.from, func(from string) bool {
		return !slices.ContainsFunc(v.x.parts, func(p piece) bool { return slices.Contains(p.from, from) })
	})
}

// filled is a skeleton with a name in each hole, a different one each time, as
// two that look alike need not be, and whether names of files are among it.
func filled(parts []piece) (text string, listed bool) {
	var out strings.Builder
	for i, p := range parts {
		switch p.hole {
		case "":
			out.WriteString(p.text)
		case ofNumber, ofOwnProcess:
			out.WriteString("7")
		default:
			out.WriteString(placeholder + strconv.Itoa(i) + "_")
		}
		listed = listed || p.hole == ofListing
	}
	return out.String(), listed
}

// evaluateSkeleton is exec or eval of a skeleton that only imports from packages
// that it names, or uses nothing but what it binds itself and ordinary modules;
// nil for any other text. What it binds has names that are not known.
func (c *invocation) evaluateSkeleton(code *val) *val {
	if code.kind != kUnknown || code.x == nil || len(code.x.parts) == 0 || !explained(code) || c.it.inlined > 0 {
		return nil
	}
	text, listed := filled(code.x.parts)
	t := c.it.inlinable(str(text))
	if t == nil || strings.Contains(c.it.t.src, placeholder) {
		return nil
	}
	if c.name == "exec" && c.it.imports(t) && (!listed || !c.it.b.Changes()) {
		if heads, ok := t.heads(); ok && (c.ownNames() || c.opensNames()) {
			return c.importSkeleton(heads)
		}
		return nil
	}
	if listed || !c.it.tameSkeleton(t, c) || !c.ownNames() && !c.opensNames() {
		return nil
	}
	m := c.it.b.Mark()
	c.it.b.Offers(true)
	given := &arguments{pos: append([]*val{str(text)}, c.pos[min(1, len(c.pos)):]...), kw: c.kw, keys: c.keys, how: c.how}
	got := c.it.report(c.name, given, nil, c.n)
	c.it.b.Offers(false)
	if c.it.quiet == 0 && !c.it.b.Told(m) {
		c.it.b.Tame(m)
	}
	if c.name == "eval" {
		return fromSomewhere
	}
	return got
}

// importSkeleton is the import of modules whose own names are not known.
func (c *invocation) importSkeleton(heads []string) *val {
	for _, head := range heads {
		c.it.dynamic(facts.DynImport, head, c.n)
	}
	return none
}

// heads are the packages that a text imports from where the name of a module has
// a hole, which the text itself names.
func (t *tree) heads() ([]string, bool) {
	var heads []string
	ok := true
	for n := t.root.first; n != nil; n = n.next {
		from := n.child("module_name")
		n.each(func(k *node) {
			name, _, hole := strings.Cut(t.text(k), placeholder)
			switch {
			case !hole || k.kind == "comment":
				return
			case from != nil && k != from: // something that a module has, or the module itself
				name = t.text(from) + "."
			}
			ok = ok && strings.Contains(name, ".")
			heads = append(heads, name)
		})
	}
	return heads, ok && len(heads) > 0
}

// tameSkeleton is tame for a skeleton, which uses no function of the program.
func (it *interp) tameSkeleton(t *tree, c *invocation) bool {
	if it.shaken || c.open {
		return false
	}
	for name, v := range it.patched {
		if builtins[name] || v.kind != kRef || it.runs(v.text) || it.dangerous(v.text) {
			return false
		}
	}
	k := &tamer{it: it, t: t, s: c.s, bound: map[string]bool{}, hollow: true}
	if !c.ownNames() {
		k.apart = c.all()[1:]
		if slices.ContainsFunc(k.apart, func(v *val) bool { return v.kind != kDict || v.open || v.otherBuiltins() }) {
			return false
		}
	}
	k.binds(t.root)
	return k.check(t.root) && (!k.calls || !k.words)
}
