package shell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/policy/facts"
)

// A shell string cannot hold a NUL byte, and SOH never occurs in honest
// source, so both serve as marks inside a folded string; [clean] keeps them
// out of what comes from the source.
const (
	hole  = "\x00" // a part that could not be resolved
	unset = "\x01" // the value of a variable that nobody assigned: empty, most likely
)

// keptText is what stays of a text longer than [facts.MaxFolded], before its
// hole.
const keptText = 4 << 10

// text is a folded string: one of its alternatives, each of which may have
// holes, and where it comes from. The zero text is the empty string. A text is
// never changed in place.
type text struct {
	alts []string
	from []string
}

var unassigned = text{alts: []string{unset}}

// opaque is a text of which only the origins are known.
func opaque(from ...string) text { return text{alts: []string{hole}, from: from} }

func lit(s string) text {
	if s == "" {
		return text{}
	}
	return text{alts: []string{bound(s)}}
}

// clean removes the marks from foreign text, as a shell drops NUL bytes.
func clean(s string) string {
	if strings.IndexByte(s, hole[0]) < 0 && strings.IndexByte(s, unset[0]) < 0 {
		return s
	}
	return strings.NewReplacer(hole, "", unset, "").Replace(s)
}

func bound(s string) string {
	if len(s) <= facts.MaxFolded {
		return s
	}
	return s[:keptText] + hole
}

// known reports whether s has neither kind of mark.
func known(s string) bool {
	return strings.IndexByte(s, hole[0]) < 0 && strings.IndexByte(s, unset[0]) < 0
}

func (t text) all() []string {
	if len(t.alts) == 0 {
		return []string{""}
	}
	return t.alts
}

// one returns the only alternative of t, if it has one without holes.
func (t text) one() (string, bool) {
	switch len(t.alts) {
	case 0:
		return "", true
	case 1:
		return t.alts[0], known(t.alts[0])
	}
	return "", false
}

// guess returns the first alternative with its unset variables taken as empty.
func (t text) guess() (string, bool) {
	s := strings.ReplaceAll(t.all()[0], unset, "")
	return s, strings.IndexByte(s, hole[0]) < 0
}

// known reports whether every alternative is resolved.
func (t text) known() bool {
	return !slices.ContainsFunc(t.alts, func(s string) bool { return !known(s) })
}

func (t text) empty() bool { return len(t.alts) == 0 || len(t.alts) == 1 && t.alts[0] == "" }

func (t text) is(s string) bool { return len(t.alts) == 1 && t.alts[0] == s }

func (t text) equal(o text) bool {
	return slices.Equal(t.alts, o.alts) && slices.Equal(t.from, o.from)
}

// has reports whether some alternative satisfies f.
func (t text) has(f func(string) bool) bool { return slices.ContainsFunc(t.all(), f) }

// tainted adds origins.
func (t text) tainted(from ...string) text {
	t.from = origins(t.from, from)
	return t
}

func origins(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	if len(a) == 0 {
		return b
	}
	out := slices.Clone(a)
	for _, f := range b {
		switch {
		case slices.Contains(out, f):
		case len(out) < facts.MaxAlts:
			out = append(out, f)
		case !slices.Contains(out, facts.FromMore):
			out = append(out, facts.FromMore)
		}
	}
	return out
}

// concat joins two texts. Too many combinations keep the left and lose the
// right to a hole.
func concat(a, b text) text {
	from := origins(a.from, b.from)
	if b.empty() {
		return text{a.alts, from}
	}
	if a.empty() {
		return text{b.alts, from}
	}
	right := b.alts
	if len(a.alts)*len(right) > facts.MaxAlts {
		right = []string{hole}
	}
	var out []string
	for _, x := range a.alts {
		for _, y := range right {
			out = with(out, bound(x+y))
		}
	}
	return text{out, from}
}

// with adds an alternative. Beyond the bound, the last becomes what it and all
// those that follow begin with, and a hole.
func with(alts []string, s string) []string {
	switch {
	case slices.ContainsFunc(alts, func(a string) bool { return a == s || a == hole }) && len(alts) >= facts.MaxAlts, slices.Contains(alts, s):
		return alts
	case len(alts) < facts.MaxAlts:
		return append(alts, s)
	}
	last := facts.MaxAlts - 1
	return append(slices.Clone(alts[:last]), beginning(alts[last], s)+hole)
}

