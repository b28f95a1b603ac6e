package facts

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// at completes a position: nested text is mapped to where it stands in the
// outermost source.
func (b *Builder) at(p Pos) At {
	a := At{Lang: b.lang, Pos: p, Depth: b.depth, Via: b.via, Idle: b.idle}
	if b.depth == 0 {
		return a
	}
	if !b.verbatim || p.Line == 0 {
		a.Pos = b.origin
		return a
	}
	shift := func(line, col int) (int, int) {
		if line == 1 {
			col += b.origin.Col - 1
		}
		return line + b.origin.Line - 1, col
	}
	a.Line, a.Col = shift(p.Line, p.Col)
	if p.EndLine > 0 {
		a.EndLine, a.EndCol = shift(p.EndLine, p.EndCol)
	}
	return a
}

// Import records a module that becomes reachable; only Pos of f.At is read.
// A module that runs code by being imported (Tables.Modules) is one fact more.
func (b *Builder) Import(f Import) {
	lang := b.lang
	if lang == TypeScript {
		lang = JavaScript
	}
	if b.s.tables.Modules[lang][f.Module] != "" {
		b.hiddenName(f.Module, DynHidden, f.Pos)
	}
	if b.room() {
		f.At = b.at(f.Pos)
		b.s.doc.Imports = append(b.s.doc.Imports, f)
		b.imported(f.Module, f.Pos)
	}
}

// Use is a path or a destination that is used otherwise than by a call or a
// command of the tables.
type Use struct {
	Pos  Pos
	Op   string
	What Value // the path; the URL, host, or "host:port"
	By   string
	// Data is what is written or sent.
	Data      Value
	Recursive bool
	Mode      string // of chmod
	Method    string
	Scheme    string
	Port      Value // where it stands apart from the host
}

// Dynamic records what could not be told. from is where the text comes from.
func (b *Builder) Dynamic(kind, detail string, pos Pos, from ...string) {
	if b.room() {
		if strings.Trim(detail, " \t\n…") == "" {
			detail = b.excerpt(pos)
		}
		if kind == DynOpaqueCode && b.start.Known && slices.ContainsFunc(from, ofFile) {
			from = append([]string{"input"}, from...) // what runs is judged here, and this is not
		}
		b.s.doc.Dynamic = append(b.s.doc.Dynamic, Dynamic{At: b.at(pos), Kind: kind, Detail: short(detail), From: clip(from)})
	}
}

// Unknown is [Builder.Dynamic] for a program or a function that is not known,
// with what it is given: words that name nothing that matters make it inert.
func (b *Builder) Unknown(kind, detail string, pos Pos, from []string, given []Value) {
	n := len(b.s.doc.Dynamic)
	b.Dynamic(kind, detail, pos, from...)
	if n == len(b.s.doc.Dynamic) {
		return
	}
	if kind == DynCommand && len(given) == 0 && b.lang == Shell && slices.ContainsFunc(from, ofFile) {
		return // a line of a file is run as a command
	}
	if kind == DynCommand && slices.Contains(from, FromSourced) {
		kind = FromSourced
	}
	b.s.doc.Dynamic[n].Inert = !slices.ContainsFunc(given, func(v Value) bool { return !b.harmless(v, kind) }) && !takesCode(given)
}

func ofFile(from string) bool {
	return strings.HasPrefix(from, "file:") && !strings.HasPrefix(from, FromBeside)
}

// Evaluated records text that is run as code, and gives a function to be
// called when that was followed: the text is inert where nothing came of it
// but commands that touch nothing.
func (b *Builder) Evaluated(text string, pos Pos, from ...string) func() {
	n, before := len(b.s.doc.Dynamic), b.s.touched()
	b.Dynamic(DynEval, text, pos, from...)
	return func() {
		if n < len(b.s.doc.Dynamic) && b.s.touched() == before+1 {
			b.s.doc.Dynamic[n].Inert = true
		}
	}
}

// harmless reports that a word names no place, host or code.
func (b *Builder) harmless(v Value, kind string) bool {
	if b.lang == Shell && slices.Contains(v.From, "argv0") {
		return true // the program itself, which is judged
	}
	for _, it := range v.Items {
		if !b.harmless(it, kind) {
			return false
		}
	}
	words := v.Alts
	if !v.Known() && v.Prefix != "" {
		head := v.Prefix
		if len(head) > 1 && strings.HasSuffix(head, "/") {
			head += "0" // something in a folder
		}
		words = append(slices.Clone(words), head)
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !b.harmlessText(w, kind) })
}

