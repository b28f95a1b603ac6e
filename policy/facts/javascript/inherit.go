package javascript

import "github.com/caisson-dev/caisson/policy/facts"

// starting are the settings that functions which start programs look for in an object of theirs: one that all objects
// inherit holds for every program that is started without it, and so do variables in place of process.env.
var starting = map[string]bool{
	"shell": true, "env": true, "argv0": true, "execPath": true, "execArgv": true, "input": true, "uid": true, "gid": true,
	"NODE_OPTIONS": true, "LD_PRELOAD": true, "BASH_ENV": true, "GIT_SSH_COMMAND": true, "PATH": true, "main": true, "exports": true,
}

// inherited looks at a member that is given to what all objects inherit from.
func (w *walk) inherited(o *val, key string, n id) {
	if o.name == "Object.prototype" && starting[key] {
		w.dynamic(facts.DynReflection, "all objects are given "+key+", by which programs are started", n)
	}
}

// carries looks for members of JSON text that a merge of objects gives to what all objects inherit from.
func (w *walk) carries(x any, n id, depth int) {
	m, ok := x.(map[string]any)
	if !ok || depth == 0 {
		return
	}
	for key, v := range m {
		if inner, ok := v.(map[string]any); ok && (key == "__proto__" || key == "prototype") {
			for k, below := range inner {
				w.inherited(named("Object.prototype", ""), k, n)
				w.carries(below, n, depth-1)
			}
			continue
		}
		w.carries(v, n, depth-1)
	}
}

// nativeParent is what an object inherits from.
func nativeParent(w *walk, s *site) (*val, bool) {
	v := settled(s.arg(0))
	if v.ref != nil && v.ref.role == plain && !v.ref.open && v.ref.base == nil {
		return named("Object.prototype", "attr"), true
	}
	return v, true
}

// nativeReflectSet is an assignment to a member.
func nativeReflectSet(w *walk, s *site) (*val, bool) {
	key, ok := s.arg(1).keyText()
	w.put(s.arg(0), key, ok, s.arg(2), s.n)
	return yes, true
}

// nativeWeakRef is an object that gives what it was made with.
func nativeWeakRef(_ *walk, s *site) (*val, bool) {
	o := &object{role: plain}
	o.set("deref", &val{ref: &object{role: bound, base: named("Object", ""), items: []*val{s.arg(0)}}})
	return &val{ref: o}, true
}
