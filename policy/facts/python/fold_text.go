package python

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/policy/facts"
)

// stringLiteral folds one literal; interpolations of f-strings are evaluated.
func (it *interp) stringLiteral(n *node, s *scope) *val {
	var p stringPrefix
	var acc *val
	add := func(v *val) {
		if acc == nil {
			acc = v
		} else {
			acc = concat(acc, v)
		}
	}
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "string_start":
			p = parsePrefix(it.t.text(c))
		case "string_content":
			add(text(p.kind(), it.content(c, p)))
		case "interpolation":
			add(it.interpolation(c, s))
		}
	}
	if acc == nil {
		return text(p.kind(), "")
	}
	if !n.seen && acc.isText() && it.quiet == 0 && len(acc.text) > 3 {
		n.seen = true
		it.b.Literal(acc.text, it.pos(n))
	}
	return acc
}

func (p stringPrefix) kind() kind {
	if p.bytes {
		return kBytes
	}
	return kStr
}

func (it *interp) content(n *node, p stringPrefix) string {
	s := it.t.text(n)
	if p.format {
		s = strings.NewReplacer("{{", "{", "}}", "}").Replace(s)
	}
	if p.raw {
		return s
	}
	return unescape(s, p.bytes)
}

func (it *interp) interpolation(n *node, s *scope) *val {
	v := it.evalOr(n.child("expression"), s)
	if c := n.child("type_conversion"); c != nil {
		if it.t.text(c) != "!s" {
			v = reprOf(v)
		}
	}
	if f := n.child("format_specifier"); f != nil {
		spec := strings.TrimPrefix(it.t.text(f), ":")
		f.each(func(c *node) { it.eval(c, s) })
		return formatSpec(v, spec)
	}
	return toStr(v)
}

// strings is "a" "b".
func (it *interp) strings(n *node, s *scope) *val {
	var parts []*val
	n.each(func(c *node) { parts = append(parts, it.eval(c, s)) })
	if len(parts) == 0 {
		return str("")
	}
	if text, ok := joinPlain(str(""), parts); ok {
		c := *parts[0]
		c.text = text
		return &c
	}
	acc := parts[0]
	for _, p := range parts[1:] {
		acc = it.concat(acc, p)
	}
	return acc
}

// toStr is str(v).
func toStr(v *val) *val {
	if v.everyEnv() {
		return &val{from: []string{"env", everyVariable}}
	}
	switch v.kind {
	case kStr:
		return v
	case kBytes:
		return reprOf(v)
	case kNone:
		return str("None").with(v.from)
	case kBool:
		return v.mapText(kStr, func(s string) (string, bool) { return strings.ToUpper(s[:1]) + s[1:], true })
	case kInt, kFloat:
		c := *v
		c.kind = kStr
		return &c
	case kObj:
		if v.x != nil && v.x.str != nil {
			return v.x.str
		}
	case kAlt:
		var out *val
		for _, b := range v.x.alts {
			out = join(out, toStr(b))
		}
		return out
	case kUnknown:
		return v
	default: // derived from it, below
	}
	return derived(v)
}

func reprOf(v *val) *val {
	if v.everyEnv() {
		return &val{from: []string{"env", everyVariable}}
	}
	switch v.kind {
	case kStr:
		return v.mapText(kStr, func(s string) (string, bool) { return "'" + s + "'", !strings.ContainsAny(s, "'\\\n\r\t") })
	case kBytes:
		return v.mapText(kStr, func(s string) (string, bool) { return "b'" + s + "'", !strings.ContainsAny(s, "'\\\n\r\t") })
	case kUnknown:
		if marked(v, ofTheirs) {
			return concat(concat(str("'"), v), str("'"))
		}
	default: // as str has it, below
	}
	return toStr(v)
}

// repr is what the program's own class says of its object, or what any shows.
func (c *invocation) repr() *val {
	v := c.get0()
	if v.kind == kInst {
		if m := v.x.cls.member("__repr__", 0); m != nil && m.kind == kFunc {
			return c.it.follow(m.x.fn, &arguments{}, v, c.n)
		}
	}
	return reprOf(v)
}

// mapText applies f to every alternative of a constant.
func (v *val) mapText(k kind, f func(string) (string, bool)) *val {
	if !v.isConst() {
		return &val{from: v.from}
	}
	if len(v.more) == 0 {
		s, ok := f(v.text)
		if !ok {
			return &val{from: v.from}
		}
		out := *text(k, s)
		out.open, out.from = v.open, v.from
		return &out
	}
	open := v.open
	var alts []string
	for _, a := range v.all() {
		if s, ok := f(a); ok {
			alts = append(alts, s)
		} else {
			open = true
		}
	}
	return choice(k, alts, open, v.from)
}