// takesCode reports an option with code behind it.
func takesCode(words []Value) bool {
	for i, v := range words {
		s, ok := v.One()
		if !ok || s != "-c" && s != "-e" || i+1 == len(words) {
			continue
		}
		next := words[i+1]
		text, known := next.One()
		if !known && next.Head() == "" && !fromCaller(next.From) || strings.ContainsAny(text+next.Head(), " \t\n;|&$`(") {
			return true
		}
	}
	return false
}

// fromCaller reports that a value is what the program's caller hands to it.
func fromCaller(from []string) bool {
	for _, f := range from {
		if kind, _, _ := strings.Cut(f, ":"); kind != "argv" && kind != "env" && kind != "param" && kind != FromSourced {
			return false
		}
	}
	return len(from) > 0
}

// codeWords are options that programs take code, or no questions, by.
var codeWords = []string{"-rf", "-fr", "-Rf", "-fR", "--recursive", "--eval", "-exec", "-delete", "--no-preserve-root", "/c"}

// codeSigns are what a long text for people does not have, and code or a list
// of places does.
var codeSigns = lazyregexp.New("[;|&`$<>{}=]|\\w\\(|(?:^|\\s)[/~]")

// harmlessClasses are of paths that any program may be given.
var harmlessClasses = []string{"workspace", "tmp", "public", "device_safe", "relative", "shm", "outside"}

func (b *Builder) harmlessText(w, kind string) bool {
	w = strings.TrimPrefix(w, "file://") // a place here
	switch {
	case kind == FromSourced && !slices.Contains(codeWords, w) && !strings.Contains(w, "://"):
		return true // the project's own file names the program, and may do as much itself
	case slices.Contains(codeWords, w), strings.Contains(w, "://"), strings.HasPrefix(w, "~"), len(w) > keptText && codeSigns().MatchString(w):
		return false
	case kind == DynCall && strings.ContainsAny(w, " /\\;|&$`(){}"):
		return false
	case strings.HasPrefix(w, "/"), strings.Contains(w, ".."):
		p := b.s.tables.CleanPath(w, b.cwd)
		class := b.s.tables.PathClass(p)
		return slices.Contains(harmlessClasses, class) || class == "system_binary" && strings.Count(p, "/") > 2
	}
	return true
}

// Struct records a shape of the program.
func (b *Builder) Struct(kind, detail string, pos Pos) {
	if b.room() {
		b.s.doc.Structs = append(b.s.doc.Structs, Struct{At: b.at(pos), Kind: kind, Detail: short(detail)})
	}
}

// Action records a capability; by is the call or program.
func (b *Builder) Action(op, detail, by string, pos Pos) {
	if b.room() {
		b.s.doc.Actions = append(b.s.doc.Actions, Action{At: b.at(pos), Op: op, Detail: short(detail), By: by})
	}
}

// Pipeline records commands joined by pipes; from is where the text that
// reaches the last comes from.
func (b *Builder) Pipeline(names, from []string, pos Pos) {
	if b.room() {
		b.s.doc.Pipes = append(b.s.doc.Pipes, Pipeline{At: b.at(pos), Names: slices.Clone(names), From: clip(from)})
	}
}

// excerpt is the source at a place, for people: its first line, shortened.
func (b *Builder) excerpt(p Pos) string {
	if b.lines == nil {
		b.lines = strings.Split(b.shown, "\n")
	}
	if p.Line <= 0 || p.Col <= 0 || p.Line > len(b.lines) {
		return ""
	}
	line := b.lines[p.Line-1]
	if p.EndLine == p.Line && p.EndCol > p.Col && p.EndCol-1 <= len(line) {
		line = line[:p.EndCol-1]
	}
	if p.Col > len(line) {
		return ""
	}
	line = strings.TrimSpace(strings.ToValidUTF8(line[p.Col-1:], ""))
	if len(line) > maxExcerpt {
		line = strings.ToValidUTF8(line[:maxExcerpt], "") + "…"
	}
	return line
}

// maxExcerpt is how much of a line is shown.
const maxExcerpt = 80

func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
