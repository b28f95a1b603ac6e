package python

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxRange is how many numbers of a range are kept one by one.
const maxRange = 1024

// sequenceHandlers are builtins on numbers and sequences.
func sequenceHandlers() map[string]handler {
	toSeq := func(k kind) handler {
		return func(c *invocation) *val {
			if len(c.pos) == 0 {
				return list(k, nil)
			}
			items, ok := c.it.iterate(c.pos[0], c.n)
			if !ok && len(items) == 0 {
				out := derived(c.pos[0])
				return &val{kind: k, open: true, from: out.from, x: &extra{}}
			}
			return &val{kind: k, open: !ok, from: c.pos[0].from, x: &extra{items: slices.Clone(items)}}
		}
	}
	quiet := func(c *invocation) *val { return derived(c.all()...) }
	return map[string]handler{
		"list": toSeq(kList), "tuple": toSeq(kTuple), "set": toSeq(kSet), "frozenset": toSeq(kSet),
		"collections.deque":       toSeq(kList),
		"dict":                    (*invocation).dict,
		"collections.OrderedDict": (*invocation).dict,
		"dict.fromkeys":           (*invocation).fromKeys,
		"types.MappingProxyType":  (*invocation).dict,
		"range":                   (*invocation).rangeCall,
		"xrange":                  (*invocation).rangeCall,
		"len":                     (*invocation).length,
		"int":                     (*invocation).integer,
		"long":                    (*invocation).integer,
		"float":                   quiet,
		"bool": func(c *invocation) *val {
			if is, certain := c.get0().truth(); certain {
				return boolean(is)
			}
			return unknown
		},
		"abs": func(c *invocation) *val {
			if n, ok := c.get0().int(); ok {
				return integer(max(n, -n))
			}
			return derived(c.get0())
		},
		"hex":                   func(c *invocation) *val { return c.digits("0x", 16) },
		"oct":                   func(c *invocation) *val { return c.digits("0o", 8) },
		"bin":                   func(c *invocation) *val { return c.digits("0b", 2) },
		"reversed":              (*invocation).reversed,
		"enumerate":             (*invocation).enumerate,
		"zip":                   (*invocation).zip,
		"itertools.zip_longest": (*invocation).zip,
		"itertools.chain":       (*invocation).chain,
		"itertools.chain.from_iterable": func(c *invocation) *val {
			items, ok := c.it.iterate(c.get0(), c.n)
			d := *c
			d.arguments = &arguments{pos: items, open: !ok}
			return d.chain()
		},
		"heapq.heappop":     (*invocation).heapPop,
		"heapq.heappushpop": (*invocation).heapPop,
		"heapq.heapreplace": (*invocation).heapPop,
		"heapq.heappush": func(c *invocation) *val {
			if h := c.get0(); h.kind == kList && len(h.x.items) < maxQueue {
				h.x.items = append(h.x.items, c.nth(1))
				c.it.changed("", c.nth(1))
				return none
			}
			return nil
		},
		"sum":        (*invocation).sum,
		"print":      (*invocation).printCall,
		"str.print":  quiet,
		"list.index": quiet, "list.count": quiet,
	}
}

func (c *invocation) dict() *val {
	d := &val{kind: kDict, x: &extra{dict: map[string]*val{}}}
	for _, v := range c.pos {
		if v.kind == kDict {
			d.merge(v)
			continue
		}
		if v.kind == kRef && v.text == "os.environ" && len(c.keys) > 0 {
			d.open, d.from = true, mix(d.from, []string{"env_copy"})
			continue
		}
		if v.kind == kRef && v.text == "os.environ" {
			return &val{kind: kObj, text: "os.environ.copy", from: []string{"env_copy"}, x: &extra{}}
		}
		items, ok := c.it.iterate(v, c.n)
		d.open = d.open || !ok
		d.from = mix(d.from, v.from)
		for _, pair := range items {
			if pair.isSeq() && len(pair.x.items) == 2 {
				d.put(pair.x.items[0], pair.x.items[1])
			} else {
				d.open = true
			}
		}
	}
	for _, k := range c.keys {
		d.put(str(k), c.kw[k])
	}
	d.open = d.open || c.open
	return d
}

func (c *invocation) rangeCall() *val {
	var at [3]int64
	at[2] = 1
	for i := range c.pos {
		n, ok := c.pos[i].int()
		if !ok || i > 2 {
			return derived(c.all()...)
		}
		if len(c.pos) == 1 {
			at[1] = n
		} else {
			at[i] = n
		}
	}
	if at[2] == 0 || len(c.pos) == 0 {
		return unknown
	}
	var items []*val
	from, to, step := at[0], at[1], at[2]
	for n := from; step > 0 && n < to || step < 0 && n > to; n += step {
		if len(items) >= maxRange {
			return &val{kind: kList, open: true, x: &extra{items: items[:4:4], size: int((to - from) / step)}}
		}
		items = append(items, integer(n))
	}
	return list(kList, items)
}

