package facts

import (
	"slices"
	"strings"
)

// parsed is an argv taken apart by its program's table.
type parsed struct {
	prog     Program
	flags    []string         // normalised
	values   map[string]Value // by flag as written, dashes and all, and by its twin
	operands []Value
	index    []int // of each operand in argv
	stdin    Value
	hasStdin bool
}

// parseArgv separates flags, their values and operands. Words that are not
// known count as operands. For a wrapper, parsing ends where the wrapped
// command begins.
func parseArgv(prog Program, argv []Value) *parsed {
	p := &parsed{prog: prog, values: map[string]Value{}}
	for i := 1; i < len(argv); i++ {
		w := argv[i].Head()
		if len(argv[i].Alts) > 0 {
			w = argv[i].Alts[0]
		}
		if i == 1 && prog.Bundle && w != "" && w[0] != '-' {
			w = "-" + w
		}
		if len(w) < 2 || w[0] != '-' {
			p.operands = append(p.operands, argv[i])
			p.index = append(p.index, i)
			if p.endsAt(len(p.operands), w) {
				p.rest(argv, i+1)
				return p
			}
			continue
		}
		if w == "--" {
			p.rest(argv, i+1)
			return p
		}
		i = p.flag(w, argv, i)
	}
	return p
}

// endsAt reports whether the program's own flags end at operand n, w: what
// follows belongs to the command or the script that it starts.
func (p *parsed) endsAt(n int, w string) bool {
	prog := &p.prog
	if prog.Wrapper && n > prog.Skip && (!prog.Assign || !strings.Contains(w, "=")) {
		return true
	}
	if prog.Applet || prog.Script || prog.CodeArg && prog.Join {
		return true
	}
	for _, r := range prog.Runs {
		if r.Rest && n >= r.Operand && (&effects{args: cmdArgs{p}}).holds(r.When) {
			return true
		}
	}
	return false
}

// rest takes all words from i on as operands.
func (p *parsed) rest(argv []Value, i int) {
	for ; i < len(argv); i++ {
		p.operands = append(p.operands, argv[i])
		p.index = append(p.index, i)
	}
}

// flag reads one flag word and gives the index of the last word it used.
func (p *parsed) flag(w string, argv []Value, i int) int {
	if strings.HasPrefix(w, "--") || p.prog.Long || slices.Contains(p.prog.CodeFlags, w) { // node -pe is no -p with the value e
		name, val, has := strings.Cut(w, "=")
		p.addFlag(strings.TrimLeft(name, "-"))
		switch {
		case has:
			p.set(name, cutPrefix(argv[i], name+"="))
		case p.takesValue(name) && i+1 < len(argv):
			i++
			p.set(name, argv[i])
		}
		_ = val
		return i
	}
	for j := 1; j < len(w); j++ {
		f := "-" + w[j:j+1]
		p.addFlag(w[j : j+1])
		if !p.takesValue(f) {
			continue
		}
		if j+1 < len(w) {
			p.set(f, cutPrefix(argv[i], w[:j+1]))
		} else if i+1 < len(argv) {
			i++
			p.set(f, argv[i])
		}
		break
	}
	return i
}

func (p *parsed) takesValue(flag string) bool {
	if slices.Contains(p.prog.ValueFlags, flag) || slices.Contains(p.prog.CodeFlags, flag) {
		return true
	}
	if t, ok := p.prog.Twins[strings.TrimLeft(flag, "-")]; ok && strings.HasPrefix(flag, "--") {
		return slices.Contains(p.prog.ValueFlags, "-"+t) || slices.Contains(p.prog.CodeFlags, "-"+t)
	}
	return false
}

func (p *parsed) set(flag string, v Value) {
	if old, ok := p.values[flag]; ok {
		v = List(append(slices.Clone(asItems(old)), v)...)
	}
	p.values[flag] = v
	if t, ok := p.prog.Twins[strings.TrimLeft(flag, "-")]; ok && strings.HasPrefix(flag, "--") {
		p.values["-"+t] = v
	}
}

func asItems(v Value) []Value {
	if v.Items != nil {
		return v.Items
	}
	return []Value{v}
}

// items are the values of an option that may be given more than once.
func (p *parsed) items(flag string) []Value {
	if v, ok := p.values[flag]; ok {
		return asItems(v)
	}
	return nil
}

func (p *parsed) addFlag(f string) {
	if f == "" || len(p.flags) > 64 {
		return
	}
	if !slices.Contains(p.flags, f) {
		p.flags = append(p.flags, f)
	}
	if t, ok := p.prog.Twins[f]; ok && !slices.Contains(p.flags, t) {
		p.flags = append(p.flags, t)
	}
}

func cutPrefix(v Value, prefix string) Value {
	if len(v.Alts) == 0 {
		return Value{Type: v.Type, Prefix: strings.TrimPrefix(v.Prefix, prefix), Suffix: v.Suffix, From: v.From}
	}
	return v.Map(func(s string) (string, bool) { return strings.TrimPrefix(s, prefix), true })
}

