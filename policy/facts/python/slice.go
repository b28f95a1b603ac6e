package python

// slice is v[a:b:c].
func (it *interp) slice(v *val, n *node, s *scope) *val {
	bounds := [3]*val{}
	i := 0
	for c := n.first; c != nil; c = c.next {
		if c.kind == ":" {
			i++
		} else if c.named && i < 3 && c.kind != "comment" {
			bounds[i] = it.eval(c, s)
		}
	}
	var at [3]int64
	for i, b := range bounds {
		if b == nil || b.kind == kNone {
			bounds[i] = nil
			continue
		}
		x, ok := b.int()
		if !ok {
			return derived(v)
		}
		at[i] = x
	}
	step := int64(1)
	if bounds[2] != nil {
		step = at[2]
	}
	if step == 0 {
		return unknown
	}
	pick := func(length int) []int { return sliceIndices(length, at, bounds[0] != nil, bounds[1] != nil, step) }
	switch {
	case v.kind == kStr || v.kind == kBytes:
		return it.eachText(v, func(s string) *val { return sliceText(v.kind, s, pick).with(v.from) })
	case v.isSeq() && !v.open:
		idx := pick(len(v.x.items))
		items := make([]*val, len(idx))
		for i, j := range idx {
			items[i] = v.x.items[j]
		}
		return list(v.kind, items).with(v.from)
	case v.kind == kUnknown && v.x != nil && bounds[0] == nil && bounds[1] != nil && step == 1 && at[1] >= 0 && int(at[1]) <= len(v.x.pre):
		return str(v.x.pre[:at[1]]).with(v.from)
	}
	return derived(v)
}

func sliceText(k kind, s string, pick func(int) []int) *val {
	if k == kBytes {
		idx := pick(len(s))
		out := make([]byte, len(idx))
		for i, j := range idx {
			out[i] = s[j]
		}
		return byteText(string(out))
	}
	r := []rune(s)
	idx := pick(len(r))
	out := make([]rune, len(idx))
	for i, j := range idx {
		out[i] = r[j]
	}
	return str(string(out))
}

func sliceIndices(length int, at [3]int64, hasStart, hasEnd bool, step int64) []int {
	n := int64(length)
	norm := func(x, low, high int64) int64 {
		if x < 0 {
			x += n
		}
		return min(max(x, low), high)
	}
	start, end := int64(0), n
	low, high := int64(0), n
	if step < 0 {
		start, end, low, high = n-1, -1, -1, n-1
	}
	if hasStart {
		start = norm(at[0], low, high)
	}
	if hasEnd {
		end = norm(at[1], low, high)
	}
	var out []int
	if step > n {
		step = n + 1
	}
	if step < -n {
		step = -n - 1
	}
	for i := start; step > 0 && i < end || step < 0 && i > end; i += step {
		out = append(out, int(i))
	}
	return out
}

func indexText(v, key *val) *val {
	i, ok := key.int()
	if !ok {
		return derived(v, key)
	}
	var out *val
	for _, s := range v.all() {
		out = join(out, charAt(v.kind, s, i))
	}
	return out.with(v.from)
}

func charAt(k kind, s string, i int64) *val {
	if k == kBytes {
		if i < 0 {
			i += int64(len(s))
		}
		if i < 0 || i >= int64(len(s)) {
			return unknown
		}
		return integer(int64(s[i]))
	}
	r := []rune(s)
	if i < 0 {
		i += int64(len(r))
	}
	if i < 0 || i >= int64(len(r)) {
		return unknown
	}
	return str(string(r[i]))
}
