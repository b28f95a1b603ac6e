package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// defaults are what a shell sets by itself. They are guesses about the machine,
// used because scripts pick single characters out of them.
var defaults = map[string]string{
	"HOME": "~", "IFS": " \t\n", "SHELL": "/bin/bash", "BASH": "/bin/bash", "TERM": "xterm",
	"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"PS2":  "> ", "PS4": "+ ", "OPTIND": "1", "OSTYPE": "linux-gnu", "HOSTTYPE": "x86_64",
	"MACHTYPE": "x86_64-pc-linux-gnu", "BASH_SUBSHELL": "0", "SHLVL": "1", "OPTERR": "1",
	"COMP_WORDBREAKS": " \t\n\"'><=;|&(:", "LANG": "C.UTF-8",
}

// param expands one parameter expansion.
func (w *walker) param(p *syntax.ParamExp, double bool) piece {
	if p.Param == nil || p.NestedParam != nil || p.Flags != nil {
		return piece{t: opaque()}
	}
	name := p.Param.Value
	if p.Names != 0 {
		return w.namesWith(name, p.Names == syntax.NamesPrefixWords)
	}
	index := indexLiteral(p.Index)
	if p.Excl && (index == "@" || index == "*") {
		return listOf(w.keys(name), index == "@")
	}
	if name == "@" || name == "*" || index == "@" || index == "*" {
		return w.listParam(p, name == "@" || index == "@", double)
	}
	t, set := w.lookupIndexed(p, name)
	if p.Excl {
		t, set = w.indirect(t)
	}
	return piece{t: w.operate(p, name, t, set)}
}

func indexLiteral(x syntax.ArithmExpr) string {
	if word, ok := x.(*syntax.Word); ok {
		return word.Lit()
	}
	return ""
}

func listOf(items []text, separate bool) piece {
	p := piece{list: items, isList: true}
	if !separate {
		p = piece{t: p.joined(" \t\n")}
	}
	return p
}

// namesWith is ${!prefix*}.
func (w *walker) namesWith(prefix string, separate bool) piece {
	var out []text
	var names []string
	for name, v := range w.st.vars.all() {
		if v != nil && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, lit(name))
	}
	return listOf(out, separate)
}

// keys are the indices of an array.
func (w *walker) keys(name string) []text {
	v := w.st.vars.get(name)
	var out []text
	if v != nil && v.isTable {
		for _, k := range slices.Sorted(maps.Keys(v.table)) {
			out = append(out, lit(k))
		}
		return out
	}
	for i := range v.words() {
		out = append(out, lit(strconv.Itoa(i)))
	}
	return out
}

// listParam expands $@, $* and whole arrays, whose operators work on each
// element.
func (w *walker) listParam(p *syntax.ParamExp, separate, double bool) piece {
	name := p.Param.Value
	positional := name == "@" || name == "*"
	var items []text
	if positional {
		items = w.positionals()
	} else {
		items = w.st.vars.get(name).words()
	}
	if p.Length {
		if positional && w.st.more {
			return piece{t: opaque("argv")}
		}
		return piece{t: lit(strconv.Itoa(len(items)))}
	}
	if p.Slice != nil {
		if positional {
			items = append([]text{w.st.arg0}, items...)
		}
		items = w.sliceList(p.Slice, items)
	} else if p.Exp != nil && len(items) == 0 {
		return piece{t: w.operate(p, name, text{}, false)}
	} else if p.Repl != nil || p.Exp != nil {
		items = slices.Clone(items)
		for i := range items {
			items[i] = w.operate(p, name, items[i], true)
		}
	}
	out := piece{list: items, isList: true}
	if double && !separate {
		return piece{t: out.joined(w.separators())}
	}
	return out
}

// positionals are the arguments as "$@" gives them.
func (w *walker) positionals() []text {
	if w.st.more {
		return append(slices.Clone(w.st.args), w.st.rest)
	}
	return w.st.args
}

func (w *walker) sliceList(s *syntax.Slice, items []text) []text {
	from, ok := w.arith(s.Offset)
	if !ok {
		return []text{opaque()}
	}
	start := int(from)
	if start < 0 {
		start += len(items)
	}
	start = min(max(start, 0), len(items))
	items = items[start:]
	if s.Length != nil {
		n, ok := w.arith(s.Length)
		if !ok {
			return []text{opaque()}
		}
		items = items[:min(max(int(n), 0), len(items))]
	}
	return items
}

