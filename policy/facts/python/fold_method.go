package python

import (
	"strings"
	"unicode"

	"github.com/caisson-dev/caisson/policy/facts"
)

// method folds a method of a constant, a list, a dict, or something unknown;
// nil for one that is to be reported.
func (c *invocation) method() *val {
	typ, name, _ := strings.Cut(c.name, ".")
	self := c.self
	switch typ {
	case "str", "bytes":
		return c.textMethod(name)
	case "list", "set":
		return c.listMethod(name)
	case "int", "float":
		if name == "to_bytes" {
			return c.toBytesMethod()
		}
		return derived(append(c.all(), self)...)
	case "?":
		switch name {
		case "join":
			return derived(append(c.all(), self)...)
		case "format":
			return derived(append(c.all(), self)...)
		case "get", "items", "values", "keys", "decode", "encode", "strip", "lower", "upper", "read", "replace", "split":
			return derived(append(c.all(), self)...)
		}
	}
	return nil
}

// simpleText are methods without arguments.
var simpleText = map[string]func(string) string{
	"lower": strings.ToLower, "upper": strings.ToUpper, "casefold": strings.ToLower, "swapcase": swapcase,
	"capitalize": capitalize, "title": title,
	"expandtabs": func(s string) string { return strings.ReplaceAll(s, "\t", "        ") },
}

func swapcase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

