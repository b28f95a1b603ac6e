package python

// namesOf are the names of the classes that come of another, and nothing else of
// them: [c.__name__ for c in Exception.__subclasses__()]; nil for anything else.
func (it *interp) namesOf(k kind, n *node, s *scope) *val {
	body, each := n.child("body"), n.nth(1)
	if k != kList && k != kSet || body == nil || body.kind != "attribute" || each == nil || each.kind != "for_in_clause" || n.nth(2) != nil {
		return nil
	}
	class, of := body.child("object"), each.child("right")
	if class == nil || class.kind != "identifier" || it.t.text(class) != it.t.text(each.child("left")) || it.t.text(body.child("attribute")) != "__name__" || of == nil || of.kind != "call" || of.next != nil {
		return nil
	}
	f, args := of.child("function"), of.child("arguments")
	if f == nil || f.kind != "attribute" || it.t.text(f.child("attribute")) != "__subclasses__" || args == nil || args.nth(0) != nil {
		return nil
	}
	if base := f.child("object"); base == nil || base.kind != "identifier" || !builtins[it.t.text(base)] || !it.everyones(it.t.text(base), s) {
		return nil // what it does may be the program's own
	}
	out := list(k, []*val{unknown})
	out.open = true
	return out
}
