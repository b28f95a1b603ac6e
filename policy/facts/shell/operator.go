package shell

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// operate applies the operator of an expansion to a value.
func (w *walker) operate(p *syntax.ParamExp, name string, t text, set bool) text {
	if !w.heavy(t) {
		return opaque(t.from...)
	}
	switch {
	case p.Length:
		return t.each(func(s string) (string, bool) { return strconv.Itoa(utf8.RuneCountInString(homeless(s))), true })
	case p.Slice != nil:
		return w.pieces(t, w.substring(p.Slice, t))
	case p.Repl != nil && w.isSelf(t) && w.nameless(p.Repl):
		return concat(w.sheltered(folderOf(t)), lit("/"))
	case p.Repl != nil:
		return w.pieces(t, w.replace(p.Repl, t))
	case p.Exp != nil:
		return w.expansion(p, name, t, set)
	}
	return t
}

// cut is where a text comes from that was cut out of one that is not known.
const cut = "cut"

// pieces are what was cut out of t.
func (w *walker) pieces(t, out text) text {
	if t.has(func(s string) bool { return !known(s) }) && !argumentsOnly(t.from) {
		return out.tainted(cut)
	}
	return out
}

// nameless is ${x/%NAME/}, by which a script takes its own name off what it is
// called by.
func (w *walker) nameless(r *syntax.Replace) bool {
	name, ok := w.pattern(r.Orig).one()
	return ok && r.With == nil && len(name) > 3 && name[0] == '%' && !strings.ContainsAny(name, "*?[]/\\")
}

// argumentsOnly: a text is what the caller hands over, of which nobody knows the
// letters before.
func argumentsOnly(from []string) bool {
	return len(from) > 0 && !slices.ContainsFunc(from, func(f string) bool { return f != "argv" && f != "param" })
}

// homeless turns the home directory, which stands as "~", into a real path for
// operators that look into the text.
func homeless(s string) string {
	if s == "~" || strings.HasPrefix(s, "~/") {
		return "/root" + s[1:]
	}
	return s
}

// substring is ${x:offset:length}.
func (w *walker) substring(sl *syntax.Slice, t text) text {
	from, ok := w.arith(sl.Offset)
	n, ok2 := int64(-1), true
	if sl.Length != nil {
		n, ok2 = w.arith(sl.Length)
	}
	if !ok || !ok2 {
		return opaque(t.from...)
	}
	if slices.Contains(t.from, fromSelf) && !w.placed {
		return opaque(t.from...) // where the script lies is a guess
	}
	var out []string
	for _, s := range t.all() {
		if s == unset {
			out = with(out, hole) // of what somebody gave it
			continue
		}
		out = with(out, cutRunes(homeless(s), int(from), int(n), sl.Length != nil))
	}
	return text{out, t.from}
}

// cutRunes is a substring by characters. A hole before its end makes it
// unknown.
func cutRunes(s string, from, n int, limited bool) string {
	r := []rune(strings.ReplaceAll(s, unset, ""))
	if from < 0 || limited && n < 0 {
		if !known(s) {
			return hole
		}
	}
	if from < 0 {
		from += len(r)
	}
	if from < 0 || from > len(r) {
		return ""
	}
	end := len(r)
	if limited {
		if end = from + n; n < 0 {
			end = len(r) + n
		}
		end = min(end, len(r))
	}
	if end <= from {
		return ""
	}
	if strings.Contains(string(r[:end]), hole) {
		return hole
	}
	return string(r[from:end])
}

func (w *walker) replace(r *syntax.Replace, t text) text {
	pat := w.pattern(r.Orig)
	sub := w.single(r.With)
	with, ok2 := sub.one()
	p, ok := pat.one()
	if !ok || !ok2 {
		return opaque(origins(t.from, sub.from)...)
	}
	w.charge(len(t.alts) * len(p) / 8)
	return t.each(func(s string) (string, bool) { return replaceMatch(homeless(s), p, with, r.All), true })
}

