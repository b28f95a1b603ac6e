package javascript

import (
	"math"
	"slices"

	"github.com/caisson-dev/caisson/policy/facts"
)

// A large program asks for the same values over and over. As a val is never
// changed, those that are needed most are made once.

// small are the numbers that programs count with.
var small = func() (kept [1024]*val) {
	for i := range kept {
		kept[i] = &val{Value: facts.Number(spell(float64(i)))}
	}
	return kept
}()

// smallNumber is f where it is one of small, nil where it is not.
func smallNumber(f float64) *val {
	if f < 0 || f >= float64(len(small)) || f != math.Trunc(f) || math.Signbit(f) {
		return nil
	}
	return small[int(f)]
}

// digits is the number that a text of up to three digits spells, nil for others.
func digits(s string) *val {
	if s == "" || len(s) > 3 || len(s) > 1 && s[0] == '0' { // 010 is eight
		return nil
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return nil
		}
		n = 10*n + int(s[i]-'0')
	}
	return small[n]
}

// string is what a string of the program says, which is told once.
func (w *walk) string(n id) *val {
	if v := w.t.strings[n]; v != nil {
		return v
	}
	s := w.stringText(n)
	w.literal(s, n)
	v := text(s)
	if w.quiet > 0 { // it was not told
		return v
	}
	if w.t.strings == nil {
		w.t.strings = map[id]*val{}
	}
	w.t.strings[n] = v
	return v
}

// covers reports that what b may be, and where it comes from, is said by a
// already, so that their union is a.
func covers(a, b *facts.Value) bool {
	if a.Type != b.Type || !a.Open && (b.Open || len(a.Alts) == 0 || len(b.Alts) == 0) || shaped(a) || shaped(b) {
		return false
	}
	full := a.Open && len(a.Alts) == facts.MaxAlts // which others would be cut off
	return (full || within(b.Alts, a.Alts)) && within(b.From, a.From)
}

// shaped reports a value of which more is known than its alternatives.
func shaped(v *facts.Value) bool {
	return v.Prefix != "" || v.Suffix != "" || v.Items != nil || v.Fields != nil || v.Func != "" || v.Recv != nil
}

func within(part, all []string) bool {
	for _, s := range part {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

// has reports that v is one of several values, and x one of them.
func (v *val) has(x *val) bool {
	for _, have := range v.alts {
		if have.same(x) {
			return true
		}
	}
	return false
}

// same reports values of which one is enough.
func (v *val) same(x *val) bool {
	return v == x || v.ref != nil && v.ref == x.ref || v.name != "" && v.name == x.name && v.page == x.page
}

// hasAll is has for x, or for all that it may be.
func (v *val) hasAll(x *val) bool {
	if v.alts == nil {
		return false
	}
	if x.alts == nil {
		return v.has(x)
	}
	for _, a := range x.alts {
		if !v.has(a) {
			return false
		}
	}
	return true
}
