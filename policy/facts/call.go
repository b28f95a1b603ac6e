package facts

import (
	"slices"
	"strconv"
	"strings"
)

// API looks a dotted name up in the tables, following Like, and falls back
// from the name of a type's method to that of the type it is Like.
func (b *Builder) API(name string) (API, bool) {
	lang := b.lang
	if lang == TypeScript {
		lang = JavaScript
	}
	return b.s.tables.api(lang, name)
}

func (t *Tables) api(lang Lang, name string) (API, bool) {
	apis := t.APIs[lang]
	for range 8 {
		a, ok := apis.Get(name)
		if ok && a.Like == "" {
			return a, true
		}
		if ok {
			name = a.Like
			continue
		}
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return API{}, false
		}
		owner, ok := apis.Get(name[:i])
		switch {
		case ok && owner.Like != "":
			name = owner.Like + name[i:]
		case ok && owner.Returns != "" && owner.Returns != name[:i]:
			name = owner.Returns + name[i:]
		default:
			return API{}, false
		}
	}
	return API{}, false
}

// Call records a call and all that the tables say it does. It returns the
// call's result as far as that is known: its type, the constructor's arguments
// and where it comes from.
func (b *Builder) Call(c Call) Value {
	api, ok := b.API(c.Name)
	if keeps := !b.s.lim.NoCalls || len(api.Effects) > 0; b.s.full || keeps && !b.room() {
		return Value{}
	}
	if !b.s.lim.NoCalls {
		kept := c
		kept.At = b.at(c.Pos)
		kept.Args, kept.Kwargs, kept.Recv = trimAll(c.Args), trimMap(c.Kwargs), trimAll(c.Recv)
		b.s.doc.Calls = append(b.s.doc.Calls, kept)
	}

	out := Value{Type: c.Name, Recv: c.Args, Fields: c.Kwargs}
	if !ok {
		return out
	}
	if len(api.Effects) > 0 && c.How != "" && c.How != "alias" && c.How != "value" {
		b.hiddenName(c.Name, DynHidden, c.Pos)
	}
	if api.Returns != "" {
		out.Type = api.Returns
	}
	if len(c.Args) == 0 && len(c.Recv) > 0 {
		out.Recv = c.Recv
	}
	x := &effects{b: b, args: callArgs{c}, pos: c.Pos, by: c.Name, via: c.Name}
	x.all(api.Effects)
	from := make([]string, 0, 4)
	for _, f := range api.From {
		switch f {
		case "$host", "net:$host":
			from = append(from, x.hosts...)
		case "$path", "file:$path":
			from = append(from, x.paths...)
		default:
			from = append(from, f)
		}
	}
	if api.Keep {
		for _, a := range c.Args {
			from = append(from, a.From...)
		}
		for _, a := range c.Recv {
			from = append(from, a.From...)
		}
	}
	out.From = clip(from)
	return out
}

const (
	keptText  = 256
	keptItems = 8
)

func trimAll(vs []Value) []Value {
	if len(vs) > keptItems {
		vs = vs[:keptItems]
	}
	out := make([]Value, len(vs))
	for i, v := range vs {
		out[i] = trim(v, 1)
	}
	return out
}

func trimMap(m map[string]Value) map[string]Value {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]Value, len(m))
	for k, v := range m {
		if len(out) < keptItems {
			out[k] = trim(v, 1)
		}
	}
	return out
}

// trim is what of a value is kept in a fact: enough for a rule.
func trim(v Value, deep int) Value {
	out := Value{Type: v.Type, Open: v.Open, Func: v.Func, From: v.From, Prefix: cut(v.Prefix), Suffix: cut(v.Suffix)}
	for _, a := range v.Alts {
		out.Alts = append(out.Alts, cut(a))
	}
	if deep > 0 {
		for i, it := range v.Items {
			if i < keptItems {
				out.Items = append(out.Items, trim(it, deep-1))
			}
		}
	}
	return out
}

