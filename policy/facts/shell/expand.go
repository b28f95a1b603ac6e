package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// field is one argument.
type field struct {
	t      text
	quoted bool // it stays even where it is empty
	list   bool // it is of "$@" or an array, which may have no elements
	glob   bool // it has a wildcard outside quotes
}

// fields is one way in which words become arguments.
type fields []field

// piece is what one part of a word expands to.
type piece struct {
	t       text
	list    []text // "$@" and arrays: one argument each
	isList  bool
	quoted  bool
	literal bool // from the source as it stands: not split
}

// maxWords bounds how many arguments one command may have.
const maxWords = 20000

// fields expands words into arguments, in all the ways that alternatives give.
func (w *walker) fields(words []*syntax.Word) []fields {
	out := []fields{make(fields, 0, len(words))}
	for _, word := range words {
		if w.exhausted {
			return []fields{{{t: opaque()}}}
		}
		if s, ok := plain(word); ok && strings.IndexByte(s, '{') < 0 {
			f := field{t: lit(s), glob: hasMeta(s)}
			for i := range out {
				out[i] = append(out[i], f)
			}
			continue
		}
		split := w.braces(word)
		w.guessed = w.guessed || len(split) > 1
		for _, part := range split {
			ways := w.wordFields(part)
			if len(ways) == 1 {
				for i := range out {
					out[i] = append(out[i], ways[0]...)
				}
				continue
			}
			out = cross(out, ways)
		}
		if w.charge(len(out[0]) / 32); len(out[0]) > maxWords {
			w.b.Limit("words of a command", w.pos(word))
			break
		}
	}
	return out
}

// maxWays bounds the ways in which the words of a command may expand.
const maxWays = 16

// cross combines what stands before with each way of the next word. Beyond the
// bound, the next word is one argument that may be any of them.
func cross(out, ways []fields) []fields {
	if len(out)*len(ways) > maxWays {
		ways = []fields{merged(ways)}
	}
	next := make([]fields, 0, len(out)*len(ways))
	for _, head := range out {
		for _, tail := range ways {
			next = append(next, append(head[:len(head):len(head)], tail...))
		}
	}
	return next
}

// merged is one way that stands for all: argument by argument where they have
// as many, else one that is not known.
func merged(ways []fields) fields {
	out := append(fields(nil), ways[0]...)
	for _, way := range ways[1:] {
		if len(way) != len(out) {
			var from []string
			for _, f := range slices.Concat(ways...) {
				from = origins(from, f.t.from)
			}
			return fields{{t: opaque(from...)}}
		}
		for i, f := range way {
			out[i].t = union(out[i].t, f.t)
			out[i].quoted, out[i].glob = out[i].quoted || f.quoted, out[i].glob || f.glob
		}
	}
	return out
}

// wordFields expands one word without braces, with splitting.
func (w *walker) wordFields(word *syntax.Word) []fields {
	if s, ok := plain(word); ok {
		return []fields{{{t: lit(s), glob: hasMeta(s)}}}
	}
	ways := []fields{{}}
	open := []bool{false} // whether the last field of a way may still grow
	for i, part := range word.Parts {
		p := w.part(part, i == 0, false)
		glob := !p.quoted && p.t.has(hasMeta)
		list := p.isList
		if list {
			p = listPiece(p, &ways, &open)
		}
		if p.quoted || p.literal || !p.t.has(hasSpace) && w.st.vars.get("IFS") == nil {
			for i := range ways {
				ways[i], open[i] = grow(ways[i], open[i], p.t, p.quoted, glob)
				ways[i][len(ways[i])-1].list = list
			}
			continue
		}
		ways, open = splitInto(ways, open, w.separators(), p.t, glob)
	}
	for i := range ways {
		ways[i] = dropEmpty(ways[i])
	}
	return ways
}

// plain is the fast path: a word of one literal.
func plain(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", false
	}
	l, ok := word.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(l.Value, "\\~") {
		return "", false
	}
	return clean(l.Value), true
}

func hasSpace(s string) bool {
	// IFS may hold any byte, so all but the commonest go the long way.
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '/' && c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return true
		}
	}
	return s == ""
}

// grow appends to the last field of a way, or begins one.
func grow(way fields, open bool, t text, quoted, glob bool) (fields, bool) {
	if !open || len(way) == 0 {
		return append(way, field{t: t, quoted: quoted, glob: glob}), true
	}
	last := &way[len(way)-1]
	last.t = concat(last.t, t)
	last.quoted = last.quoted || quoted
	last.glob = last.glob || glob
	return way, true
}

