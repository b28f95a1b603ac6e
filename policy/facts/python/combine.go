package python

import "strings"

// combined is how many items an iterator of itertools gives, 0 where that is
// not known.
func (c *invocation) combined() float64 {
	n := float64(lengthOf(c.nth(0)))
	r := n
	if v := c.get(1, "r"); v != nil {
		i, ok := v.int()
		if !ok || i < 0 {
			return 0
		}
		r = float64(i)
	}
	switch c.name {
	case "itertools.product":
		return c.product()
	case "itertools.permutations":
		return falling(n, r)
	case "itertools.combinations":
		return falling(n, r) / falling(r, r)
	case "itertools.combinations_with_replacement":
		return falling(n+r-1, r) / falling(r, r)
	}
	return 0
}

func (c *invocation) product() float64 {
	if c.open {
		return 0
	}
	once, times := float64(1), int64(1)
	for _, v := range c.pos {
		once *= float64(lengthOf(v))
	}
	if v := c.kw["repeat"]; v != nil {
		n, ok := v.int()
		if !ok {
			return 0
		}
		times = min(n, 256)
	}
	all := float64(1)
	for range times {
		all *= once
	}
	return all
}

// falling is n · (n-1) · … of r factors.
func falling(n, r float64) float64 {
	out := float64(1)
	for i := float64(0); i < r && i < 256; i++ {
		out *= max(n-i, 0)
	}
	return out
}

// lengthOf is how many items v has, 0 where that is not known.
func lengthOf(v *val) int {
	switch {
	case v.isSeq() || v.kind == kSet:
		return max(v.x.size, len(v.x.items))
	case v.kind == kDict && !v.open:
		return len(v.x.order)
	case v.kind == kStr || v.kind == kBytes:
		s, _ := v.oneText()
		return len(s)
	}
	return 0
}

// sized gives the result of a call the number of its items, where that is more
// than there is room for.
func (c *invocation) sized(v *val) *val {
	if !strings.HasPrefix(c.name, "itertools.") {
		return v
	}
	if n := c.combined(); n >= hugeItems {
		return &val{kind: kList, open: true, from: v.from, x: &extra{size: int(min(n, maxSize))}}
	}
	return v
}
