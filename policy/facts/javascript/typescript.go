package javascript

import "strings"

// ambient is a declaration that only says what there is elsewhere (declare const process: any): it makes no variable, and
// the name stands for what it stood for before. With a line's end behind it, declare is a name like any other.
func (w *walk) ambient(n id) {
	first := w.t.nodes[n].first
	if first == 0 {
		return
	}
	head := w.t.src[w.t.nodes[n].start:w.t.nodes[first].start]
	if w.t.kind(first) == kToken {
		if next := w.t.nodes[first].next; next != 0 {
			head = w.t.src[w.t.nodes[n].start:w.t.nodes[next].start]
		}
	}
	if strings.ContainsAny(head, "\n\r\u2028\u2029") {
		w.inner(n)
	}
}

// namespace runs the body of a namespace and makes an object of what it exports. Bodies of the same name add to one.
func (w *walk) namespace(n id) {
	name, body := w.t.child(n, fName), w.t.child(n, fBody)
	if body == 0 {
		return
	}
	if name == 0 || w.t.kind(name) != kIdentifier {
		w.stmt(body)
		return
	}
	var o *object
	if b := w.sc.vars[w.t.text(name)]; b != nil && b.v != nil && b.v.ref != nil {
		o = b.v.ref // of a function, a class, or an earlier body
	} else {
		o = &object{role: plain}
		w.declareAt(name, &val{ref: o})
	}
	outer := w.sc
	w.sc = &scope{up: outer}
	w.hoist(body)
	for c := w.t.nodes[body].first; c != 0; c = w.t.nodes[c].next {
		w.stmt(c)
		if d := w.t.child(c, fDeclaration); w.t.kind(c) == kExport && d != 0 {
			w.offer(o, d)
		}
	}
	w.sc = outer
}

// offer makes what a declaration introduced members of a namespace.
func (w *walk) offer(o *object, d id) {
	put := func(name id) {
		if name == 0 || w.t.kind(name) == kObjectPattern || w.t.kind(name) == kArrayPattern {
			return
		}
		key := w.identText(w.t.text(name), name)
		if b := w.sc.find(key); b != nil {
			o.set(key, b.get(false))
		}
	}
	if w.t.kind(d) != kDeclaration {
		put(w.t.child(d, fName))
		return
	}
	w.t.each(d, func(c id) {
		if w.t.kind(c) == kDeclarator {
			put(w.t.child(c, fName))
		}
	})
}

// importAlias is import name = a.b: another name for a member.
func (w *walk) importAlias(n id) {
	name := w.t.nodes[n].first
	if name == 0 || w.t.nodes[name].next == 0 {
		return
	}
	at := w.t.nodes[name].next
	for w.t.nodes[at].next != 0 {
		at = w.t.nodes[at].next
	}
	var v *val
	for part := range strings.SplitSeq(w.t.text(at), ".") {
		part = strings.TrimSpace(part)
		switch b := w.sc.find(part); {
		case v != nil:
			v = w.member(v, part, "", at)
		case b != nil:
			v = b.get(w.late > 0)
		default:
			v = w.global(part)
		}
	}
	w.declareAt(name, v)
}