// expansion is ${x:-word} and its relatives.
func (w *walker) expansion(p *syntax.ParamExp, name string, t text, set bool) text {
	switch op := p.Exp.Op; op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		word := w.single(p.Exp.Word)
		t = orDefault(t, word, set, op == syntax.DefaultUnsetOrNull || op == syntax.AssignUnsetOrNull)
		if op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull {
			w.assign(name, t)
		}
		return t
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		word := w.single(p.Exp.Word)
		if !set {
			return text{}
		}
		if t.known() && !t.has(func(s string) bool { return s == "" }) {
			return word
		}
		return union(word, text{})
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		suffix := op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix
		pat, ok := w.pattern(p.Exp.Word).one()
		if !ok {
			return opaque(t.from...)
		}
		if op == syntax.RemSmallSuffix && pat == "/*" {
			return w.sheltered(folderOf(t))
		}
		longest := op == syntax.RemLargeSuffix || op == syntax.RemLargePrefix
		return t.each(func(s string) (string, bool) {
			if _, simple := trimSimple(s, pat, suffix, longest); !simple {
				w.charge(len(s) * len(s) / 4096)
			}
			return trimMatch(homeless(s), pat, suffix, longest), true
		})
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		return w.fold(op, p.Exp.Word, t)
	case syntax.OtherParamOps:
		return w.transform(p, name, t)
	default: // the value as it is
	}
	return t
}

// folderOf is ${x%/*}: what stands before the last slash is known even where
// what follows it is not.
func folderOf(t text) text {
	var out []string
	for _, s := range t.all() {
		i := strings.LastIndexByte(s, '/')
		switch {
		case i >= 0:
			s = homeless(s[:i])
		case !known(s):
			s = hole
		}
		out = with(out, s)
	}
	return text{out, notSelf(t.from)}
}

// notSelf takes the folder of the script for what it is, and not for the script.
func notSelf(from []string) []string {
	if i := slices.Index(from, fromSelf); i >= 0 {
		from = slices.Clone(from)
		from[i] = ownFolder
	}
	return from
}

// orDefault is what ${x-word} gives: word where x is unset or, if null, empty.
func orDefault(t, word text, set, null bool) text {
	if !set {
		if word.empty() { // ${1:-}: whatever it is
			return word.tainted(t.from...)
		}
		return word
	}
	var out text
	for i, s := range t.all() {
		alt := text{[]string{s}, t.from}
		if s == unset || s == "" && null {
			alt = word
		}
		if i == 0 {
			out = alt
		} else {
			out = union(out, alt)
		}
	}
	return out
}

// fold changes the case of what matches a pattern.
func (w *walker) fold(op syntax.ParExpOperator, word *syntax.Word, t text) text {
	pat, ok := w.pattern(word).one()
	if !ok {
		return opaque(t.from...)
	}
	if pat == "" {
		pat = "?"
	}
	to := unicode.ToUpper
	if op == syntax.LowerFirst || op == syntax.LowerAll {
		to = unicode.ToLower
	}
	first := op == syntax.UpperFirst || op == syntax.LowerFirst
	return t.each(func(s string) (string, bool) {
		r := []rune(s)
		for i := range r {
			if match(pat, string(r[i]), false) {
				r[i] = to(r[i])
			}
			if first {
				break
			}
		}
		return string(r), true
	})
}

// transform is ${x@Q} and its relatives.
func (w *walker) transform(p *syntax.ParamExp, name string, t text) text {
	switch op, _ := w.single(p.Exp.Word).one(); op {
	case "U":
		return t.each(func(s string) (string, bool) { return strings.ToUpper(s), true })
	case "L":
		return t.each(func(s string) (string, bool) { return strings.ToLower(s), true })
	case "E":
		return t.each(func(s string) (string, bool) { return ansiC(s, false), true })
	case "Q":
		return t.each(func(s string) (string, bool) {
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", true
		})
	case "u":
		return w.fold(syntax.UpperFirst, nil, t)
	case "P": // a prompt runs the substitutions in it
		w.evalText("${"+name+"@P}", concat(concat(lit(": \""), t), lit("\"")), w.pos(p), false)
		return t
	}
	return opaque(t.from...)
}
