package python

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// functionHandlers apply and bind callables.
func functionHandlers() map[string]handler {
	identity := func(c *invocation) *val { return c.get0() }
	keep := func(c *invocation) *val {
		if len(c.pos) == 1 && c.pos[0].kind == kFunc {
			return c.pos[0]
		}
		return &val{kind: kWrap, x: &extra{self: ref("typing.cast", ""), items: []*val{none}}} // @lru_cache(maxsize=1)
	}
	return map[string]handler{
		"functools.partial":       (*invocation).partial,
		"functools.partialmethod": (*invocation).partial,
		"functools.reduce":        (*invocation).reduce,
		"reduce":                  (*invocation).reduce,
		"functools.lru_cache":     keep,
		"functools.cache":         keep,
		"functools.wraps": func(c *invocation) *val {
			return &val{kind: kWrap, x: &extra{self: ref("typing.cast", ""), items: []*val{none}}}
		},
		"contextlib.contextmanager":      identity,
		"contextlib.asynccontextmanager": identity,
		"contextlib.closing":             identity,
		"contextlib.nullcontext":         identity,
		"staticmethod":                   identity,
		"classmethod":                    identity,
		"typing.cast":                    func(c *invocation) *val { return c.nth(1) },
		"copy.copy":                      identity,
		"copy.deepcopy":                  identity,
		"iter":                           identity,
		"asyncio.run":                    identity,
		"asyncio.create_task":            identity,
		"asyncio.ensure_future":          identity,
		"asyncio.gather":                 func(c *invocation) *val { return list(kList, c.pos) },
		"asyncio.wait_for":               identity,
		"asyncio.new_event_loop.run_until_complete": identity,
		"asyncio.get_event_loop.run_until_complete": identity,
		"operator.attrgetter":                       func(c *invocation) *val { return c.wrap("attrgetter") },
		"operator.itemgetter":                       func(c *invocation) *val { return c.wrap("itemgetter") },
		"operator.methodcaller":                     func(c *invocation) *val { return c.wrap("methodcaller") },
		"operator.add":                              func(c *invocation) *val { return c.it.operate("+", c.nth(0), c.nth(1), c.n) },
		"operator.concat":                           func(c *invocation) *val { return c.it.operate("+", c.nth(0), c.nth(1), c.n) },
		"operator.mul":                              func(c *invocation) *val { return c.it.operate("*", c.nth(0), c.nth(1), c.n) },
		"operator.xor":                              func(c *invocation) *val { return c.it.operate("^", c.nth(0), c.nth(1), c.n) },
		"operator.mod":                              func(c *invocation) *val { return c.it.operate("%", c.nth(0), c.nth(1), c.n) },
		"operator.getitem":                          func(c *invocation) *val { return c.it.item(c.nth(0), c.nth(1), c.n, c.s) },
		"operator.call":                             (*invocation).apply,
		"apply":                                     (*invocation).applyOld,
		"map":                                       (*invocation).mapCall,
		"filter":                                    (*invocation).filterCall,
		"itertools.starmap":                         (*invocation).starmap,
		"sorted":                                    (*invocation).sortedCall,
		"min":                                       (*invocation).minmax,
		"max":                                       (*invocation).minmax,
		"list.sort":                                 (*invocation).sortedCall,
		"random.choice":                             (*invocation).choiceCall,
		"secrets.choice":                            (*invocation).choiceCall,
		"random.sample":                             (*invocation).choiceCall,
		"next":                                      (*invocation).choiceCall,
	}
}

func (c *invocation) wrap(what string) *val {
	if len(c.pos) == 0 {
		return unknown
	}
	return &val{kind: kWrap, text: what, x: &extra{items: c.pos, dict: c.kw, order: c.keys}}
}

func (c *invocation) partial() *val {
	if len(c.pos) == 0 {
		return unknown
	}
	return &val{kind: kWrap, x: &extra{self: c.pos[0], items: c.pos[1:], dict: c.kw, order: c.keys}}
}

func (c *invocation) apply() *val {
	if len(c.pos) == 0 {
		return unknown
	}
	return c.it.call(c.pos[0], &arguments{pos: c.pos[1:], kw: c.kw, keys: c.keys, how: "value"}, c.n, c.s)
}

// applyOld is Python 2's apply(f, args).
func (c *invocation) applyOld() *val {
	items, ok := c.it.iterate(c.nth(1), c.n)
	return c.it.call(c.get0(), &arguments{pos: items, open: !ok, how: "value"}, c.n, c.s)
}

