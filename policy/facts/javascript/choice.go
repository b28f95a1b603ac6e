package javascript

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// A program that calls a member by a name which is not known may mean any
// member of that object, also one that it gets later.

// maxChosen is how many objects are kept for that, and maxChoices how often
// their members are looked at anew.
const (
	maxChosen  = 256
	maxChoices = 8
)

// calledByAny notes that a member of obj is called whose name is not known.
func (w *walk) calledByAny(obj *val) {
	if w.idle {
		return
	}
	obj.all(func(v *val) {
		switch {
		case v.name != "":
		case v.ref == nil || v.ref.role == proxy || v.ref == w.top || len(w.chosen) >= maxChosen:
			w.wild = true // it may be anything that was lost sight of
		case !slices.Contains(w.chosen, v.ref):
			w.chosen = append(w.chosen, v.ref)
		}
	})
}

// choices runs what the objects hold whose members are called by names that are
// not known, until they hold nothing new.
func (w *walk) choices() {
	for range maxChoices {
		if !w.handChosen() {
			return
		}
		w.rest(false)
	}
	w.wild = true // there may be more
}

// handChosen says of the members of these objects that they will be called, and
// reports whether that is news.
func (w *walk) handChosen() bool {
	news := false
	for _, o := range w.chosen {
		w.wild = w.wild || o.obscure(4)
		news = handMembers(o, 4) || news
	}
	return news
}

// above are the members by which an object has further ones.
var above = []string{"__proto__", "prototype"}

// obscure reports an object with members that are not kept, or that a function
// of it gives.
func (o *object) obscure(depth int) bool {
	if o == nil || depth == 0 {
		return o != nil
	}
	if o.open && o.role != array && len(o.loose) == 0 {
		return true
	}
	for _, list := range []iter.Seq[*val]{slices.Values(o.loose), maps.Values(o.props), maps.Values(o.proto)} {
		for v := range list {
			if v.ref != nil && v.ref.fn != nil && v.ref.fn.getter {
				return true
			}
		}
	}
	for _, k := range above {
		if p := o.props[k]; p != nil && (p.ref == nil || p.ref.obscure(depth-1)) {
			return true
		}
	}
	return o.base != nil && o.base.ref.obscure(depth-1)
}

// handMembers does so for one object, and for what it has its members from.
func handMembers(o *object, depth int) bool {
	if o == nil || depth == 0 {
		return false
	}
	news := giveMembers(slices.Values(o.items), slices.Values(o.loose), maps.Values(o.props), maps.Values(o.proto))
	if o.base != nil {
		news = handMembers(o.base.ref, depth-1) || news
	}
	for _, k := range above {
		if p := o.props[k]; p != nil {
			news = handMembers(p.ref, depth-1) || news
		}
	}
	return news
}

func giveMembers(lists ...iter.Seq[*val]) bool {
	news := false
	for _, list := range lists {
		for v := range list {
			news = giveMember(v) || news
		}
	}
	return news
}

// loosen gives o a member whose name is not known.
func (w *walk) loosen(o *object, v *val) {
	o.open = true
	switch {
	case v.simple() || v.name != "":
	case len(o.loose) < maxProps:
		o.loose = append(o.loose, v)
	default:
		w.wild = true
	}
}

// giveMember says that a function, if v is one, will be called, and reports
// whether that is news.
func giveMember(v *val) bool {
	news := false
	v.all(func(f *val) {
		for range 4 { // what is bound is called by what it is bound in
			if f.ref == nil || f.ref.role != bound || f.ref.base == nil {
				break
			}
			f = f.ref.base
		}
		if f.ref == nil {
			return
		}
		if fn := f.ref.fn; fn != nil && f.ref.role == closure && !fn.handed {
			fn.handed, news = true, true
		}
	})
	return news
}

// keeps reports a function that calls nothing of what it is given, which it
// gives back or copies to where it is followed, or that hands on by itself what
// will be called.
func (s *site) keeps() bool {
	switch s.name {
	case "Object.freeze", "Object.seal", "Object.preventExtensions", "Object.keys", "Object.defineProperty":
		return true
	case "Object.assign":
		to := s.arg(0).ref
		return !s.open && to != nil && to.role == plain && to.base == nil && !slices.ContainsFunc(to.keys, func(k string) bool { return strings.HasPrefix(k, setterOf) })
	}
	return false
}
