package javascript

import (
	"slices"
	"sort"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// arrayMethods are the methods of arrays.
var arrayMethods = map[string]bool{
	"join": true, "reverse": true, "toReversed": true, "map": true, "forEach": true, "filter": true, "find": true,
	"findLast": true, "findIndex": true, "some": true, "every": true, "flatMap": true, "reduce": true, "reduceRight": true,
	"concat": true, "slice": true, "splice": true, "push": true, "unshift": true, "pop": true, "shift": true, "at": true,
	"indexOf": true, "lastIndexOf": true, "includes": true, "sort": true, "toSorted": true, "fill": true, "flat": true,
	"keys": true, "values": true, "entries": true, "toString": true, "with": true, "copyWithin": true, "toSpliced": true,
	"findLastIndex": true, "hasOwnProperty": true, "next": true, "@@Symbol.iterator": true,
}

// arrayMethod calls a method of an array.
func (w *walk) arrayMethod(obj *val, key string, s *site) (*val, bool) {
	if !arrayMethods[key] {
		return nil, false
	}
	o := obj.ref
	if iterates[key] {
		return w.iterate(obj, key, s), true
	}
	switch key {
	case "join", "toString":
		sep := text(",")
		if key == "join" && len(s.args) > 0 && !s.arg(0).isNone() {
			sep = s.arg(0)
		}
		return w.join(obj, sep), true
	case "reverse", "toReversed":
		items := slices.Clone(o.items)
		slices.Reverse(items)
		if key == "toReversed" || w.cond > w.base && o.open {
			return w.like(o, items), true
		}
		o.items = items
		return obj, true
	case "sort", "toSorted":
		return w.sort(obj, key == "sort", s), true
	case "push", "unshift":
		w.grow(o, key == "unshift", s)
		return numeric(float64(len(o.items))), true
	case "pop", "shift":
		return w.shrink(o, key == "pop"), true
	case "concat":
		return w.concat(obj, s), true
	case "slice":
		a, b, ok := bounds(s, len(o.items))
		if !ok || o.open && !s.arg(0).isNone() {
			return &val{ref: &object{role: array, items: o.items, open: true, from: o.from}}, true
		}
		return w.like(o, o.items[a:b]), true
	case "splice", "toSpliced", "copyWithin":
		return w.splice(o, s), true
	case "at":
		if i, ok := s.arg(0).integer(); ok && !o.open {
			if i < 0 {
				i += len(o.items)
			}
			return argAt(o.items, i), true
		}
		return anyMember(obj), true
	case "fill":
		for i := range o.items {
			o.items[i] = s.arg(0)
		}
		if len(o.items) == 0 && o.open {
			o.items = []*val{s.arg(0)}
		}
		return obj, true
	case "flat":
		return w.flat(o), true
	case "values", "keys", "entries":
		if key == "values" {
			return obj, true
		}
		return &val{ref: &object{role: array, open: true, from: o.from}}, true
	case "@@Symbol.iterator":
		return obj, true
	case "next":
		r := &object{role: plain}
		r.set("value", anyMember(obj))
		r.set("done", unknown)
		return &val{ref: r}, true
	case "indexOf", "includes":
		return find(o, key, s), true
	}
	return opaque(obj.origins()), true
}

func (w *walk) like(o *object, items []*val) *val {
	return &val{ref: &object{role: array, items: items, open: o.open, from: o.from}}
}

// join is the text of all items.
func (w *walk) join(obj, sep *val) *val {
	o := obj.ref
	parts := make([]facts.Value, 0, len(o.items))
	for _, it := range o.items {
		if it.isNone() {
			parts = append(parts, facts.Text(""))
			continue
		}
		parts = append(parts, joinable(it))
	}
	if len(parts) > 1024 && !allKnown(parts) {
		return opaque(obj.origins())
	}
	v := facts.Join(joinable(sep), parts)
	if o.open {
		v = facts.Concat(v, facts.Opaque())
	}
	v.Type = "str"
	return of(v.WithFrom(o.from...))
}

func allKnown(vs []facts.Value) bool {
	for _, v := range vs {
		if len(v.Alts) != 1 {
			return false
		}
	}
	return true
}

func (w *walk) sort(obj *val, inPlace bool, s *site) *val {
	o := obj.ref
	items := slices.Clone(o.items)
	texts := make([]string, len(items))
	for i, it := range items {
		t, ok := coerce(it)
		if !ok {
			w.handOver(s, obj.origins())
			return obj
		}
		texts[i] = t
	}
	if len(s.args) > 0 {
		w.handOver(s, obj.origins())
		return w.like(&object{open: true, from: o.from}, items)
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return texts[order[a]] < texts[order[b]] })
	sorted := make([]*val, len(items))
	for i, j := range order {
		sorted[i] = items[j]
	}
	if inPlace {
		o.items = sorted
		return obj
	}
	return w.like(o, sorted)
}

func (w *walk) grow(o *object, front bool, s *site) {
	if len(o.items)+len(s.args) > maxItems {
		o.open = true
		return
	}
	if w.cond > w.base {
		o.open = true
	}
	o.open = o.open || s.open
	if front {
		o.items = slices.Concat(s.args, o.items)
		return
	}
	o.items = slices.Concat(o.items, s.args)
}