func cut(s string) string {
	if len(s) > keptText {
		return s[:keptText]
	}
	return s
}

// callArgs finds the arguments that an [Effect] names in a call.
type callArgs struct{ c Call }

func (a callArgs) has(cond string) bool {
	if name, ok := strings.CutPrefix(cond, "kw:"); ok {
		v, found := a.find(name)
		may, _ := v.Truthy()
		return found && may
	}
	if n, ok := strings.CutPrefix(cond, "args:"); ok {
		return len(a.c.Args) >= atoi(n)
	}
	if rest, ok := strings.CutPrefix(cond, "value:"); ok {
		ref, want, _ := strings.Cut(rest, "=")
		v, found := a.find(ref)
		if !found {
			return false
		}
		return !v.Known() || slices.ContainsFunc(v.Alts, func(s string) bool { return slices.Contains(strings.Split(want, ","), s) })
	}
	if cond == "new" {
		return a.c.New
	}
	_, found := a.find(cond)
	return found
}

func (a callArgs) not(cond string) bool {
	if name, ok := strings.CutPrefix(cond, "kw:"); ok {
		v, found := a.find(name)
		may, certain := v.Truthy()
		return !found || !may || !certain
	}
	return !a.has(cond)
}

func (a callArgs) find(ref string) (Value, bool) {
	if lit, ok := strings.CutPrefix(ref, "lit:"); ok {
		return Text(lit), true
	}
	head, rest, deeper := strings.Cut(ref, ".")
	v, ok := a.first(head)
	if head == "recv" {
		if !deeper {
			return Value{Type: "list", Items: a.c.Recv}, len(a.c.Recv) > 0
		}
		head, rest, deeper = strings.Cut(rest, ".")
		v, ok = at(a.c.Recv, head)
		if !ok && len(a.c.Recv) > 0 {
			v, ok = a.c.Recv[0].Fields[head]
		}
	}
	for ok && deeper {
		head, rest, deeper = strings.Cut(rest, ".")
		v, ok = member(v, head)
	}
	return v, ok
}

func (a callArgs) first(head string) (Value, bool) {
	switch {
	case head == "recv":
		return Value{}, false
	case head == "*":
		return Value{Type: "list", Items: a.c.Args}, len(a.c.Args) > 0
	case strings.HasSuffix(head, "*"):
		n := atoi(head[:len(head)-1])
		if n >= len(a.c.Args) {
			return Value{}, false
		}
		return Value{Type: "list", Items: a.c.Args[n:]}, true
	case head != "" && (head[0] == '-' || head[0] >= '0' && head[0] <= '9'):
		return at(a.c.Args, head)
	}
	v, ok := a.c.Kwargs[head]
	return v, ok
}

func at(vs []Value, index string) (Value, bool) {
	if index == "" || index[0] != '-' && (index[0] < '0' || index[0] > '9') {
		return Value{}, false
	}
	n := atoi(index)
	if n < 0 {
		n += len(vs)
	}
	if n < 0 || n >= len(vs) {
		return Value{}, false
	}
	return vs[n], true
}

// member is one item or field of a value. What is wholly opaque has opaque
// members; a text has none.
func member(v Value, name string) (Value, bool) {
	if v.Fields != nil {
		if m, ok := v.Fields[name]; ok {
			return m, true
		}
	}
	if v.Items != nil {
		return at(v.Items, name)
	}
	if v.Fields == nil && len(v.Alts) == 0 && v.Type != "callable" {
		if name[0] >= '0' && name[0] <= '9' {
			return Opaque(v.From...), true
		}
	}
	return Value{}, false
}

func atoi(s string) int {
	n, neg := 0, false
	for i, c := range s {
		switch {
		case i == 0 && c == '-':
			neg = true
		case c >= '0' && c <= '9' && n < 1<<20:
			n = n*10 + int(c-'0')
		default:
			return 0
		}
	}
	if neg {
		return -n
	}
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }
