package javascript

import (
	"math"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// val is what the walk knows of one value of the program. A val is never changed once it is made; what its ref points to
// is, as in the program.
type val struct {
	// Value holds texts, numbers and origins, and the type of what a call outside the program gave.
	facts.Value
	// name is the dotted name of a module, a global or a member of one: something that is not the program's own.
	name string
	// how the name was reached, as [facts.Call] tells it.
	how string
	// recv are the arguments of the constructor that made the object that name is a member of.
	recv []facts.Value
	// this is the object that a method was taken from.
	this *val
	// ref is an object of the program.
	ref *object
	// alts are the values it may have, where they are not all texts.
	alts []*val
	// page: the global object by a name that only web pages have for it, or, with
	// plain, as this of a function that is called for itself.
	page, plain bool
}

// role tells the objects of a program apart.
type role uint8

const (
	plain role = iota + 1
	array
	closure
	class
	instance
	bound    // a function with arguments given before
	resolver // what settles a promise
	regex
	promise
	proxy // items: what it stands for, and what gives its members and results in place of that
)

// object is an object of the program.
type object struct {
	role  role
	items []*val          // array; arguments given before (bound); source and flags (regex)
	props map[string]*val // own members, and static ones of a class
	keys  []string        // of props, in order
	open  bool            // it may have other members or items
	loose []*val          // members whose names are not known
	base  *val            // where members are looked up that it lacks
	proto map[string]*val // methods and fields of instances (class)
	made  *val            // the last instance of a class; what a promise was resolved with
	fn    *function       // closure; constructor of a class
	decl  *declaration    // class
	from  []string
	waits []wait // for a promise
}

// wait is a function that is called when a promise has its value, and the promise of what it gives.
type wait struct {
	f, promise *val
	n          id
}

const (
	maxAlts  = 8
	maxItems = 4096
	maxProps = 512
)

var nan = math.NaN()

var (
	unknown   = &val{}
	undefined = &val{Value: facts.Value{Type: "none", Alts: []string{"undefined"}}}
	null      = &val{Value: facts.Value{Type: "none", Alts: []string{"null"}}}
	yes       = &val{Value: facts.Value{Type: "bool", Alts: []string{"true"}}}
	no        = &val{Value: facts.Value{Type: "bool", Alts: []string{"false"}}}
)

func text(s string) *val { return &val{Value: facts.Text(s)} }

func of(v facts.Value) *val { return &val{Value: v} }

func opaque(from []string) *val {
	if len(from) == 0 {
		return unknown
	}
	return &val{Value: facts.Opaque(from...)}
}

func numeric(f float64) *val {
	if v := smallNumber(f); v != nil {
		return v
	}
	v := facts.Number(spell(f))
	if f != math.Trunc(f) {
		v.Type = "float"
	}
	return &val{Value: v}
}

func boolean(b bool) *val {
	if b {
		return yes
	}
	return no
}

func named(name, how string) *val { return &val{name: name, how: how} }

func list(items []*val) *val { return &val{ref: &object{role: array, items: items}} }

// basicTypes are the types that are values of the language rather than names of what made them.
var basicTypes = map[string]bool{
	"": true, "str": true, "bytes": true, "int": true, "float": true, "bool": true, "none": true, "list": true,
	"dict": true, "callable": true, "regexp": true,
}

// foreign reports that v is an object that a call outside the program gave, of the type that names it.
func (v *val) foreign() bool {
	return v.ref == nil && v.name == "" && v.alts == nil && !basicTypes[v.Type]
}

func (v *val) isText() bool  { return v.simple() && v.Type == "str" && v.Known() }
func (v *val) isBytes() bool { return v.simple() && v.Type == "bytes" && v.Known() }
func (v *val) isNumber() bool {
	return v.simple() && (v.Type == "int" || v.Type == "float") && v.Known()
}
func (v *val) isNone() bool  { return v.simple() && v.Type == "none" }
func (v *val) simple() bool  { return v.ref == nil && v.name == "" && v.alts == nil }
func (v *val) isArray() bool { return v.ref != nil && v.ref.role == array }
func (v *val) isFunc() bool {
	return v.ref != nil && (v.ref.role == closure || v.ref.role == bound || v.ref.role == resolver || v.ref.role == class)
}

// one is the only text that v can be.
func (v *val) one() (string, bool) {
	if !v.simple() {
		return "", false
	}
	return v.One()
}

// float is the only number that v can be.
func (v *val) float() (float64, bool) {
	s, ok := v.one()
	if !ok || !v.isNumber() {
		return 0, false
	}
	return number(s)
}

// integer is float for places that count.
func (v *val) integer() (int, bool) {
	f, ok := v.float()
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<31 {
		return 0, false
	}
	return int(f), true
}

// origins are where v, and what it holds, come from.
func (v *val) origins() []string {
	room := maxLooked
	return v.originsTo(3, &room)
}

// maxLooked is how many parts of a value are looked at for a fact.
const maxLooked = 512

func (v *val) originsTo(depth int, room *int) []string {
	from := v.From
	if *room--; depth == 0 || *room < 0 {
		return from
	}
	for _, a := range v.alts {
		from = merge(from, a.originsTo(depth-1, room))
	}
	if v.ref == nil {
		return from
	}
	from = merge(from, v.ref.from)
	if v.ref.base != nil {
		from = merge(from, v.ref.base.originsTo(depth-1, room))
	}
	if v.ref.role == array || v.ref.role == bound {
		for _, it := range v.ref.items {
			if *room < 0 {
				break
			}
			from = merge(from, it.originsTo(depth-1, room))
		}
	}
	for _, k := range v.ref.keys {
		if *room < 0 {
			break
		}
		from = merge(from, v.ref.props[k].originsTo(depth-1, room))
	}
	return from
}

func merge(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a[:len(a):len(a)], s)
		}
	}
	return a
}