// cmdArgs finds the arguments that an [Effect] names in a command.
type cmdArgs struct{ p *parsed }

func (a cmdArgs) find(ref string) (Value, bool) {
	switch {
	case strings.HasPrefix(ref, "lit:"):
		return Text(ref[len("lit:"):]), true
	case ref == "stdin":
		return a.p.stdin, a.p.hasStdin
	case strings.HasPrefix(ref, "-") && (len(ref) < 2 || ref[1] < '0' || ref[1] > '9'):
		name, at := strings.CutSuffix(ref, "@")
		v, ok := a.p.values[name]
		if !ok || !at {
			return v, ok
		}
		return atFiles(v)
	case ref == "named":
		return List(a.p.named()...), true
	case strings.Contains(ref, "="):
		return a.assigned(ref)
	}
	return a.operands(ref)
}

// assigned finds the operand NAME=value (of dd).
func (a cmdArgs) assigned(ref string) (Value, bool) {
	for _, o := range a.p.operands {
		h := o.Head()
		if len(o.Alts) > 0 {
			h = o.Alts[0]
		}
		if strings.HasPrefix(h, ref) {
			return cutPrefix(o, ref), true
		}
	}
	return Value{}, false
}

// atFiles keeps those values that name a file to be sent (curl -d @FILE,
// -F f=@FILE), without what stands before the name.
func atFiles(v Value) (Value, bool) {
	var items []Value
	for _, it := range asItems(v) {
		for _, s := range it.Alts {
			if _, file, ok := strings.Cut(s, "@"); ok && (s[0] == '@' || strings.Contains(s, "=@")) {
				file, _, _ = strings.Cut(file, ";")
				items = append(items, Text(file).WithFrom(it.From...))
			}
		}
		if len(it.Alts) == 0 && strings.Contains(it.Prefix, "@") {
			_, file, _ := strings.Cut(it.Prefix, "@")
			items = append(items, Partial(file, it.Suffix).WithFrom(it.From...))
		}
	}
	return List(items...), len(items) > 0
}

func (a cmdArgs) operands(ref string) (Value, bool) {
	ops := a.p.operands
	list := func(vs []Value) (Value, bool) { return Value{Type: "list", Items: vs}, len(vs) > 0 }
	if ref == "*" {
		return list(ops)
	}
	if n, ok := strings.CutSuffix(ref, "*"); ok {
		if i := atoi(n); i >= 1 && i <= len(ops) {
			return list(ops[i-1:])
		}
		return Value{}, false
	}
	if from, to, ok := strings.Cut(ref, ".."); ok {
		i, j := atoi(from)-1, atoi(to)
		if j < 0 {
			j = len(ops) + j + 1
		}
		if i >= 0 && i < j && j <= len(ops) {
			return list(ops[i:j])
		}
		return Value{}, false
	}
	i := atoi(ref)
	if i < 0 {
		i = len(ops) + i + 1
	}
	if i < 1 || i > len(ops) {
		return Value{}, false
	}
	return ops[i-1], true
}

func (a cmdArgs) has(cond string) bool {
	if n, ok := strings.CutPrefix(cond, "args:"); ok {
		return len(a.p.operands) >= atoi(n)
	}
	if rest, ok := strings.CutPrefix(cond, "value:"); ok {
		v, want, found := a.wanted(rest)
		return found && (slices.ContainsFunc(v.Alts, want) || !v.Known())
	}
	if rest, ok := strings.CutPrefix(cond, "only:"); ok {
		v, want, found := a.wanted(rest)
		return found && v.Known() && !slices.ContainsFunc(v.Alts, func(s string) bool { return !want(s) })
	}
	if cond == "assigns" {
		return slices.ContainsFunc(a.p.operands, assigns)
	}
	if strings.HasPrefix(cond, "-") {
		return slices.ContainsFunc(strings.Split(cond, ","), func(flag string) bool {
			return slices.Contains(a.p.flags, strings.TrimLeft(flag, "-"))
		})
	}
	_, ok := a.find(cond)
	return ok
}

// wanted splits REF=A,B: the value at REF, and whether a text is one of A, B.
func (a cmdArgs) wanted(cond string) (Value, func(string) bool, bool) {
	ref, words, _ := strings.Cut(cond, "=")
	v, ok := a.find(ref)
	list := strings.Split(words, ",")
	return v, func(s string) bool { return slices.Contains(list, s) }, ok
}

// assigns reports whether an operand may be NAME=value.
func assigns(o Value) bool {
	return strings.Contains(o.Prefix+o.Suffix, "=") || slices.ContainsFunc(o.Alts, func(s string) bool { return strings.Contains(s, "=") })
}

func (a cmdArgs) not(cond string) bool { return !a.has(cond) }
