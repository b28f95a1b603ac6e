package javascript

// iterated is what an object of the program gives that says itself how it is
// gone through: the items of its generator, or the first of its iterator.
func (w *walk) iterated(v *val, n id) *val {
	if v.ref == nil || v.ref.role != plain && v.ref.role != instance && v.ref.role != class {
		return v
	}
	f := w.memberRef(v, "@@Symbol.iterator", "", n, 4)
	if f == nil || f.ref == nil || f.ref.fn == nil {
		return v
	}
	it := w.invoke(f.ref.fn, v, nil, n)
	if it.isArray() || it.ref == nil {
		return it
	}
	next := w.memberRef(it, "next", "", n, 4)
	if next == nil || next.ref == nil || next.ref.fn == nil {
		return it
	}
	turn := w.invoke(next.ref.fn, it, nil, n)
	if turn.ref == nil || turn.ref.props["value"] == nil {
		return unknown
	}
	return &val{ref: &object{role: array, items: []*val{turn.ref.props["value"]}, open: true}}
}