// with gives v more origins.
func (v *val) with(from []string) *val {
	if len(from) == 0 || v.ref != nil {
		return v
	}
	w := *v
	w.Value = v.WithFrom(from...)
	return &w
}

// opened says that v may be something else too.
func (v *val) opened() *val {
	if v.ref != nil || v.name != "" {
		return union(v, unknown)
	}
	if len(v.Alts) == 1 && v.isNone() {
		return opaque(v.From)
	}
	if v.Open {
		return v
	}
	w := *v
	w.Open = true
	return &w
}

// union is a value that may be either.
func union(a, b *val) *val {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	case a.isNone() && !b.isNone():
		return b
	case b.isNone():
		return a
	case a.simple() && b.simple() && a.Recv == nil && b.Recv == nil:
		if covers(&a.Value, &b.Value) {
			return a
		}
		return of(facts.Union(a.Value, b.Value))
	}
	if a.hasAll(b) {
		return a
	}
	out := &val{alts: make([]*val, 0, min(max(1, len(a.alts))+max(1, len(b.alts)), maxAlts))}
	for _, v := range [2]*val{a, b} {
		if v.alts == nil {
			out.add(v)
		}
		for _, x := range v.alts {
			out.add(x)
		}
	}
	if len(out.alts) == 1 {
		return out.alts[0]
	}
	return out
}

func (v *val) add(x *val) {
	if v.has(x) {
		return
	}
	if len(v.alts) == maxAlts {
		v.alts[maxAlts-1] = unknown
		return
	}
	v.alts = append(v.alts, x)
}

// all calls f for each value that v may be.
func (v *val) all(f func(*val)) {
	if v.alts == nil {
		f(v)
		return
	}
	for _, a := range v.alts {
		f(a)
	}
}

// out is v as rules may see it.
func (v *val) out() facts.Value {
	room := maxLooked
	return v.outTo(4, &room)
}

func (v *val) outTo(depth int, room *int) facts.Value {
	*room--
	switch {
	case depth == 0 || *room < 0:
		return facts.Opaque(v.From...)
	case v.alts != nil:
		out := v.alts[0].outTo(depth-1, room)
		for _, a := range v.alts[1:] {
			out = facts.Union(out, a.outTo(depth-1, room))
		}
		return out
	case v.name != "":
		return facts.Callable(v.name).WithFrom(v.From...)
	case v.ref != nil:
		return v.ref.out(depth, room).WithFrom(v.From...)
	}
	if depth < 3 && v.Recv != nil {
		w := v.Value
		w.Recv = nil
		return w
	}
	return v.Value
}

func (o *object) out(depth int, room *int) facts.Value {
	switch o.role {
	case closure, bound, class, resolver:
		if o.role == bound && o.base != nil && o.base.name != "" {
			return facts.Callable(o.base.name)
		}
		return facts.Value{Type: "callable"}
	case regex:
		return facts.Value{Type: "regexp"}
	case array:
		return o.outArray(depth, room)
	default: // an object, as its members
	}
	v := facts.Value{Type: "dict", Open: o.open}
	from := o.from
	if o.base != nil {
		from = merge(from, o.base.From)
	}
	if len(o.keys) > 0 {
		v.Fields = make(map[string]facts.Value, len(o.keys))
		for _, k := range o.keys {
			if *room < 0 {
				v.Open = true
				break
			}
			f := o.props[k].outTo(depth-1, room)
			v.Fields[k] = f
			from = merge(from, f.From)
		}
	}
	return v.WithFrom(from...)
}

func (o *object) outArray(depth int, room *int) facts.Value {
	items := make([]facts.Value, 0, min(len(o.items), 257))
	var from []string
	cut := false
	for i, it := range o.items {
		if cut = i == 257 || *room < 0; cut {
			break
		}
		items = append(items, it.outTo(depth-1, room))
		from = merge(from, items[i].From)
	}
	v := facts.List(items...).WithFrom(merge(from, o.from)...)
	v.Open = v.Open || o.open || cut
	return v
}

// set gives an object a member.
func (o *object) set(key string, v *val) {
	if o.props == nil {
		o.props = make(map[string]*val, 4)
	}
	if _, ok := o.props[key]; !ok {
		if len(o.keys) >= maxProps {
			o.open = true
			if len(o.loose) < maxItems {
				o.loose = append(o.loose, v)
			}
			return
		}
		o.keys = append(o.keys, key)
	}
	o.props[key] = v
}

// last is the part of a dotted name behind its last dot.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
