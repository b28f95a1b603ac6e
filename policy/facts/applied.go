package facts

import (
	"slices"
	"strings"
)

// call applies a callable that is an argument.
func (x *effects) call(e *Effect, v Value) {
	if x.b.depth+x.applied > x.b.s.lim.Depth || v.Func == "" {
		return
	}
	c := Call{At: At{Pos: x.pos}, Name: v.Func, How: "value", Recv: v.Recv}
	each := false
	c.Kwargs = x.named(e.With)
	for _, ref := range e.With {
		ref, each = strings.CutPrefix(ref, "each ")
		a, ok := x.args.find(ref)
		switch {
		case !ok:
		case each:
			for _, it := range a.Items {
				one := c
				one.Args = []Value{it}
				x.b.Call(one)
			}
			if a.Items == nil {
				c.Args = append(c.Args, Opaque(a.From...))
				x.b.Call(c)
			}
			return
		case a.Items != nil:
			c.Args = append(c.Args, a.Items...)
		default:
			c.Args = append(c.Args, a)
		}
	}
	x.b.Call(c)
}

// named are the arguments by name that what is applied gets: all of the call
// where it gets the rest of the others, otherwise those of a mapping, as threads
// take them.
func (x *effects) named(with []string) map[string]Value {
	a, ok := x.args.(callArgs)
	if !ok {
		return nil
	}
	if slices.ContainsFunc(with, func(ref string) bool { return strings.HasSuffix(ref, "*") }) {
		return a.c.Kwargs
	}
	refs := []string{"kwargs", "kwds"}
	for _, ref := range with {
		if at, is := strings.CutPrefix(ref, "named "); is {
			refs = append(refs, at)
		}
	}
	kw, _ := x.first(refs)
	return kw.Fields
}