// textHandlers are conversions to and from text.
func textHandlers() map[string]handler {
	return map[string]handler{
		"str": func(c *invocation) *val {
			if len(c.pos) == 0 {
				return str("")
			}
			if c.pos[0].kind == kBytes && len(c.pos)+len(c.keys) > 1 {
				return c.pos[0].decode()
			}
			return toStr(c.pos[0])
		},
		"unicode": func(c *invocation) *val { return toStr(c.get0()) },
		"repr":    (*invocation).repr,
		"ascii":   func(c *invocation) *val { return reprOf(c.get0()) },
		"format": func(c *invocation) *val {
			spec, _ := c.nth(1).oneText()
			return formatSpec(c.get0(), spec)
		},
		"chr":              chr,
		"unichr":           chr,
		"ord":              ord,
		"bytes":            toBytes,
		"bytearray":        toBytes,
		"memoryview":       func(c *invocation) *val { return c.get0() },
		"sys.intern":       func(c *invocation) *val { return c.get0() },
		"str.join":         func(c *invocation) *val { return c.static() },
		"str.maketrans":    (*invocation).maketrans,
		"bytes.maketrans":  (*invocation).maketrans,
		"string.capwords":  func(c *invocation) *val { return derived(c.all()...) },
		"textwrap.dedent":  func(c *invocation) *val { return c.get0().mapText(kStr, dedent) },
		"inspect.cleandoc": func(c *invocation) *val { return c.get0().mapText(kStr, dedent) },
		"shlex.quote":      func(c *invocation) *val { return c.get0() },
		"shlex.split":      (*invocation).shlexSplit,
		"shlex.join":       func(c *invocation) *val { return joinText(str(" "), c.get0(), c.it, c.n) },
	}
}

// static is a method taken from its class: str.join(",", items).
func (c *invocation) static() *val {
	if c.self != nil {
		return c.method()
	}
	if len(c.pos) == 0 {
		return unknown
	}
	d := *c
	d.self = c.pos[0]
	d.arguments = &arguments{pos: c.pos[1:], kw: c.kw, keys: c.keys}
	return d.method()
}

func chr(c *invocation) *val {
	return c.get0().mapText(kStr, func(s string) (string, bool) {
		n, ok := (&val{kind: kInt, text: s}).int()
		if !ok || n < 0 || n > utf8.MaxRune {
			return "", false
		}
		return string(rune(n)), true
	})
}

func ord(c *invocation) *val {
	v := c.get0()
	return v.mapText(kInt, func(s string) (string, bool) {
		r, size := utf8.DecodeRuneInString(s)
		if size == 0 {
			return "", false
		}
		if v.kind == kBytes {
			r = rune(s[0])
		}
		return integer(int64(r)).text, true
	})
}

// toBytes is bytes(v) and bytearray(v).
func toBytes(c *invocation) *val {
	if len(c.pos) == 0 {
		return byteText("")
	}
	v := c.pos[0]
	switch v.kind {
	case kStr:
		return v.mapText(kBytes, func(s string) (string, bool) { return s, true })
	case kBytes:
		return v
	case kInt:
		if n, ok := v.int(); ok && n >= 0 {
			return byteText(strings.Repeat("\x00", int(min(n, facts.MaxFolded))))
		}
		return derived(v)
	default: // a list of numbers, or nothing that is known
	}
	if out, ok := bytesOf(v, c.it, c.n); ok {
		return out
	}
	return derived(c.all()...)
}

// bytesOf joins a list of numbers.
func bytesOf(v *val, it *interp, n *node) (*val, bool) {
	if !v.isSeq() || v.open {
		return nil, false
	}
	out := make([]byte, len(v.x.items))
	for i, item := range v.x.items {
		x, ok := item.int()
		if !ok || x < 0 || x > 255 {
			return nil, false
		}
		out[i] = byte(x)
	}
	return byteText(string(out)).with(v.origins(0)), true
}

func (v *val) decode() *val {
	return v.mapText(kStr, func(s string) (string, bool) { return strings.ToValidUTF8(s, "\uFFFD"), true })
}

// dedent removes the white space that all lines begin with.
func dedent(s string) (string, bool) {
	lines := strings.Split(s, "\n")
	margin, found := "", false
	for _, l := range lines {
		rest := strings.TrimLeftFunc(l, unicode.IsSpace)
		if rest == "" {
			continue
		}
		lead := l[:len(l)-len(rest)]
		if !found {
			margin, found = lead, true
		}
		for !strings.HasPrefix(lead, margin) {
			margin = margin[:len(margin)-1]
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, margin)
	}
	return strings.Join(lines, "\n"), true
}