// each applies f to every item, or once to what is known of all.
func (c *invocation) each(f *val, spread bool, over ...*val) *val {
	out := list(kList, nil)
	var rows [][]*val
	known := true
	for i, o := range over {
		items, ok := c.it.iterate(o, c.n)
		known = known && ok
		if i == 0 {
			rows = make([][]*val, len(items))
		}
		for j := range rows {
			if j < len(items) {
				rows[j] = append(rows[j], items[j])
			}
		}
	}
	if len(over) > 0 {
		n := turns(over[0], nil)
		defer c.it.repeated(max(n, float64(len(rows))))()
		if !known && len(over) == 1 && n > float64(len(rows)) && len(rows) > 1 { // the others are not kept one by one
			each := *widest(over[0].x.items, over[0])
			each.open = true
			rows = [][]*val{{&each}}
		}
	}
	if !known && len(rows) == 0 {
		row := make([]*val, len(over))
		for i, o := range over {
			row[i] = derived(o)
		}
		rows = [][]*val{row}
	}
	out.open = !known
	for i, row := range rows {
		if i >= 4096 || c.it.over {
			out.open = true
			break
		}
		a := &arguments{pos: row, how: "value"}
		if spread && len(row) == 1 && row[0].isSeq() {
			a.pos = row[0].x.items
		}
		out.x.items = append(out.x.items, c.it.call(f, a, c.n, c.s))
	}
	return out
}

func (c *invocation) mapCall() *val {
	if len(c.pos) < 2 {
		return derived(c.all()...)
	}
	return c.each(c.pos[0], false, c.pos[1:]...)
}

func (c *invocation) starmap() *val {
	if len(c.pos) < 2 {
		return derived(c.all()...)
	}
	return c.each(c.pos[0], true, c.pos[1])
}

func (c *invocation) filterCall() *val {
	if len(c.pos) < 2 {
		return derived(c.all()...)
	}
	items, known := c.it.iterate(c.pos[1], c.n)
	if c.pos[0].kind == kNone {
		return derived(c.pos[1])
	}
	verdicts := c.each(c.pos[0], false, c.pos[1])
	out := &val{kind: kList, open: !known, from: c.pos[1].from, x: &extra{}}
	for i, item := range items {
		if i >= len(verdicts.x.items) {
			break
		}
		is, certain := verdicts.x.items[i].truth()
		if certain && !is {
			continue
		}
		out.open = out.open || !certain
		out.x.items = append(out.x.items, item)
	}
	return out
}

func (c *invocation) reduce() *val {
	items, ok := c.it.iterate(c.nth(1), c.n)
	if !ok || len(items) > 1024 {
		c.it.call(c.get0(), &arguments{pos: []*val{derived(c.nth(1)), derived(c.nth(1))}, how: "value"}, c.n, c.s)
		return derived(c.all()...)
	}
	if len(c.pos) > 2 {
		items = append([]*val{c.pos[2]}, items...)
	}
	if len(items) == 0 {
		return unknown
	}
	acc := items[0]
	for _, item := range items[1:] {
		acc = c.it.call(c.get0(), &arguments{pos: []*val{acc, item}, how: "value"}, c.n, c.s)
	}
	return acc
}

// sortedCall: a key function sees every item.
func (c *invocation) sortedCall() *val {
	over := c.self
	if over == nil {
		over = c.get0()
	}
	if key := c.kw["key"]; key != nil && key.kind != kNone {
		if out := c.byKeys(c.each(key, false, over), over); out != nil {
			return out
		}
		return c.shuffled(over)
	}
	if out := c.byKeys(over, over); out != nil {
		return out
	}
	return c.shuffled(over)
}

// byKeys orders items by keys that are known: texts, numbers, or tuples that
// begin with such. nil where they are not.
func (c *invocation) byKeys(keys, over *val) *val {
	items, ok := c.it.iterate(over, c.n)
	by, known := c.it.iterate(keys, c.n)
	if !ok || !known || len(items) != len(by) || len(items) < 2 || len(items) > 64 || c.kw["reverse"] != nil && c.kw["reverse"] != no {
		return nil
	}
	heads := make([]*val, len(by))
	for i, k := range by {
		if k.kind == kTuple && len(k.x.items) > 0 {
			k = k.x.items[0]
		} else if keys == over {
			return nil // plain texts and numbers are sorted as they are
		}
		if k.kind != kInt && k.kind != kStr || k.open || len(k.more) > 0 || k.kind != by[0].kind && heads[0] != nil && k.kind != heads[0].kind {
			return nil
		}
		heads[i] = k
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, xn := heads[a].int()
		y, yn := heads[b].int()
		if xn && yn {
			return cmp.Compare(x, y)
		}
		return strings.Compare(heads[a].text, heads[b].text)
	})
	out := make([]*val, len(items))
	for i, j := range order {
		out[i] = items[j]
	}
	return list(kList, out)
}

// shuffled is the same items in an order that is not known.
func (c *invocation) shuffled(over *val) *val {
	items, ok := c.it.iterate(over, c.n)
	if !ok || len(items) > 64 {
		return derived(over)
	}
	return c.it.sort(items, c.kw["reverse"])
}

func (c *invocation) minmax() *val {
	over := c.get0()
	if len(c.pos) > 1 {
		over = list(kList, c.pos)
	}
	if key := c.kw["key"]; key != nil && key.kind != kNone {
		c.each(key, false, over)
	}
	return choose(over, c.it, c.n)
}

func (c *invocation) choiceCall() *val { return choose(c.get0(), c.it, c.n) }

// choose is one of the items.
func choose(over *val, it *interp, n *node) *val {
	items, ok := it.iterate(over, n)
	if !ok || len(items) == 0 || len(items) > facts.MaxAlts {
		return derived(over)
	}
	v := items[0]
	for _, item := range items[1:] {
		v = join(v, item)
	}
	return v
}
