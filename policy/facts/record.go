package facts

import "slices"

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
		b.s.doc.Dynamic = append(b.s.doc.Dynamic, Dynamic{At: b.at(pos), Kind: kind, Detail: short(detail), From: clip(from)})
	}
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

func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
