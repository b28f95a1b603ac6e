package facts

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// interpreterNames are other names of the languages that have an extractor.
var interpreterNames = map[Lang]Lang{
	"sh": Shell, "shell": Shell, "dash": Shell, "ash": Shell, "zsh": Shell, "ksh": Shell, "python3": Python, "py": Python,
	"node": JavaScript, "js": JavaScript, "ts": TypeScript,
}

// ParseLang gives the language that a name stands for: "sh" is [Shell].
func ParseLang(name string) Lang {
	l := Lang(strings.ToLower(name))
	if c, ok := interpreterNames[l]; ok {
		return c
	}
	return l
}

// extract runs the extractor of the builder's language over src. A text that
// is too long or too deeply nested is not parsed at all: parsers hang on, or
// die of, such text.
func (b *Builder) extract(ctx context.Context, src []byte) {
	if len(src) > b.s.lim.Source {
		b.limit("source of more than " + fmt.Sprint(b.s.lim.Source) + " bytes")
		return
	}
	x, ok := b.s.langs[b.lang]
	if !ok {
		b.Dynamic(DynUnscanned, string(b.lang), Pos{})
		return
	}
	if depth := bracketDepth(src); depth > b.s.lim.Bracket && (b.lang == Shell || depth > quotedBrackets*b.s.lim.Bracket || bracketDepth(unquoted(src, b.lang)) > b.s.lim.Bracket) {
		b.Dynamic(DynTooDeep, fmt.Sprintf("brackets nested %d deep", depth), Pos{})
		return
	}
	b.src = string(src)
	b.shown = b.src
	b.hidden(src)
	before := b.s.doc.Meta.Nodes
	err := b.guarded(ctx, x, src)
	switch {
	case ctx.Err() != nil:
		b.limit("time")
	case err != nil:
		b.Dynamic(DynUnparsable, err.Error(), Pos{})
	case b.s.doc.Meta.Nodes == before && len(bytes.TrimSpace(src)) > 0:
		b.Dynamic(DynUnparsable, "nothing was recognised", Pos{})
	}
}

func (b *Builder) guarded(ctx context.Context, x Extractor, src []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("extractor panicked: %v", p)
		}
	}()
	return x.Extract(ctx, src, b)
}

// quotedBrackets is how many times deeper brackets may nest where most of them
// seem to stand in quotes: data that is written as text.
const quotedBrackets = 16

// unquoted is a text of Python or JavaScript without what stands in quotes and
// comments, as far as can be told without parsing it.
func unquoted(src []byte, lang Lang) []byte {
	comment := []byte("#")
	if lang != Python {
		comment = []byte("//")
	}
	out := make([]byte, 0, len(src))
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case bytes.HasPrefix(src[i:], comment):
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case c == '"' || c == '\'':
			i = quotedEnd(src, i, lang)
		default:
			out = append(out, c)
		}
	}
	return out
}

// quotedEnd is where the text in quotes ends that begins at i.
func quotedEnd(src []byte, i int, lang Lang) int {
	quote := src[i : i+1]
	if lang == Python && bytes.HasPrefix(src[i:], bytes.Repeat(quote, 3)) {
		quote = src[i : i+3]
	}
	for i += len(quote); i < len(src); i++ {
		switch {
		case src[i] == '\\':
			i++
		case bytes.HasPrefix(src[i:], quote):
			return i + len(quote) - 1
		case len(quote) == 1 && src[i] == '\n':
			return i
		}
	}
	return i
}