// listPiece puts all but the last element of a list into the ways, and returns
// the last to be grown on.
func listPiece(p piece, ways *[]fields, open *[]bool) piece {
	if len(p.list) == 0 {
		return piece{literal: true}
	}
	for _, t := range p.list[:len(p.list)-1] {
		for i := range *ways {
			(*ways)[i], _ = grow((*ways)[i], (*open)[i], t, p.quoted, false)
			(*open)[i] = false
		}
	}
	return piece{t: p.list[len(p.list)-1], quoted: p.quoted}
}

// splitInto splits each alternative of t by IFS and appends it to every way.
func splitInto(ways []fields, open []bool, ifs string, t text, glob bool) ([]fields, []bool) {
	alts := t.all()
	if len(ways)*len(alts) > maxWays {
		if !t.has(func(s string) bool { return s == "" || strings.ContainsAny(s, ifs+unset) }) {
			for i := range ways { // none of them is split
				ways[i], open[i] = grow(ways[i], open[i], t, false, glob)
			}
			return ways, open
		}
		alts = []string{hole}
	}
	var nextWays []fields
	var nextOpen []bool
	for i, way := range ways {
		for _, s := range alts {
			words, lead, trail := split(s, ifs)
			cur, isOpen := append(fields(nil), way...), open[i] && !lead
			for _, word := range words {
				cur, _ = grow(cur, isOpen, text{[]string{word}, t.from}, false, glob && hasMeta(word))
				isOpen = false
			}
			if len(words) > 0 {
				isOpen = !trail
			}
			nextWays, nextOpen = append(nextWays, cur), append(nextOpen, isOpen)
		}
	}
	return nextWays, nextOpen
}

// split is field splitting: words, and whether separators lead and trail.
func split(s, ifs string) (words []string, lead, trail bool) {
	if ifs == "" {
		if s == "" {
			return nil, false, false
		}
		return []string{s}, false, false
	}
	isSep := func(r rune) bool { return strings.ContainsRune(ifs, r) }
	words = strings.FieldsFunc(s, isSep)
	lead = s != "" && strings.IndexFunc(s[:1], isSep) == 0
	trail = s != "" && strings.ContainsRune(ifs, rune(s[len(s)-1]))
	return words, lead, trail
}

// dropEmpty removes unquoted fields that expand to nothing.
func dropEmpty(way fields) fields {
	out := way[:0]
	for _, f := range way {
		if f.quoted || !f.t.empty() {
			out = append(out, f)
		}
	}
	return out
}

// separators is IFS.
func (w *walker) separators() string {
	v := w.st.vars.get("IFS")
	if v == nil {
		return " \t\n"
	}
	t := v.scalar()
	if s, ok := t.one(); ok {
		return s
	}
	all := ""
	for _, s := range t.alts { // one of several: whatever parts words in one of them
		if known(s) {
			all += s
		}
	}
	if all != "" {
		return all
	}
	return " \t\n"
}

// single expands a word without splitting: an assignment, a redirection.
func (w *walker) single(word *syntax.Word) text {
	if word == nil {
		return text{}
	}
	if s, ok := plain(word); ok {
		return lit(s)
	}
	var t text
	for i, part := range word.Parts {
		t = concat(t, w.part(part, i == 0, false).joined(w.separators()))
	}
	return t
}

// document expands the body of a here-document.
func (w *walker) document(r *syntax.Redirect) text {
	if r.Hdoc == nil {
		return text{}
	}
	if quotedDelimiter(r.Word) {
		var b strings.Builder
		for _, part := range r.Hdoc.Parts {
			if l, ok := part.(*syntax.Lit); ok {
				b.WriteString(l.Value)
			}
		}
		return lit(clean(b.String()))
	}
	var t text
	for _, part := range r.Hdoc.Parts {
		if l, ok := part.(*syntax.Lit); ok {
			t = concat(t, lit(clean(unescapeDouble(l.Value, true))))
			continue
		}
		t = concat(t, w.part(part, false, true).joined(w.separators()))
	}
	return t
}

func quotedDelimiter(word *syntax.Word) bool {
	for _, part := range word.Parts {
		l, ok := part.(*syntax.Lit)
		if !ok || strings.Contains(l.Value, "\\") {
			return true
		}
	}
	return false
}

