package python

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// kind is what sort of thing a value is.
type kind uint8

const (
	kUnknown kind = iota
	kNone
	kBool // text "true" or "false"
	kInt  // text in decimal
	kFloat
	kStr
	kBytes
	kList
	kTuple
	kSet
	kDict
	kRef   // something outside of the program, by dotted name: a module, a function, a class
	kObj   // what a call of something outside gave: text is its type
	kFunc  // a function or lambda of the program
	kClass // a class of the program
	kInst  // an instance of one
	kWrap  // a callable with arguments bound, or an attrgetter or methodcaller
	kSpace // a namespace as a dictionary: globals(), vars(os), os.__dict__
	kAlt   // one of several, in x.alts
)

var typeNames = [...]string{
	kNone: "none", kBool: "bool", kInt: "int", kFloat: "float", kStr: "str", kBytes: "bytes",
	kList: "list", kTuple: "list", kSet: "list", kDict: "dict", kFunc: "callable", kClass: "callable", kWrap: "callable",
	kAlt: "",
}

// val is an abstract value. Only x's containers are written to after it was
// made, as the program's own assignments to them would.
type val struct {
	kind kind
	open bool     // it may have other values too
	text string   // of a constant; the dotted name of a kRef; the type of a kObj
	more []string // further alternatives of a constant
	from []string // origins, see facts.Value.From
	x    *extra
}

// extra is what few values have.
type extra struct {
	items    []*val          // list, tuple, set; bound arguments of a wrap
	dict     map[string]*val // dict by dictKey; bound keywords of a wrap; attributes of an instance
	order    []string        // keys of dict as they were put in
	alts     []*val
	fn       *function
	cls      *class
	self     *val // receiver of a method; what a wrap calls
	recv     []facts.Value
	fields   map[string]facts.Value
	pre, suf string   // what is known at the ends of an unknown text
	how      string   // how a kRef was resolved, or an unknown text came to be
	parts    []piece  // of a text of which all but holes is known
	str      *val     // the text an object stands for: a path, a URL
	size     int      // bytes of a text too long to keep
	every    []string // texts that a loop goes through, where these are too many for alternatives
}

var (
	unknown = &val{}
	none    = &val{kind: kNone, text: ""}
	yes     = &val{kind: kBool, text: "true"}
	no      = &val{kind: kBool, text: "false"}
)

func str(s string) *val      { return text(kStr, s) }
func byteText(s string) *val { return text(kBytes, s) }

func text(k kind, s string) *val {
	if len(s) > facts.MaxFolded {
		return &val{kind: kUnknown, x: &extra{pre: s[:256], suf: s[len(s)-256:]}}
	}
	return &val{kind: k, text: s}
}

func integer(n int64) *val { return &val{kind: kInt, text: strconv.FormatInt(n, 10)} }

func boolean(b bool) *val {
	if b {
		return yes
	}
	return no
}

func ref(name, how string) *val {
	v := &val{kind: kRef, text: name}
	if how != "" {
		v.x = &extra{how: how}
	}
	return v
}

func list(k kind, items []*val) *val { return &val{kind: k, x: &extra{items: items}} }

// derived is an unknown value that comes from where parts come from.
func derived(parts ...*val) *val {
	var from []string
	for _, p := range parts {
		from = mix(from, p.origins(0))
	}
	if len(from) == 0 {
		return unknown
	}
	return &val{from: from}
}

