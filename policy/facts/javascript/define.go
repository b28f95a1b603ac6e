package javascript

import "strings"

// nativeDefine gives an object a member by its descriptor. It calls nothing of
// the object, so that defining one more member of what a module exports hands
// none of the others to anybody.
func nativeDefine(w *walk, s *site) (*val, bool) {
	target, d := s.arg(0), s.arg(2)
	key, ok := s.arg(1).keyText()
	w.inherited(target, key, s.n)
	if target.ref == nil || target.ref == w.top || target.ref.role == proxy || !ok || s.open || d.ref == nil {
		w.handOver(s, nil)
		return target, true
	}
	if !w.define(target.ref, key, d) {
		w.giveFunction(target, nil, 2)
	}
	if implicit[key] || strings.HasPrefix(key, "@@") || !onlyValue(d.ref) {
		w.giveFunction(d, nil, 2)
	}
	return target, true
}

// define gives o that member, and reports whether what it had before is known
// to be gone, or kept beside it.
func (w *walk) define(o *object, key string, d *val) bool {
	if v := d.ref.props["value"]; v != nil {
		w.setMember(o, key, v)
		return true
	}
	g := d.ref.props["get"]
	if g == nil || g.ref == nil || g.ref.fn == nil {
		return false
	}
	had := o.props[key] != nil && w.cond > w.base
	g.ref.fn.getter = true
	o.set(key, g)
	return !had
}

// onlyValue reports a descriptor that is wholly known and has no functions that
// the language calls.
func onlyValue(d *object) bool {
	return d.role == plain && !d.open && d.base == nil && d.props["get"] == nil && d.props["set"] == nil
}
