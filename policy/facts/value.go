package facts

import (
	"slices"
	"strings"
)

// Limits of folding. What grows past them is opaque.
const (
	MaxAlts   = 16       // alternatives of one value
	MaxFolded = 64 << 10 // bytes of one folded value
	maxItems  = 256      // elements of a folded list
	maxFrom   = 8        // origins of one value
)

// Value is what is known about a value of the program without running it. The
// zero value is opaque: nothing is known.
//
// A Value is immutable: functions return new ones.
type Value struct {
	// Type is str, bytes, int, float, bool, none, list, dict, callable,
	// regexp, or the dotted name of what made it ("socket.socket"), or "".
	Type string `json:"type,omitempty"`
	// Alts are the values it can have, as text. Bytes are kept as they are;
	// numbers in decimal; booleans as "true" and "false".
	Alts []string `json:"alts,omitempty"`
	// Open says that it may have other values than Alts.
	Open bool `json:"open,omitempty"`
	// Prefix and Suffix are what is known of a text that has no Alts.
	Prefix string `json:"prefix,omitempty"`
	Suffix string `json:"suffix,omitempty"`
	// Items are the elements of a list or tuple (Type list).
	Items []Value `json:"items,omitempty"`
	// Fields are the members of a dict or object (Type dict), and named
	// arguments that a constructor was given.
	Fields map[string]Value `json:"fields,omitempty"`
	// Func is the resolved name of a callable (Type callable).
	Func string `json:"func,omitempty"`
	// Recv are the arguments of the constructor that made it, where Type is a
	// dotted name.
	Recv []Value `json:"recv,omitempty"`
	// From is where it comes from: "net", "net:HOST", "file:PATH", "env",
	// "env:NAME", "stdin", "argv", "decoded" (it was base64 or the like),
	// "clipboard", "param". Derived values keep it.
	From []string `json:"from,omitempty"`
}

// Opaque is a value of which only the origins are known.
func Opaque(from ...string) Value { return Value{From: clip(from)} }

// Text is a text that is one of alts. More than [MaxAlts], or one longer than
// [MaxFolded], make it opaque; none does too.
func Text(alts ...string) Value { return typed("str", alts) }

// Bytes is [Text] for bytes.
func Bytes(alts ...string) Value { return typed("bytes", alts) }

func typed(t string, alts []string) Value {
	u := make([]string, 0, len(alts))
	for _, a := range alts {
		if len(a) > MaxFolded {
			return Value{Type: t, Prefix: head(a), Suffix: tail(a)}
		}
		if !slices.Contains(u, a) {
			u = append(u, a)
		}
	}
	if len(u) > MaxAlts || len(u) == 0 {
		return Value{Type: t}
	}
	return Value{Type: t, Alts: u}
}

// Number is a number, in decimal.
func Number(text string) Value { return Value{Type: "int", Alts: []string{text}} }

// Partial is a text of which the beginning and the end are known.
func Partial(prefix, suffix string) Value {
	return Value{Type: "str", Prefix: head(prefix), Suffix: tail(suffix)}
}

// List is a list, tuple or array. Too many items make it opaque.
func List(items ...Value) Value {
	if len(items) > maxItems {
		return Value{Type: "list", Open: true, Items: slices.Clone(items[:maxItems])}
	}
	return Value{Type: "list", Items: slices.Clone(items)}
}

// Callable is a function as a value, under its resolved name.
func Callable(name string) Value { return Value{Type: "callable", Func: name} }

// Known reports whether every value it can have is in Alts.
func (v Value) Known() bool { return len(v.Alts) > 0 && !v.Open }

// One gives the only value it can have.
func (v Value) One() (string, bool) {
	if len(v.Alts) == 1 && !v.Open {
		return v.Alts[0], true
	}
	return "", false
}

// IsOpaque reports that nothing at all is known of its text.
func (v Value) IsOpaque() bool {
	return len(v.Alts) == 0 && v.Prefix == "" && v.Suffix == "" && v.Items == nil && v.Fields == nil && v.Func == ""
}

// Truthy reports whether it may be true, and whether that is certain.
func (v Value) Truthy() (may, certain bool) {
	if !v.Known() {
		if v.Items != nil {
			return len(v.Items) > 0, !v.Open
		}
		return true, false
	}
	n := 0
	for _, a := range v.Alts {
		if a != "" && a != "false" && a != "0" && a != "False" && v.Type != "none" {
			n++
		}
	}
	return n > 0, n == 0 || n == len(v.Alts)
}

// WithFrom returns v with more origins.
func (v Value) WithFrom(from ...string) Value {
	v.From = clip(append(slices.Clone(v.From), from...))
	return v
}

// Map applies f to every alternative; f returns false for what it cannot do.
// A value that is not known keeps its origins and loses what was known of it.
func (v Value) Map(f func(string) (string, bool)) Value {
	out := Value{Type: v.Type, Open: v.Open, From: v.From}
	alts := make([]string, 0, len(v.Alts))
	for _, a := range v.Alts {
		s, ok := f(a)
		if !ok || len(s) > MaxFolded {
			out.Open = true
			continue
		}
		if !slices.Contains(alts, s) {
			alts = append(alts, s)
		}
	}
	if len(alts) == 0 {
		return Opaque(v.From...)
	}
	out.Alts = alts
	return out
}