// mix joins two lists of origins; it never writes to either.
func mix(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	if len(a) == 0 {
		return b
	}
	out := slices.Clip(a)
	for _, s := range b {
		if len(out) < 8 && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// origins are those of v and of what it holds, three levels deep.
func (v *val) origins(depth int) []string {
	out := v.from
	if v.x == nil || depth > 3 {
		return out
	}
	for i, it := range v.x.items {
		if i > 64 {
			break
		}
		out = mix(out, it.origins(depth+1))
	}
	for _, it := range v.x.alts {
		out = mix(out, it.origins(depth+1))
	}
	if v.kind == kDict {
		for _, k := range v.x.order {
			out = mix(out, v.x.dict[k].origins(depth+1))
		}
	}
	if v.x.self != nil && v.kind == kRef {
		out = mix(out, v.x.self.origins(depth+1))
	}
	return out
}

// with returns v with more origins.
func (v *val) with(from []string) *val {
	if len(from) == 0 {
		return v
	}
	c := *v
	c.from = mix(v.from, from)
	return &c
}

func (v *val) isConst() bool { return v.kind >= kNone && v.kind <= kBytes }

func (v *val) isText() bool { return v.kind == kStr || v.kind == kBytes }

func (v *val) isSeq() bool { return v.kind == kList || v.kind == kTuple || v.kind == kSet }

// one gives the only text that a constant can have.
func (v *val) one() (string, bool) {
	return v.text, v.isConst() && len(v.more) == 0 && !v.open
}

// oneText is one for str and bytes, and for objects that stand for a text.
func (v *val) oneText() (string, bool) {
	if v.kind == kObj && v.x != nil && v.x.str != nil {
		v = v.x.str
	}
	if !v.isText() {
		return "", false
	}
	return v.one()
}

func (v *val) int() (int64, bool) {
	if v.kind == kBool {
		return map[string]int64{"true": 1}[v.text], len(v.more) == 0 && !v.open
	}
	s, ok := v.one()
	if !ok || v.kind != kInt {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// all gives every alternative of a constant.
func (v *val) all() []string {
	if len(v.more) == 0 {
		return []string{v.text}
	}
	return append([]string{v.text}, v.more...)
}

// each gives every text that v can be, nil where one of them is not known.
func (v *val) each() []string {
	switch {
	case !v.isText():
		return nil
	case !v.open:
		return v.all()
	case v.x != nil:
		return v.x.every
	}
	return nil
}

// choice is the constant that is one of alts.
func choice(k kind, alts []string, open bool, from []string) *val {
	var u []string
	for _, a := range alts {
		if len(a) > facts.MaxFolded {
			open = true
			continue
		}
		if !slices.Contains(u, a) {
			u = append(u, a)
		}
	}
	if len(u) == 0 {
		return &val{from: from}
	}
	if len(u) > facts.MaxAlts {
		u, open = u[:facts.MaxAlts], true
	}
	v := &val{kind: k, text: u[0], open: open, from: from}
	if len(u) > 1 {
		v.more = u[1:]
	}
	return v
}

// branches splits v into what it can be. The result is never empty.
func (v *val) branches() []*val {
	if v.kind == kAlt {
		return v.x.alts
	}
	return []*val{v}
}

// join is a value that may be either of two.
func join(a, b *val) *val {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	case a.kind == b.kind && a.isConst():
		if a.text == b.text && len(a.more) == 0 && len(b.more) == 0 && a.open == b.open && len(a.from)+len(b.from) == 0 {
			return a
		}
		return choice(a.kind, append(a.all(), b.all()...), a.open || b.open, mix(a.from, b.from))
	case a.kind == kRef && b.kind == kRef && a.text == b.text:
		return a
	}
	var out []*val
	for _, p := range append(slices.Clone(a.branches()), b.branches()...) {
		out = addBranch(out, p)
	}
	if len(out) == 1 {
		return out[0]
	}
	v := &val{kind: kAlt, x: &extra{alts: out}}
	if len(out) > facts.MaxAlts {
		v.x.alts, v.open = out[:facts.MaxAlts], true
	}
	return v
}

func addBranch(out []*val, p *val) []*val {
	for i, o := range out {
		switch {
		case o == p, o.kind == kNone && p.kind == kNone:
			return out
		case o.kind == kUnknown && p.kind == kUnknown:
			if p.x == nil && o.x == nil {
				out[i] = o.with(p.from)
				return out
			}
		case o.kind == kRef && p.kind == kRef && o.text == p.text:
			return out
		case o.isConst() && o.kind == p.kind:
			out[i] = choice(o.kind, append(o.all(), p.all()...), o.open || p.open, mix(o.from, p.from))
			return out
		}
	}
	return append(out, p)
}

// same reports that two values are equal as far as that can be told cheaply.
func same(a, b *val) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.kind != b.kind || a.text != b.text || a.open != b.open || len(a.more) != len(b.more) || len(a.from) != len(b.from) {
		return false
	}
	return a.x == b.x || a.x == nil && b.x == nil
}

// dictKey is a constant as a key, or "".
func dictKey(v *val) string {
	s, ok := v.one()
	if !ok {
		return ""
	}
	return strconv.Itoa(int(v.kind)) + ":" + s
}

// truth reports whether v is true, and whether that is certain.
func (v *val) truth() (is, certain bool) {
	switch v.kind {
	case kNone:
		return false, true
	case kBool, kInt, kFloat, kStr, kBytes:
		s, ok := v.one()
		return s != "" && s != "false" && s != "0" || v.isText() && s != "", ok
	case kList, kTuple, kSet:
		return len(v.x.items) > 0, !v.open
	case kDict:
		return len(v.x.order) > 0, !v.open
	case kRef, kFunc, kClass, kInst, kWrap, kSpace:
		return true, true
	default: // it may be either
	}
	return true, false
}

// fact turns v into what the builder understands.
func (v *val) fact() facts.Value { return v.toFact(0) }

func (v *val) toFact(depth int) facts.Value {
	out := facts.Value{From: v.from, Open: v.open}
	if depth > 4 {
		return facts.Value{From: v.from}
	}
	switch {
	case v.isConst():
		out.Type, out.Alts = typeNames[v.kind], v.all()
		if v.open && v.x != nil {
			out.Prefix, out.Suffix = v.x.pre, v.x.suf
		}
		if v.open && v.x != nil {
			out.Prefix, out.Suffix = v.x.pre, v.x.suf
		}
	case v.kind == kUnknown:
		out.Open = false
		if v.x != nil {
			out.Prefix, out.Suffix = v.x.pre, v.x.suf
		}
	case v.isSeq():
		items := make([]facts.Value, 0, min(len(v.x.items), 257))
		for _, it := range v.x.items[:min(len(v.x.items), 257)] {
			items = append(items, it.toFact(depth+1))
		}
		l := facts.List(items...)
		l.Open, l.From = l.Open || v.open, v.origins(0)
		return l
	case v.kind == kDict:
		out.Type = "dict"
		out.Fields = make(map[string]facts.Value, len(v.x.order))
		for _, k := range v.x.order {
			_, name, _ := strings.Cut(k, ":")
			out.Fields[name] = v.x.dict[k].toFact(depth + 1)
		}
		out.From = v.origins(0)
	case v.kind == kRef:
		out = facts.Callable(v.text)
		out.From = v.from
		if v.x != nil && v.x.self != nil && v.x.self.x != nil {
			out.Recv = v.x.self.x.recv
		}
	case v.kind == kObj:
		out.Type = v.text
		if v.x != nil {
			out.Recv, out.Fields = v.x.recv, v.x.fields
			if s := v.x.str; s != nil && s.isText() {
				out.Alts, out.Open = s.all(), s.open
				out.From = mix(out.From, s.from)
			} else if s != nil && s.x != nil {
				out.Prefix, out.Suffix = s.x.pre, s.x.suf
			}
		}
	case v.kind == kAlt:
		out = v.x.alts[0].toFact(depth + 1)
		for _, a := range v.x.alts[1:] {
			out = facts.Union(out, a.toFact(depth+1))
		}
		if out.Open = out.Open || v.open; !out.Known() {
			out.Prefix, out.Suffix = head(v), tail(v)
		}
	default:
		out.Type = "callable"
		if v.kind == kInst {
			out.Type = ""
		}
	}
	return out
}

// fromFact takes up what the builder says that a call gave back.
func fromFact(f facts.Value) *val {
	v := &val{open: f.Open, from: f.From}
	switch f.Type {
	case "str", "bytes", "int", "float", "bool":
		if len(f.Alts) > 0 {
			v.kind = map[string]kind{"str": kStr, "bytes": kBytes, "int": kInt, "float": kFloat, "bool": kBool}[f.Type]
			v.text = f.Alts[0]
			if len(f.Alts) > 1 {
				v.more = f.Alts[1:]
			}
			return v
		}
	case "none":
		return none
	case "callable":
		if f.Func != "" {
			return &val{kind: kRef, text: f.Func, from: f.From}
		}
		return &val{from: f.From}
	case "", "regexp":
	case "list":
		items := make([]*val, len(f.Items))
		for i, it := range f.Items {
			items[i] = fromFact(it)
		}
		if f.Items == nil {
			return &val{from: f.From}
		}
		return &val{kind: kList, open: f.Open, from: f.From, x: &extra{items: items}}
	case "dict":
		return &val{from: f.From}
	default:
		v.kind, v.text, v.open = kObj, f.Type, false
		v.x = &extra{recv: f.Recv, fields: f.Fields}
		return v
	}
	if f.Prefix != "" || f.Suffix != "" {
		v.x = &extra{pre: f.Prefix, suf: f.Suffix}
	}
	v.open = false
	return v
}
