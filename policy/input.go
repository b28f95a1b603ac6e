package policy

import (
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Building the input as OPA's own terms, grouped by what rules look up, is
// what makes a decision take a fraction of a millisecond: converting Go values
// costs ten times the evaluation.

type pair = [2]*ast.Term

func str(s string) *ast.Term { return ast.InternedTerm(s) }
func num(n int) *ast.Term    { return ast.InternedTerm(n) }

func boolean(b bool) *ast.Term { return ast.InternedTerm(b) }

func strs(ss []string) *ast.Term {
	ts := make([]*ast.Term, len(ss))
	for i, s := range ss {
		ts[i] = str(s)
	}
	return ast.ArrayTerm(ts...)
}

func field(name string, v *ast.Term) pair { return pair{ast.InternedTerm(name), v} }

// group collects facts under one or two keys.
type group struct {
	keys []string
	in   map[string][]*ast.Term
}

func (g *group) add(key string, t *ast.Term) {
	if g.in == nil {
		g.in = map[string][]*ast.Term{}
	}
	if _, ok := g.in[key]; !ok {
		g.keys = append(g.keys, key)
	}
	g.in[key] = append(g.in[key], t)
}

func (g *group) term() *ast.Term {
	pairs := make([]pair, 0, len(g.keys))
	for _, k := range g.keys {
		pairs = append(pairs, pair{str(k), ast.ArrayTerm(g.in[k]...)})
	}
	return ast.ObjectTerm(pairs...)
}

func (g *group) holds(first, _ []string) bool {
	if first == nil {
		return len(g.in) > 0
	}
	return slices.ContainsFunc(first, func(k string) bool { return g.in[k] != nil })
}

type groups struct {
	keys []string
	in   map[string]*group
}

func (g *groups) add(outer, inner string, t *ast.Term) {
	if g.in == nil {
		g.in = map[string]*group{}
	}
	sub, ok := g.in[outer]
	if !ok {
		sub = &group{}
		g.in[outer] = sub
		g.keys = append(g.keys, outer)
	}
	sub.add(inner, t)
}

func (g *groups) holds(first, then []string) bool {
	if first == nil {
		first = g.keys
	}
	return slices.ContainsFunc(first, func(k string) bool { return g.in[k] != nil && g.in[k].holds(then, nil) })
}

func (g *groups) term() *ast.Term {
	pairs := make([]pair, 0, len(g.keys))
	for _, k := range g.keys {
		pairs = append(pairs, pair{str(k), g.in[k].term()})
	}
	return ast.ObjectTerm(pairs...)
}

// inputBuilder makes the document that rules see as input. A fact's place is
// a number there ("at"), which findings hand back; places has what it means.
type inputBuilder struct {
	// uses says which parts any rule looks at.
	uses     func(part string) bool
	places   []*facts.At
	writable []string // [Request.Writable]
	// needs are the sorts of facts that the input's "has" tells of.
	needs []need
	met   []bool // by need, once built
}

// holder holds something under keys.
type holder interface {
	// holds reports that there is something under one of those; nil is any.
	holds(first, then []string) bool
}

// grouped are facts under their keys.
type grouped interface {
	holder
	term() *ast.Term
}

// at is a fact's place: its number, and its line for rules that compare.
func (b *inputBuilder) at(a *facts.At) (place, line pair) {
	b.places = append(b.places, a)
	return field("at", num(len(b.places)-1)), field("line", num(a.Line))
}

func (b *inputBuilder) build(d *facts.Document, ctx map[string]any, now time.Time) (ast.Value, error) {
	extra := ast.ObjectTerm()
	if len(ctx) > 0 {
		v, err := ast.InterfaceToValue(ctx)
		if err != nil {
			return nil, err
		}
		extra = ast.NewTerm(v)
	}
	pairs := []pair{field("meta", metaTerm(&d.Meta)), field("ctx", extra), field("now", str(now.UTC().Format(time.RFC3339)))}
	has := map[string]holder{"ctx": told(ctx)}
	add := func(part string, make func() grouped) {
		if b.uses(part) {
			g := make()
			has[part] = g
			pairs = append(pairs, field(part, g.term()))
		}
	}
	add("files", func() grouped { return b.files(d.Files) })
	add("net", func() grouped { return b.net(d.Net) })
	add("commands", func() grouped { return b.commands(d.Commands) })
	add("calls", func() grouped { return b.calls(d.Calls) })
	add("imports", func() grouped { return b.imports(d.Imports) })
	add("env", func() grouped { return b.env(d.Env) })
	add("actions", func() grouped { return b.actions(d.Actions) })
	add("dynamic", func() grouped { return b.dynamic(d) })
	add("strings", func() grouped { return b.strings(d.Strings) })
	add("structs", func() grouped { return b.structs(d.Structs) })
	if b.uses("pipelines") {
		has["pipelines"] = some(len(d.Pipes) > 0)
		pairs = append(pairs, field("pipelines", b.pipelines(d.Pipes)))
	}
	return ast.NewObject(append(pairs, field("has", b.hasTerm(has)))...), nil
}

// hasTerm names the needs that are met.
func (b *inputBuilder) hasTerm(has map[string]holder) *ast.Term {
	var met []pair
	b.met = make([]bool, len(b.needs))
	for i := range b.needs {
		if n := &b.needs[i]; has[n.part] != nil && has[n.part].holds(n.first, n.then) {
			b.met[i] = true
			met = append(met, pair{n.term, ast.InternedTerm(true)})
		}
	}
	return ast.ObjectTerm(met...)
}

// some is a list that has no keys.
type some bool

func (s some) holds(_, _ []string) bool { return bool(s) }

// told is what is known beside the facts, by its keys.
type told map[string]any

func (t told) holds(first, _ []string) bool {
	if first == nil {
		return len(t) > 0
	}
	return slices.ContainsFunc(first, func(k string) bool { _, ok := t[k]; return ok })
}

func metaTerm(m *facts.Meta) *ast.Term {
	return ast.ObjectTerm(field("lang", str(string(m.Lang))), field("sha256", str(m.SHA256)), field("bytes", num(m.Bytes)),
		field("errors", num(m.Errors)), field("truncated", boolean(m.Truncated)))
}

// mostColumns is more than any line has.
const mostColumns = 10_000_000

// spot is where a fact begins, for rules that ask which command it is of: they
// look it up in a set of those of commands, since to go through all commands for
// each fact takes minutes where a text has thousands. It is one number, because
// the engine's sets look for a pair among all that have the same sum.
func spot(a *facts.At) pair { return field("spot", num(a.Line*mostColumns+a.Col)) }

func (b *inputBuilder) files(fs []facts.File) grouped {
	var g groups
	for i := range fs {
		f := &fs[i]
		place, line := b.at(&f.At)
		g.add(f.Op, f.Class, ast.ObjectTerm(place, line, spot(&f.At), field("op", str(f.Op)), field("path", str(f.Path)), field("class", str(f.Class)),
			field("traversal", boolean(f.Traversal)), field("folded", boolean(f.Folded)), field("recursive", boolean(f.Recursive)),
			field("mode", str(f.Mode)), field("by", str(f.By)), field("idle", boolean(f.Idle)), field("from", strs(f.From)), field("where", str(f.Where))))
	}
	return &g
}

func (b *inputBuilder) net(ns []facts.Net) grouped {
	var g groups
	for i := range ns {
		n := &ns[i]
		place, line := b.at(&n.At)
		g.add(n.Class, n.Op, ast.ObjectTerm(place, line, field("op", str(n.Op)), field("method", str(n.Method)), field("url", str(n.URL)),
			field("scheme", str(n.Scheme)), field("host", str(n.Host)), field("port", num(n.Port)), field("class", str(n.Class)),
			field("folded", boolean(n.Folded)), field("by", str(n.By)), field("carries", strs(n.Carries)), field("size", num(n.Size))))
	}
	return &g
}

func (b *inputBuilder) commands(cs []facts.Command) grouped {
	var g group
	for i := range cs {
		c := &cs[i]
		place, line := b.at(&c.At)
		pairs := []pair{place, line, spot(&c.At), field("name", str(c.Name)), field("path", str(c.Path)), field("argv", strs(c.Argv)), field("flags", strs(c.Flags)),
			field("operands", strs(c.Operands)), field("stdin", str(c.Stdin)), field("pipe_from", strs(c.PipeFrom)), field("pipe_to", strs(c.PipeTo)),
			field("background", boolean(c.Background)), field("wrappers", strs(c.Wrappers)), field("in", strs(c.In))}
		env := ast.NewObject()
		for k, v := range c.Env {
			env.Insert(str(k), str(v))
		}
		values := ast.NewObject()
		for k, v := range c.Values {
			values.Insert(str(k), str(v))
		}
		opaque := make([]*ast.Term, len(c.Opaque))
		for j, n := range c.Opaque {
			opaque[j] = num(n)
		}
		pairs = append(pairs, field("env", ast.NewTerm(env)), field("values", ast.NewTerm(values)), field("opaque", ast.ArrayTerm(opaque...)))
		g.add(c.Name, ast.ObjectTerm(pairs...))
	}
	return &g
}

func valueTerm(v facts.Value) *ast.Term {
	items := make([]*ast.Term, len(v.Items))
	for i, it := range v.Items {
		items[i] = valueTerm(it)
	}
	return ast.ObjectTerm(field("type", str(v.Type)), field("values", strs(v.Alts)), field("open", boolean(v.Open || len(v.Alts) == 0)),
		field("prefix", str(v.Prefix)), field("func", str(v.Func)), field("from", strs(v.From)), field("items", ast.ArrayTerm(items...)))
}

func (b *inputBuilder) calls(cs []facts.Call) grouped {
	var g group
	for i := range cs {
		c := &cs[i]
		place, line := b.at(&c.At)
		args := make([]*ast.Term, len(c.Args))
		for j, a := range c.Args {
			args[j] = valueTerm(a)
		}
		kw := ast.NewObject()
		for k, v := range c.Kwargs {
			kw.Insert(str(k), valueTerm(v))
		}
		g.add(c.Name, ast.ObjectTerm(place, line, field("name", str(c.Name)), field("args", ast.ArrayTerm(args...)),
			field("kwargs", ast.NewTerm(kw)), field("how", str(c.How))))
	}
	return &g
}

func (b *inputBuilder) imports(is []facts.Import) grouped {
	var g group
	for i := range is {
		m := &is[i]
		place, line := b.at(&m.At)
		g.add(m.Module, ast.ObjectTerm(place, line, field("module", str(m.Module)), field("names", strs(m.Names)), field("how", str(m.How))))
	}
	return &g
}

func (b *inputBuilder) env(es []facts.Env) grouped {
	var g groups
	for i := range es {
		e := &es[i]
		place, line := b.at(&e.At)
		class := e.Class
		if class == "" {
			class = "plain"
		}
		g.add(e.Op, class, ast.ObjectTerm(place, line, spot(&e.At), field("op", str(e.Op)), field("name", str(e.Name)), field("value", str(e.Value)), field("class", str(class)), field("idle", boolean(e.Idle)),
			field("open", boolean(e.Open)), field("from", strs(e.From))))
	}
	return &g
}

func (b *inputBuilder) actions(as []facts.Action) grouped {
	var g group
	for i := range as {
		a := &as[i]
		place, line := b.at(&a.At)
		g.add(a.Op, ast.ObjectTerm(place, line, spot(&a.At), field("op", str(a.Op)), field("detail", str(a.Detail)), field("by", str(a.By)), field("args", strs(a.Args)),
			field("depth", num(a.Depth)), field("idle", boolean(a.Idle)), field("from", strs(a.From))))
	}
	return &g
}

func (b *inputBuilder) dynamic(d *facts.Document) grouped {
	ds := d.Dynamic
	var g group
	w := provenance{d: d, writable: b.writable}
	for i := range ds {
		d := &ds[i]
		place, line := b.at(&d.At)
		g.add(d.Kind, ast.ObjectTerm(place, line, field("kind", str(d.Kind)), field("detail", str(d.Detail)), field("from", strs(d.From)),
			field("library", boolean(w.given(d))), field("inert", boolean(d.Inert))))
	}
	return &g
}

func (b *inputBuilder) strings(ss []facts.String) grouped {
	var g group
	for i := range ss {
		s := &ss[i]
		place, line := b.at(&s.At)
		g.add(s.Kind, ast.ObjectTerm(place, line, field("kind", str(s.Kind)), field("text", str(s.Text)), field("len", num(s.Len)), field("class", str(s.Class))))
	}
	return &g
}

func (b *inputBuilder) structs(ss []facts.Struct) grouped {
	var g group
	for i := range ss {
		s := &ss[i]
		place, line := b.at(&s.At)
		g.add(s.Kind, ast.ObjectTerm(place, line, field("kind", str(s.Kind)), field("detail", str(s.Detail))))
	}
	return &g
}

func (b *inputBuilder) pipelines(ps []facts.Pipeline) *ast.Term {
	out := make([]*ast.Term, len(ps))
	for i := range ps {
		place, line := b.at(&ps[i].At)
		out[i] = ast.ObjectTerm(place, line, field("names", strs(ps[i].Names)), field("from", strs(ps[i].From)))
	}
	return ast.ArrayTerm(out...)
}
