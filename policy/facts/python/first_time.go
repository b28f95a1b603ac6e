package python

import "hash/maphash"

// noted counts what is done for the first time: at this place, to these
// values. It looks only where a function was followed many times.
func (it *interp) noted(what string, n *node, a *arguments) {
	if len(it.calls) == 0 || it.calls[len(it.calls)-1].runs <= sameRuns {
		return
	}
	var h maphash.Hash
	h.SetSeed(seed)
	p := it.pos(n)
	h.WriteString(what)
	h.Write([]byte{byte(p.Line), byte(p.Line >> 8), byte(p.Line >> 16), byte(p.Col), byte(p.Col >> 8)})
	for _, v := range a.pos {
		v.mark(&h, 0)
	}
	for _, k := range a.keys {
		h.WriteString(k)
		a.kw[k].mark(&h, 0)
	}
	for _, from := range a.rest {
		h.WriteString(from)
	}
	if first(&it.noticed, h.Sum64()) {
		it.news++
	}
}

// changed notes that something which functions can see is another from now on.
func (it *interp) changed(name string, vs ...*val) {
	it.version++
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(name)
	for _, v := range vs {
		v.mark(&h, 0)
	}
	if first(&it.changes, h.Sum64()) {
		it.novel++
	}
}

// first puts a sum into a set, and reports that it was not there.
func first(in *map[uint64]bool, sum uint64) bool {
	if (*in)[sum] {
		return false
	}
	if *in == nil {
		*in = map[uint64]bool{}
	}
	(*in)[sum] = true
	return true
}

var seed = maphash.MakeSeed()

// mark writes what tells a value from others.
func (v *val) mark(h *maphash.Hash, depth int) {
	h.WriteByte(byte(v.kind))
	h.WriteString(v.text)
	for _, s := range v.more {
		h.WriteString(s)
	}
	for _, s := range v.from {
		h.WriteString(s)
	}
	if v.x == nil || depth > 3 {
		return
	}
	if v.x.fn != nil {
		h.WriteString(v.x.fn.name)
	}
	if v.x.cls != nil {
		h.WriteString(v.x.cls.name)
	}
	h.WriteString(v.x.pre)
	h.WriteString(v.x.suf)
	for i, item := range v.x.items {
		if i < 64 {
			item.mark(h, depth+1)
		}
	}
	for _, b := range v.x.alts {
		b.mark(h, depth+1)
	}
	for i, k := range v.x.order {
		if i < 64 {
			h.WriteString(k)
			v.x.dict[k].mark(h, depth+1)
		}
	}
	if v.x.str != nil {
		v.x.str.mark(h, depth+1)
	}
}