// pattern expands a word as a pattern: what is quoted is escaped.
func (w *walker) pattern(word *syntax.Word) text {
	var t text
	if word == nil {
		return t
	}
	for i, part := range word.Parts {
		if l, ok := part.(*syntax.Lit); ok {
			t = concat(t, lit(clean(unescapePattern(l.Value))))
			continue
		}
		p := w.part(part, i == 0, false)
		pt := p.joined(w.separators())
		if p.quoted {
			pt = text{mapAll(pt.alts, quoteMeta), pt.from}
		}
		t = concat(t, pt)
	}
	return t
}

func mapAll(in []string, f func(string) string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = f(s)
	}
	return out
}

// joined is a piece where no splitting takes place.
func (p piece) joined(ifs string) text {
	if !p.isList {
		return p.t
	}
	sep := " "
	if ifs != " \t\n" {
		sep = ifs[:min(1, len(ifs))]
	}
	var t text
	for i, item := range p.list {
		if i > 0 {
			t = concat(t, lit(sep))
		}
		t = concat(t, item)
	}
	return t
}

// part expands one part of a word; first says that it begins the word, double
// that it stands between double quotes.
func (w *walker) part(part syntax.WordPart, first, double bool) piece {
	w.guessed = w.guessed || !everywhere(part)
	switch p := part.(type) {
	case *syntax.Lit:
		return w.literalPart(p.Value, first, double)
	case *syntax.SglQuoted:
		s := p.Value
		if p.Dollar {
			s = ansiC(s, false)
		}
		return piece{t: w.unfilled(lit(clean(s))), quoted: true}
	case *syntax.DblQuoted:
		return w.doubleQuoted(p)
	case *syntax.ParamExp:
		pc := w.param(p, double)
		pc.quoted = double
		return pc
	case *syntax.CmdSubst:
		return piece{t: w.substitute(p), quoted: double}
	case *syntax.ArithmExp:
		return piece{t: w.arithText(p.X), quoted: double}
	case *syntax.ProcSubst:
		return piece{t: w.processSubst(p), quoted: true}
	case *syntax.ExtGlob:
		return piece{t: lit(clean(p.Op.String() + p.Pattern.Value + ")")), literal: true}
	}
	return piece{t: opaque()}
}

// unfilled puts the hole back that evaluated code has between single quotes.
func (w *walker) unfilled(t text) text {
	const mark = "${" + facts.Hole + "}"
	if !t.has(func(s string) bool { return strings.Contains(s, mark) }) {
		return t
	}
	var from []string
	if v := w.st.vars.get(facts.Hole); v != nil {
		from = v.val.from
	}
	return text{mapAll(t.alts, func(s string) string { return strings.ReplaceAll(s, mark, hole) }), from}
}

func (w *walker) literalPart(s string, first, double bool) piece {
	if double {
		return piece{t: lit(clean(unescapeDouble(s, false))), quoted: true}
	}
	if first && strings.HasPrefix(s, "~+") {
		return piece{t: concat(w.cwd(), lit(clean(unescape(s[2:])))), literal: true}
	}
	if first && strings.HasPrefix(s, "~") {
		s = tilde(s)
	}
	return piece{t: lit(clean(unescape(s))), literal: true}
}

// tilde names the homes of other users; the own one stays "~".
func tilde(s string) string {
	name, rest, slash := strings.Cut(s[1:], "/")
	if name == "" || name == "-" || strings.ContainsAny(name, "\\*?[") {
		return s
	}
	home := "/home/" + name
	if name == "root" {
		home = "/root"
	}
	if slash {
		home += "/"
	}
	return home + rest
}

// doubleQuoted keeps "$@" and "${a[@]}" as lists.
func (w *walker) doubleQuoted(q *syntax.DblQuoted) piece {
	if len(q.Parts) == 1 {
		p := w.part(q.Parts[0], false, true)
		p.quoted = true
		return p
	}
	var t text
	var list []text
	for _, part := range q.Parts {
		p := w.part(part, false, true)
		if p.isList && len(p.list) > 1 {
			list = append(list, concat(t, p.list[0]))
			list = append(list, p.list[1:len(p.list)-1]...)
			t = p.list[len(p.list)-1]
			continue
		}
		t = concat(t, p.joined(w.separators()))
	}
	if list != nil {
		return piece{list: append(list, t), isList: true, quoted: true}
	}
	return piece{t: t, quoted: true}
}