func (w *walk) shrink(o *object, end bool) *val {
	n := len(o.items)
	if n == 0 {
		if o.open {
			return opaque(o.from)
		}
		return undefined
	}
	if w.cond > w.base || o.open {
		return anyMember(&val{ref: o})
	}
	if end {
		v := o.items[n-1]
		o.items = o.items[: n-1 : n-1]
		return v
	}
	v := o.items[0]
	o.items = o.items[1:]
	return v
}

func (w *walk) concat(obj *val, s *site) *val {
	out := &object{role: array, open: obj.ref.open || s.open, from: obj.ref.from}
	out.items = slices.Clone(obj.ref.items)
	for _, a := range s.args {
		switch {
		case a.isArray():
			out.items = append(out.items, a.ref.items...)
			out.open = out.open || a.ref.open
			out.from = merge(out.from, a.ref.from)
		case a.simple() && !a.Known() || a.foreign():
			out.items = append(out.items, a)
			out.open = true
		default:
			out.items = append(out.items, a)
		}
	}
	if len(out.items) > maxItems {
		out.items, out.open = out.items[:maxItems], true
	}
	return &val{ref: out}
}

func (w *walk) splice(o *object, s *site) *val {
	start, ok := s.arg(0).integer()
	if start < 0 {
		start += len(o.items)
	}
	start = max(0, min(start, len(o.items)))
	n := len(o.items) - start
	if !s.arg(1).isNone() {
		m, okN := s.arg(1).integer()
		n, ok = max(0, min(n, m)), ok && okN
	}
	if !ok || w.cond > w.base || o.open {
		o.open = true
		o.items = slices.Concat(o.items, from(s.args, 2))
		return &val{ref: &object{role: array, items: o.items, open: true, from: o.from}}
	}
	cut := o.items[start : start+n]
	o.items = slices.Concat(o.items[:start], from(s.args, 2), o.items[start+n:])
	return w.like(o, cut)
}

func (w *walk) flat(o *object) *val {
	out := &object{role: array, open: o.open, from: o.from}
	for _, it := range o.items {
		if it.isArray() && len(out.items)+len(it.ref.items) <= maxItems {
			out.items = append(out.items, it.ref.items...)
			out.open = out.open || it.ref.open
			continue
		}
		out.items = append(out.items, it)
	}
	return &val{ref: out}
}

func find(o *object, key string, s *site) *val {
	want, ok := s.arg(0).one()
	if !ok || o.open {
		return unknown
	}
	at := -1
	for i, it := range o.items {
		t, ok := it.one()
		if !ok {
			return unknown
		}
		if t == want && at < 0 {
			at = i
		}
	}
	if key == "includes" {
		return boolean(at >= 0)
	}
	return numeric(float64(at))
}

// maxEach is how many items a function is called for one by one.
const maxEach = 512

// iterate calls a function for each item of an array.
func (w *walk) iterate(obj *val, key string, s *site) *val {
	if strings.HasPrefix(key, "reduce") {
		return w.reduce(obj, key, s)
	}
	o, f := obj.ref, s.arg(0)
	items := o.items
	open := o.open
	if len(items) > maxEach {
		items, open = items[:maxEach], true
	}
	out := &object{role: array, open: open, from: o.from}
	var found *val
	base := w.base
	w.base = w.cond
	w.loops++
	if open && len(items) == 0 {
		items = []*val{opaque(o.from)}
	}
	for i, it := range items {
		r := w.back(f, []*val{it, numeric(float64(i)), obj}, s.n)
		may, certain := truthy(r)
		switch key {
		case "map":
			out.items = append(out.items, r)
		case "flatMap":
			if r.isArray() {
				out.items = append(out.items, r.ref.items...)
			} else {
				out.items = append(out.items, r)
			}
		case "filter":
			if may || !certain {
				out.items = append(out.items, it)
				out.open = out.open || !certain
			}
		case "find", "findLast":
			if may || !certain {
				found = union(found, it)
			}
		}
		if key == "find" && may && certain {
			break
		}
	}
	w.loops--
	w.base = base
	switch key {
	case "map", "flatMap", "filter":
		return &val{ref: out}
	case "find", "findLast":
		if found == nil {
			return unknown
		}
		return found
	case "forEach":
		return undefined
	}
	return unknown
}

func (w *walk) reduce(obj *val, key string, s *site) *val {
	items := slices.Clone(obj.ref.items)
	if key == "reduceRight" {
		slices.Reverse(items)
	}
	var acc *val
	if len(s.args) > 1 {
		acc = s.arg(1)
	} else if len(items) > 0 {
		acc, items = items[0], items[1:]
	}
	if obj.ref.open || len(items) > maxEach || acc == nil {
		return w.back(s.arg(0), []*val{opaque(obj.origins()), itemOf(obj), unknown, obj}, s.n)
	}
	base := w.base
	w.base = w.cond
	for i, it := range items {
		acc = w.back(s.arg(0), []*val{acc, it, numeric(float64(i)), obj}, s.n)
	}
	w.base = base
	return acc
}