// bracketDepth is how deep brackets nest, quotes notwithstanding: a bound on
// what a recursive parser will do, not a parse.
func bracketDepth(src []byte) int {
	depth, most := 0, 0
	for _, c := range src {
		switch c {
		case '(', '[', '{':
			depth++
			most = max(most, depth)
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return most
}

// Nested scans code, which is text in the given language, as part of this
// scan: every alternative that is known. What is not known is the dynamic fact
// opaque_code, or partial_code where it is a shell's and the name of the
// program is known: the rest of that line is then scanned with a hole in it. Of
// other languages, the lines before the hole are scanned.
func (b *Builder) Nested(lang Lang, code Value, o NestedOpts) {
	lang = ParseLang(string(lang))
	if len(code.Items) > 0 {
		code = Join(Text(" "), code.Items)
	}
	before := len(b.s.doc.Dynamic)
	for _, text := range code.Alts {
		b.nestedText(lang, text, code.From, o)
	}
	if code.Known() {
		return
	}
	b.s.unparsed(before) // with what is missing in it, it may well be a program
	head := strings.TrimLeft(code.Head(), " \t\n")
	if lang == Shell && strings.ContainsAny(head, " \t\n;") {
		b.dynamicVia(DynPartialCode, short(head), o, code.From)
		o.Verbatim = false
		before := len(b.s.doc.Dynamic)
		b.nestedText(lang, head+hole(head, code.Tail())+code.Tail(), code.From, o)
		b.reopened(before, head, code, o)
		if strings.Count(code.Tail(), "\n") > 1 { // lines out of the middle of something, as likely as not
			b.s.unparsed(before)
		}
		return
	}
	if tail := code.Tail(); lang == Shell && head == "" && surroundings(code.From) && strings.HasPrefix(afterWord(tail), " ") && strings.TrimSpace(tail) != "" {
		// A program that the surroundings name, and words for it.
		o.Verbatim = false
		b.nestedText(lang, `"$`+Hole+`"`+tail, code.From, o)
		return
	}
	if end := strings.LastIndexByte(head, '\n'); lang != Shell && end > 0 {
		before := len(b.s.doc.Dynamic)
		b.nestedText(lang, head[:end+1], code.From, o)
		b.s.unparsed(before) // the rest of it may be missing
	}
	if b.lang == Shell && slices.Contains(code.From, "decoded") {
		b.dynamicVia(DynEncoded, "what a program decodes", o, code.From)
	}
	b.dynamicVia(DynOpaqueCode, short(head), o, code.From)
}

// reopened scans a command line with a hole once more where it did not parse: its
// tail may close what began in the hole.
func (b *Builder) reopened(from int, head string, code Value, o NestedOpts) {
	tail := code.Tail()
	for _, open := range []string{"{ ", "( "} {
		if !b.s.broken(from) {
			return
		}
		before := len(b.s.doc.Dynamic)
		b.nestedText(Shell, head+hole(head, "")+"; "+open+hole("", tail)+tail, code.From, o)
		if b.s.broken(before) {
			b.s.doc.Dynamic = b.s.doc.Dynamic[:before]
			continue
		}
		b.s.unparsed(from)
	}
}

// unparsed forgets texts that do not parse: they were cut out of code in which
// they were no commands.
func (s *scan) unparsed(from int) {
	kept := slices.DeleteFunc(s.doc.Dynamic[from:], func(d Dynamic) bool {
		return d.Kind == DynUnparsable || d.Kind == DynGlob && strings.ContainsAny(d.Detail, "!@{}()\\")
	})
	s.doc.Dynamic = s.doc.Dynamic[:from+len(kept)]
}

// broken reports that a text did not parse, since a mark.
func (s *scan) broken(from int) bool {
	return slices.ContainsFunc(s.doc.Dynamic[from:], func(d Dynamic) bool { return d.Kind == DynUnparsable })
}

// surroundings reports that a text is no more than what the environment or the
// place of the program says.
func surroundings(from []string) bool {
	for _, f := range from {
		if f != "own_folder" && f != "self" && f != "env" && !strings.HasPrefix(f, "env:") {
			return false
		}
	}
	return len(from) > 0
}

// afterWord is what follows the rest of a path: "/tool.sh -v" is " -v".
func afterWord(text string) string {
	return strings.TrimLeft(text, "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
}

// Hole is the shell variable that stands for the unknown part of a command
// line. It is never set.
const Hole = "CAISSON_UNKNOWN"

// hole is what stands for the unknown part of a command line between head and
// tail: one word, or a part of the one that head ends in.
func hole(head, tail string) string {
	const word = `"$` + Hole + `"`
	quote := openQuote(head, 0)
	switch {
	case quote == 0 && openQuote(tail, 0) != 0: // what it ends in begins in what is not known
		for _, q := range []byte{'"', '\''} {
			if openQuote(tail, q) == 0 {
				return word + " " + string(q)
			}
		}
		return word
	case quote == 0:
		return word
	case openQuote(tail, quote) != 0: // it ends in what is not known
		return string(quote) + word
	case quote == '"':
		return "$" + Hole
	}
	return "'" + word + "'"
}

// openQuote is the quote that a piece of shell text ends in, or 0, where it
// begins in the given one.
func openQuote(text string, quote byte) byte {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		}
	}
	return quote
}

func (b *Builder) dynamicVia(kind, detail string, o NestedOpts, from []string) {
	via := b.via
	b.via = join(via, o.Via)
	b.Dynamic(kind, detail, o.Pos, from...)
	b.via = via
}

func (b *Builder) nestedText(lang Lang, text string, from []string, o NestedOpts) {
	if b.Full() {
		return
	}
	if b.depth+1 > b.s.lim.Depth {
		b.dynamicVia(DynTooDeep, "code within code", o, from)
		return
	}
	for _, f := range from {
		if f == "decoded" {
			b.dynamicVia(DynEncoded, short(text), o, from)
			break
		}
	}
	start := o.Start
	if !start.Known && lang == b.lang {
		start = b.start
	} else if !start.Known && lang == Shell && len(b.s.set) > 0 {
		start = Start{Known: true, Env: maps.Clone(b.s.set)}
	}
	key := nestedKey{lang, b.cwd, text, start.key(), b.offers}
	if b.s.seen[key] {
		return
	}
	b.s.seen[key] = true
	b.s.nested += min(max(len(text)/32, 1), textCost) // short ones are cheap
	if b.s.nested > textCost*b.s.lim.Nested {
		b.limit("nested texts")
		return
	}
	child := &Builder{s: b.s, lang: lang, depth: b.depth + 1, via: join(b.via, o.Via), cwd: b.cwd, orCwd: b.orCwd, idle: b.idle, start: start, given: start.texts() + b.given}
	child.offered = b.offers && lang == b.lang
	child.origin = b.at(o.Pos).Pos
	child.verbatim = o.Verbatim && (b.depth == 0 || b.verbatim)
	child.extract(b.s.ctx, []byte(text))
	if lang == Shell && b.lang == Shell && len(o.Via) > 0 && (o.Via[0] == "eval" || o.Via[0] == "source") {
		b.cwd = child.cwd
	}
}

// textCost is what a nested text of some length counts.
const textCost = 8

func join(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	out := make([]string, 0, len(a)+len(b))
	return append(append(out, a...), b...)
}