// lookupIndexed finds the variable, with its index, and whether it is set.
func (w *walker) lookupIndexed(p *syntax.ParamExp, name string) (text, bool) {
	if p.Index == nil {
		return w.lookup(name, w.pos(p))
	}
	v := w.st.vars.get(name)
	if v == nil {
		w.arith(p.Index)
		return w.lookup(name, w.pos(p))
	}
	if v.isTable {
		word, ok := p.Index.(*syntax.Word)
		if !ok {
			return opaque(), true
		}
		key, ok := w.single(word).one()
		if !ok {
			return opaque(), true
		}
		t, set := v.table[key]
		return t, set
	}
	words := v.words()
	n, ok := w.arith(p.Index)
	if !ok {
		return anyOf(words), true
	}
	if n < 0 {
		n += int64(len(words))
	}
	if n < 0 || n >= int64(len(words)) {
		return text{}, false
	}
	return words[n], true
}

// anyOf is one element of a list, whichever.
func anyOf(list []text) text {
	if len(list) == 0 {
		return opaque()
	}
	t := list[0]
	for _, o := range list[1:] {
		t = union(t, o)
	}
	return t
}

// lookup finds a parameter by name and whether it is set.
func (w *walker) lookup(name string, pos facts.Pos) (text, bool) {
	v := w.st.vars.get(name)
	w.guessed = w.guessed || v == nil || !v.constant
	if v != nil {
		if v.ref {
			if target, ok := v.val.one(); ok && target != name {
				return w.lookup(target, pos)
			}
			return opaque(), true
		}
		return v.scalar(), true
	}
	if c := name[0]; c >= '0' && c <= '9' || len(name) == 1 && strings.ContainsAny(name, "#?$!-_@*") {
		return w.special(name)
	}
	switch name {
	case "PWD", "OLDPWD": // before the first cd, where it began
		return w.cwd(), true
	case "BASH_SOURCE":
		return w.st.arg0, true
	case "COPROC_PID":
		return opaque(ownProcess), true
	case "FUNCNAME":
		if len(w.calls) > 0 {
			return lit(w.calls[len(w.calls)-1].fn.name), true
		}
	case "RANDOM", "SRANDOM", "LINENO", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "UID", "EUID", "PPID",
		"BASHPID", "HOSTNAME", "BASH_VERSION", "REPLY", "PIPESTATUS", "COLUMNS", "LINES", "BASH_ARGV", "BASH_ARGV0", "BASH_ARGC",
		"BASH_COMMAND", "BASH_EXECUTION_STRING", "BASH_REMATCH", "DIRSTACK", "OPTARG", "MAPFILE", "COPROC":
		return opaque(), true
	}
	if s, ok := defaults[name]; ok {
		return lit(s), true
	}
	w.readEnv(name, pos)
	t, known := w.st.env[name]
	if !known {
		if t = w.st.inherited(name); t.is(unset) && w.started[name] {
			t = unassigned.tainted(ownProcess)
		}
	}
	return t, known
}

// special finds the parameters whose names are digits or signs.
func (w *walker) special(name string) (text, bool) {
	switch name {
	case "#":
		if w.st.more {
			return opaque(), true
		}
		return lit(strconv.Itoa(len(w.st.args))), true
	case "-":
		return lit("hB"), true
	case "0":
		return w.st.arg0, true
	case "@", "*":
		return piece{list: w.positionals(), isList: true}.joined(w.separators()), true
	case "_":
		return w.last, true
	case "!", "$":
		return opaque(ownProcess), true
	case "?":
		return opaque(), true
	}
	n, err := strconv.Atoi(name)
	switch {
	case err != nil:
		return opaque(), true
	case n <= len(w.st.args):
		return w.st.args[n-1], true
	case w.st.more:
		return w.st.rest, !w.st.rest.is(unset)
	}
	return text{}, false
}

// indirect is ${!name}: the variable whose name t holds.
func (w *walker) indirect(t text) (text, bool) {
	var out text
	for i, name := range t.all() {
		v := opaque()
		base, index, _ := strings.Cut(name, "[")
		if n, err := strconv.Atoi(strings.TrimSuffix(index, "]")); err == nil && w.st.vars.get(base) != nil {
			if words := w.st.vars.get(base).words(); n >= 0 && n < len(words) {
				v = words[n]
			}
		} else if name == "@" || name == "*" || syntax.ValidName(name) || digits(name, len(name), 10) == len(name) && name != "" {
			v, _ = w.lookup(name, facts.Pos{})
		}
		if i == 0 {
			out = v
		} else {
			out = union(out, v)
		}
	}
	return out, true
}

// ownProcess is where the number of a process comes from that the script
// started, or is.
const ownProcess = "own_process"