func (c *invocation) length() *val {
	v := c.get0()
	switch {
	case v.kind == kStr:
		if s, ok := v.one(); ok {
			return integer(int64(utf8.RuneCountInString(s)))
		}
	case v.kind == kBytes:
		if s, ok := v.one(); ok {
			return integer(int64(len(s)))
		}
	case v.isSeq() && !v.open:
		return integer(int64(len(v.x.items)))
	case v.kind == kDict && !v.open:
		return integer(int64(len(v.x.order)))
	}
	return unknown
}

func (c *invocation) integer() *val {
	v := c.get0()
	base := int64(10)
	if b := c.at(1, "base"); b != nil {
		n, ok := b.int()
		if !ok || n < 0 || n > 36 {
			return derived(v)
		}
		base = n
	}
	if v.kind == kFloat {
		return v.mapText(kInt, func(s string) (string, bool) { before, _, ok := strings.Cut(s, "."); return before, ok })
	}
	return v.mapText(kInt, func(s string) (string, bool) {
		s = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), "_", ""))
		switch base {
		case 16:
			s = strings.TrimPrefix(s, "0x")
		case 2:
			s = strings.TrimPrefix(s, "0b")
		case 8:
			s = strings.TrimPrefix(s, "0o")
		}
		n, err := strconv.ParseInt(s, int(base), 64)
		return strconv.FormatInt(n, 10), err == nil
	})
}

func (c *invocation) digits(prefix string, base int) *val {
	return c.get0().mapText(kStr, func(s string) (string, bool) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return "", false
		}
		return prefix + strconv.FormatInt(n, base), true
	})
}

func (c *invocation) reversed() *val {
	items, ok := c.it.iterate(c.get0(), c.n)
	if !ok {
		return derived(c.get0())
	}
	out := slices.Clone(items)
	slices.Reverse(out)
	return list(kList, out)
}

func (c *invocation) enumerate() *val {
	items, ok := c.it.iterate(c.get0(), c.n)
	start := int64(0)
	if s := c.at(1, "start"); s != nil {
		start, _ = s.int()
	}
	out := &val{kind: kList, open: !ok, from: c.get0().from, x: &extra{}}
	for i, item := range items {
		out.x.items = append(out.x.items, list(kTuple, []*val{integer(start + int64(i)), item}))
	}
	if !ok && len(items) == 0 {
		out.x.items = []*val{list(kTuple, []*val{unknown, derived(c.get0())})}
	}
	return out
}

func (c *invocation) zip() *val {
	out := list(kList, nil)
	for i, v := range c.pos {
		items, ok := c.it.iterate(v, c.n)
		out.open = out.open || !ok
		if !ok && len(items) == 0 {
			items = []*val{derived(v)}
		}
		for j, item := range items {
			if i == 0 {
				out.x.items = append(out.x.items, list(kTuple, []*val{item}))
			} else if j < len(out.x.items) {
				row := out.x.items[j]
				row.x.items = append(row.x.items, item)
			}
		}
		if i > 0 && len(items) < len(out.x.items) {
			if ok {
				out.x.items = out.x.items[:len(items)]
			} else {
				for _, row := range out.x.items[len(items):] {
					row.x.items = append(row.x.items, derived(v))
				}
			}
		}
	}
	return out
}

func (c *invocation) chain() *val {
	out := &val{kind: kList, open: c.open, x: &extra{}}
	for _, v := range c.pos {
		items, ok := c.it.iterate(v, c.n)
		out.open = out.open || !ok
		out.from = mix(out.from, v.from)
		out.x.items = append(out.x.items, items...)
	}
	return out
}

func (c *invocation) sum() *val {
	items, ok := c.it.iterate(c.get0(), c.n)
	if !ok || len(items) > maxRange {
		return derived(c.all()...)
	}
	acc := integer(0)
	if s := c.at(1, "start"); s != nil {
		acc = s
	}
	for _, item := range items {
		acc = c.it.operate("+", acc, item, c.n)
	}
	return acc
}

// sort orders constants; a list with others keeps its order.
func (it *interp) sort(items []*val, reverse *val) *val {
	out := slices.Clone(items)
	for _, v := range out {
		if _, ok := v.one(); !ok {
			return list(kList, out)
		}
	}
	slices.SortStableFunc(out, func(a, b *val) int {
		x, ok := a.int()
		y, ok2 := b.int()
		if ok && ok2 {
			return int(max(-1, min(1, x-y)))
		}
		return strings.Compare(a.text, b.text)
	})
	if reverse != nil {
		if is, _ := reverse.truth(); is {
			slices.Reverse(out)
		}
	}
	return list(kList, out)
}

// print shows what it is given; the whole environment is worth a fact.
func (c *invocation) printCall() *val {
	for _, v := range c.all() {
		c.it.usesEnv("print", v, c.n)
		if v.kind == kObj && v.text == "os.environ.copy" {
			c.it.dumpEnv(c.n)
		}
	}
	if _, ok := c.it.b.API("print"); ok {
		return nil
	}
	return none
}

// heapPop is any item of a heap.
func (c *invocation) heapPop() *val {
	h := c.get0()
	if h.kind != kList || len(h.x.items) == 0 {
		return nil
	}
	return widest(h.x.items, h)
}