// beginning is what two texts both begin with, before any hole.
func beginning(a, b string) string {
	a, _, _ = strings.Cut(a, hole)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] && a[n] != unset[0] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return a[:n]
}

// union is what a text may be after a branch.
func union(a, b text) text {
	if a.equal(b) {
		return a
	}
	out := slices.Clone(a.all())
	for _, s := range b.all() {
		out = with(out, s)
	}
	return text{out, origins(a.from, b.from)}
}

// each maps the alternatives. f sees only those without holes, with unset
// variables taken as empty; the others stay unknown.
func (t text) each(f func(string) (string, bool)) text {
	var out []string
	for _, s := range t.all() {
		r, ok := strings.ReplaceAll(s, unset, ""), false
		blank := r != s && strings.TrimSpace(r) == ""
		if known(r) {
			r, ok = f(r)
		}
		if ok && blank && strings.TrimSpace(r) == "" {
			r = unset + r // there is as little of it as before
		}
		if !ok {
			r = hole
		}
		out = with(out, bound(r))
	}
	return text{out, t.from}
}

// trimNewlines does what command substitution does to its output.
func (t text) trimNewlines() text {
	if !t.has(func(s string) bool { return strings.HasSuffix(s, "\n") }) {
		return t
	}
	var out []string
	for _, s := range t.alts {
		out = with(out, strings.TrimRight(s, "\n"))
	}
	return text{out, t.from}
}

// value is t as rules see it.
func (t text) value() facts.Value {
	if len(t.alts) == 1 && known(t.alts[0]) {
		return facts.Value{Type: "str", Alts: t.alts[:1:1], From: t.from[:min(len(t.from), 8):min(len(t.from), 8)]}
	}
	var alts []string
	open, root := false, false
	for _, s := range t.all() {
		if strings.Contains(s, hole) {
			open = true
			continue
		}
		if strings.Contains(s, unset) {
			open = open || !within(s)
			if s = erased(s); s == hole {
				continue
			}
			if s == mayBeRoot {
				root = true
				continue
			}
		}
		alts = append(alts, s)
	}
	if len(alts) > 0 {
		v := facts.Text(alts...)
		v.Open = v.Open || open
		return v.WithFrom(t.from...)
	}
	if root {
		return facts.Partial("/", "").WithFrom(t.from...)
	}
	return t.partial().WithFrom(t.from...)
}

// partial keeps the ends that all alternatives have in common.
func (t text) partial() facts.Value {
	var head, tail string
	for i, s := range t.all() {
		s = strings.ReplaceAll(s, unset, hole)
		first, last := s[:strings.Index(s, hole)], s[strings.LastIndex(s, hole)+1:]
		if i == 0 {
			head, tail = first, last
			continue
		}
		for !strings.HasPrefix(first, head) {
			head = head[:len(head)-1]
		}
		for !strings.HasSuffix(last, tail) {
			tail = tail[1:]
		}
	}
	return facts.Partial(head, tail)
}

// within reports that all unset variables of s stand inside its words, which is
// a way to disguise words, and not one to give them values.
func within(s string) bool {
	for i := range len(s) {
		if s[i] != unset[0] {
			continue
		}
		if i == 0 || i+1 == len(s) || !letter(s[i-1]) || !letter(s[i+1]) {
			return false
		}
	}
	return true
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == unset[0]
}

// mayBeRoot is a path that is the root if nobody gives its variable a value.
const mayBeRoot = "/" + hole

// erased takes unset variables as empty, as a shell would. A path that begins
// with one is more likely given from outside, and a "~" behind one is no home.
func erased(s string) string {
	r := strings.ReplaceAll(s, unset, "")
	switch {
	case strings.HasPrefix(s, unset) && strings.HasPrefix(r, "~"):
		return hole
	case !strings.HasPrefix(s, unset) || !strings.HasPrefix(r, "/"):
		return r
	case strings.Trim(r, "/.*") == "":
		return mayBeRoot
	}
	return hole
}

// folded is a value as text.
func folded(v facts.Value) text {
	var alts []string
	for _, a := range v.Alts {
		alts = with(alts, bound(clean(a)))
	}
	if len(v.Alts) == 0 {
		alts = []string{clean(v.Prefix) + hole + clean(v.Suffix)}
	} else if v.Open {
		alts = with(alts, hole)
	}
	return text{alts, v.From}
}