// Union is a value that may be either.
func Union(a, b Value) Value {
	out := Value{Type: a.Type, Open: a.Open || b.Open || len(a.Alts) == 0 || len(b.Alts) == 0}
	out.From = clip(append(slices.Clone(a.From), b.From...))
	if a.Type != b.Type {
		out.Type = ""
	}
	alts := slices.Clone(a.Alts)
	for _, s := range b.Alts {
		if !slices.Contains(alts, s) {
			alts = append(alts, s)
		}
	}
	if len(alts) > MaxAlts {
		alts, out.Open = alts[:MaxAlts], true
	}
	out.Alts = alts
	if len(alts) > 0 || a.Type != b.Type {
		return out
	}
	// Neither has alternatives: keep the shape where they agree on it.
	switch {
	case a.Func == b.Func && a.Func != "":
		out.Func, out.Open = a.Func, false
	case a.Recv != nil || a.Items != nil || a.Fields != nil:
		out.Recv, out.Items, out.Fields = a.Recv, a.Items, a.Fields
	case b.Recv != nil || b.Items != nil || b.Fields != nil:
		out.Recv, out.Items, out.Fields = b.Recv, b.Items, b.Fields
	}
	return out
}

// Concat joins texts; what is known at both ends survives an unknown middle.
func Concat(parts ...Value) Value {
	acc := Text("")
	for i, p := range parts {
		if i == 0 {
			acc = p
			if acc.Type == "" {
				acc.Type = "str"
			}
			continue
		}
		acc = concat2(acc, p)
	}
	return acc
}

func concat2(a, b Value) Value {
	from := clip(append(slices.Clone(a.From), b.From...))
	if a.Known() && b.Known() && len(a.Alts)*len(b.Alts) <= MaxAlts {
		v := typed(a.Type, concatAlts(a, b))
		v.From = from
		return v
	}
	v := Value{Type: a.Type, From: from}
	if len(a.Alts) > 0 && len(b.Alts) > 0 && len(a.Alts)*len(b.Alts) <= MaxAlts {
		if alts := concatAlts(a, b); len(alts) > 0 {
			v = typed(a.Type, alts)
		}
		v.Open, v.From = len(v.Alts) > 0, from // what it is where nobody says otherwise
	}
	v.Prefix = a.Head()
	if s, ok := a.One(); ok {
		v.Prefix = head(s + b.Head())
	}
	v.Suffix = b.Tail()
	if s, ok := b.One(); ok {
		v.Suffix = tail(a.Tail() + s)
	}
	return v
}

// concatAlts are all texts that the two can come to, without those that are
// too long.
func concatAlts(a, b Value) []string {
	alts := make([]string, 0, len(a.Alts)*len(b.Alts))
	for _, x := range a.Alts {
		for _, y := range b.Alts {
			if (x != "" || !a.Open) && (y != "" || !b.Open) { // an empty default stands for nothing
				alts = append(alts, x+y)
			}
		}
	}
	return alts
}

// Head is the longest text that it is known to begin with.
func (v Value) Head() string {
	if !v.Known() {
		return v.Prefix
	}
	p := v.Alts[0]
	for _, a := range v.Alts[1:] {
		n := 0
		for n < len(p) && n < len(a) && p[n] == a[n] {
			n++
		}
		p = p[:n]
	}
	return head(p)
}

// Tail is the longest text that it is known to end with.
func (v Value) Tail() string {
	if !v.Known() {
		return v.Suffix
	}
	p := v.Alts[0]
	for _, a := range v.Alts[1:] {
		for !strings.HasSuffix(a, p) {
			p = p[1:]
		}
	}
	return tail(p)
}

// Join is sep.join(items).
func Join(sep Value, items []Value) Value {
	if len(items) == 0 {
		return Text("")
	}
	parts := make([]Value, 0, 2*len(items)-1)
	for i, it := range items {
		if i > 0 {
			parts = append(parts, sep)
		}
		parts = append(parts, it)
	}
	return Concat(parts...)
}

// keptEnds bounds what is kept of the ends of a text that is known in part.
const keptEnds = 4096

func head(s string) string {
	if len(s) > keptEnds {
		return s[:keptEnds]
	}
	return s
}

func tail(s string) string {
	if len(s) > keptEnds {
		return s[len(s)-keptEnds:]
	}
	return s
}

func clip(from []string) []string {
	if len(from) >= maxFrom { // a list that is full may have been cut off
		from = folded(from)
	}
	out := make([]string, 0, len(from))
	for _, f := range from {
		if len(out) < maxFrom && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// FromMore is an origin that stands for others, of which there were too many.
const FromMore = "more"

// folded takes all variables of the environment for one origin.
func folded(from []string) []string {
	out := make([]string, 0, len(from))
	for _, f := range from {
		if strings.HasPrefix(f, "env:") {
			f = "env"
		}
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}