func capitalize(s string) string {
	r := []rune(strings.ToLower(s))
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

func title(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		was := start
		start = !unicode.IsLetter(r)
		if was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func (c *invocation) textMethod(name string) *val {
	self := c.self
	if f := simpleText[name]; f != nil {
		return self.mapText(self.kind, func(s string) (string, bool) { return f(s), true })
	}
	arg := func(i int) (string, bool) {
		if i >= len(c.pos) {
			return "", false
		}
		return c.pos[i].oneText()
	}
	switch name {
	case "encode":
		return c.encode()
	case "decode":
		if codec, ok := arg(0); ok && codecName(codec) != "utf8" {
			return c.it.decodeWith(codec, self)
		}
		return self.decode()
	case "hex":
		return self.mapText(kStr, hexEncode)
	case "strip", "lstrip", "rstrip":
		set, given := arg(0)
		if len(c.pos) > 0 && !given && c.pos[0].kind != kNone {
			return derived(append(c.all(), self)...)
		}
		return self.mapText(self.kind, func(s string) (string, bool) { return trimText(name, s, set, given), true })
	case "removeprefix", "removesuffix":
		x, ok := arg(0)
		if !ok {
			return derived(append(c.all(), self)...)
		}
		return self.mapText(self.kind, func(s string) (string, bool) {
			if name == "removeprefix" {
				return strings.TrimPrefix(s, x), true
			}
			return strings.TrimSuffix(s, x), true
		})
	case "replace":
		return c.replace()
	case "join":
		return joinText(self, c.get0(), c.it, c.n)
	case "format":
		return c.it.format(self, c.arguments, c.n)
	case "format_map":
		a := &arguments{}
		a.spread(c.get0())
		return c.it.format(self, a, c.n)
	case "translate":
		return c.translate()
	case "split", "rsplit", "splitlines", "partition", "rpartition":
		return c.split(name)
	case "zfill", "ljust", "rjust", "center":
		return c.pad(name)
	case "fromhex":
		return c.get0().mapText(kBytes, hexDecode).with([]string{"decoded"})
	case "startswith", "endswith", "find", "index", "count", "isdigit", "isalpha", "isupper", "islower", "isalnum", "isspace", "rfind":
		return &val{from: self.from}
	}
	return derived(append(c.all(), self)...)
}

func trimText(name, s, set string, given bool) string {
	if !given {
		set = " \t\n\r\v\f"
	}
	switch name {
	case "lstrip":
		return strings.TrimLeft(s, set)
	case "rstrip":
		return strings.TrimRight(s, set)
	}
	return strings.Trim(s, set)
}

func (c *invocation) replace() *val {
	old, new := c.nth(0), c.nth(1)
	x, ok := old.oneText()
	if !ok || !c.self.isText() {
		return derived(append(c.all(), c.self)...)
	}
	count := -1
	if len(c.pos) > 2 {
		if n, ok := c.pos[2].int(); ok {
			count = int(n)
		}
	}
	var out *val
	for _, s := range c.self.all() {
		if !strings.Contains(s, x) {
			out = join(out, text(c.self.kind, s))
			continue
		}
		if !new.isText() {
			before, _, _ := strings.Cut(s, x)
			after := s[strings.LastIndex(s, x)+len(x):]
			out = join(out, concat(concat(text(c.self.kind, before), new), text(c.self.kind, after)))
			continue
		}
		for _, y := range new.all() {
			if len(s)+strings.Count(s, x)*len(y) > 4*facts.MaxFolded {
				return derived(append(c.all(), c.self)...)
			}
			out = join(out, text(c.self.kind, strings.Replace(s, x, y, count)))
		}
	}
	if c.self.open || new.open {
		out = join(out, derived(c.self, new))
	}
	return out.with(mix(c.self.from, new.from))
}

// joinText is sep.join(items).
func joinText(sep, over *val, it *interp, n *node) *val {
	if over.isText() {
		items, ok := it.iterate(over, n)
		if !ok {
			return derived(sep, over)
		}
		over = list(kList, items).with(over.from)
	}
	if over.kind == kAlt {
		var out *val
		for _, b := range over.x.alts {
			out = join(out, joinText(sep, b, it, n))
		}
		return out
	}
	items, ok := it.iterate(over, n)
	if !ok && !over.isSeq() {
		return derived(sep, over)
	}
	if s, plain := joinPlain(sep, items); plain && ok {
		k := sep.kind
		return text(k, s).with(mix(sep.from, over.origins(0)))
	}
	var acc *val
	for i, item := range items {
		if i > 512 {
			return derived(sep, over)
		}
		if acc == nil {
			acc = item
			continue
		}
		acc = concat(concat(acc, sep), item)
	}
	if acc == nil {
		acc = str("")
	}
	if !ok {
		h := head(acc)
		return &val{from: derived(sep, over).from, x: &extra{pre: h}}
	}
	return acc.with(over.from)
}

// joinPlain joins where everything is one known text.
func joinPlain(sep *val, items []*val) (string, bool) {
	s, ok := sep.one()
	if !ok || !sep.isText() {
		return "", false
	}
	var b strings.Builder
	for i, item := range items {
		t, ok := item.one()
		if !ok || !item.isText() || b.Len() > facts.MaxFolded {
			return "", false
		}
		if i > 0 {
			b.WriteString(s)
		}
		b.WriteString(t)
	}
	return b.String(), true
}

func (c *invocation) pad(name string) *val {
	n, ok := c.nth(0).int()
	if !ok || n > 4096 {
		return derived(c.self)
	}
	fill := " "
	if name == "zfill" {
		fill = "0"
	} else if f, ok := c.nth(1).oneText(); ok && len(f) == 1 {
		fill = f
	}
	return c.self.mapText(c.self.kind, func(s string) (string, bool) {
		missing := int(n) - len([]rune(s))
		if missing <= 0 {
			return s, true
		}
		switch name {
		case "ljust":
			return s + strings.Repeat(fill, missing), true
		case "center":
			return strings.Repeat(fill, missing/2) + s + strings.Repeat(fill, missing-missing/2), true
		}
		return strings.Repeat(fill, missing) + s, true
	})
}

// maketrans gives the table that translate reads: a dict of code points.
func (c *invocation) maketrans() *val {
	d := &val{kind: kDict, x: &extra{dict: map[string]*val{}}}
	if len(c.pos) == 1 && c.pos[0].kind == kDict {
		for _, k := range c.pos[0].x.order {
			key := keyValue(k)
			if key.kind == kStr && len([]rune(key.text)) == 1 {
				key = integer(int64([]rune(key.text)[0]))
			}
			d.put(key, c.pos[0].x.dict[k])
		}
		return d
	}
	from, ok := c.nth(0).oneText()
	to, ok2 := c.nth(1).oneText()
	a, b := []rune(from), []rune(to)
	if !ok || !ok2 || len(a) != len(b) {
		return unknown
	}
	for i := range a {
		d.put(integer(int64(a[i])), integer(int64(b[i])))
	}
	if drop, ok := c.nth(2).oneText(); ok {
		for _, r := range drop {
			d.put(integer(int64(r)), none)
		}
	}
	return d
}

func (c *invocation) translate() *val {
	table := c.get0()
	if table.kind != kDict || table.open {
		return derived(append(c.all(), c.self)...)
	}
	return c.self.mapText(c.self.kind, func(s string) (string, bool) {
		var b strings.Builder
		for _, r := range s {
			v := table.x.dict[dictKey(integer(int64(r)))]
			switch {
			case v == nil:
				b.WriteRune(r)
			case v.kind == kNone:
			case v.kind == kInt:
				n, _ := v.int()
				b.WriteRune(rune(n))
			default:
				t, ok := v.oneText()
				if !ok {
					return "", false
				}
				b.WriteString(t)
			}
		}
		return b.String(), true
	})
}

func (c *invocation) toBytesMethod() *val {
	n, ok := c.self.int()
	length, ok2 := c.get0().int()
	if !ok || !ok2 || length < 0 || length > 64 || n < 0 {
		return derived(append(c.all(), c.self)...)
	}
	little := false
	if o := c.at(1, "byteorder"); o != nil {
		s, _ := o.oneText()
		little = s == "little"
	}
	out := make([]byte, length)
	for i := range out {
		at := len(out) - 1 - i
		if little {
			at = i
		}
		out[at] = byte(n)
		n >>= 8
	}
	return byteText(string(out))
}

// listMethod changes or reads a list or set in place.
func (c *invocation) listMethod(name string) *val {
	v := c.self
	if !v.isSeq() {
		return derived(append(c.all(), v)...)
	}
	if len(c.it.calls) == 0 && name != "copy" {
		c.it.changed(name, c.all()...)
	}
	switch name {
	case "append", "add":
		if len(c.pos) > 0 && len(v.x.items) < 8192 {
			v.x.items = append(v.x.items, c.pos[0])
			if c.it.loops > 0 {
				v.open = true
			}
		} else {
			v.open = true
		}
		return none
	case "extend", "update":
		items, ok := c.it.iterate(c.get0(), c.n)
		if ok && len(v.x.items)+len(items) < 8192 {
			v.x.items = append(v.x.items, items...)
		} else {
			v.gains(items, c.get0())
			v.from = mix(v.from, derived(c.all()...).from)
		}
		return none
	case "insert":
		if i, ok := c.nth(0).int(); ok && i >= 0 && int(i) <= len(v.x.items) {
			v.x.items = append(v.x.items[:i:i], append([]*val{c.nth(1)}, v.x.items[i:]...)...)
		} else {
			v.gains([]*val{c.nth(1)}, nil)
		}
		return none
	case "reverse":
		items := append([]*val(nil), v.x.items...)
		for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
			items[i], items[j] = items[j], items[i]
		}
		v.x.items = items
		return none
	case "copy":
		return &val{kind: v.kind, open: v.open, from: v.from, x: &extra{items: append([]*val(nil), v.x.items...)}}
	case "pop":
		i := int64(-1)
		if len(c.pos) > 0 {
			var ok bool
			if i, ok = c.pos[0].int(); !ok {
				return indexed(v, c.pos[0])
			}
		}
		got := indexed(v, integer(i))
		if i < 0 {
			i += int64(len(v.x.items))
		}
		if i >= 0 && int(i) < len(v.x.items) && c.it.loops == 0 && len(c.it.marks) == 0 {
			v.x.items = append(append([]*val(nil), v.x.items[:i]...), v.x.items[i+1:]...)
		}
		return got
	case "clear", "remove", "discard":
		v.open = true
		return none
	case "union":
		items := append([]*val(nil), v.x.items...)
		more, ok := c.it.iterate(c.get0(), c.n)
		return &val{kind: kSet, open: v.open || !ok, x: &extra{items: append(items, more...)}}
	case "decode": // a bytearray
		return derived(v)
	}
	return derived(append(c.all(), v)...)
}
