// Package javascript extracts facts from JavaScript, TypeScript and TSX.
//
// It parses with tree-sitter, flattens the tree, and runs the program in the
// abstract: every expression is evaluated at least once, constants are folded,
// names are resolved through assignments, destructuring, closures, classes,
// promises and the language's reflection, and the program's own functions are
// called with what they are given. What leaves the program is told to a
// [facts.Builder] under its dotted name; what that means stands in the tables.
//
// Where the course of the program is not known, both ways are walked and
// values are joined; functions that nothing calls are run for unknown
// arguments at the end. All of it is bounded: past a bound values are opaque,
// and every part of the program is still walked once.
package javascript

import (
	"context"
	"errors"
	"time"

	js "github.com/tree-sitter/tree-sitter-javascript/bindings/go"
	typescript "github.com/tree-sitter/tree-sitter-typescript/bindings/go"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Extractor extracts the facts of one of the languages. It is safe for
// concurrent use.
type Extractor struct {
	grammars []*grammar // tried in order, until one reads the text without errors
	limit    time.Duration
}

var (
	_ facts.Extractor = (*Extractor)(nil)

	errTime   = errors.New("not parsed in time")
	errDeep   = errors.New("nested too deeply")
	errSyntax = errors.New("no statement can be read")
)

// New gives the extractor of JavaScript. Its grammar reads JSX too.
func New() *Extractor {
	return &Extractor{grammars: []*grammar{newGrammar(js.Language())}, limit: parseTime}
}

// NewTypeScript gives the extractor of TypeScript; what does not parse as such
// is read as TSX.
func NewTypeScript() *Extractor {
	return &Extractor{limit: parseTime, grammars: []*grammar{
		newGrammar(typescript.LanguageTypescript()),
		newGrammar(typescript.LanguageTSX()),
	}}
}

// Extract reports the facts of src to b. It returns an error where src cannot
// be parsed in time, or holds nothing that is JavaScript.
func (x *Extractor) Extract(ctx context.Context, src []byte, b *facts.Builder) error {
	limit := parseLimit(x.limit, len(src))
	wall := patience * limit
	if d, ok := ctx.Deadline(); ok {
		wall = min(wall, time.Until(d))
	}
	g, t := x.parse(src, limit, wall)
	if t == nil {
		return errTime
	}
	b.Node()
	b.SyntaxErrors(t.errors)
	if t.tooDeep {
		b.Dynamic(facts.DynTooDeep, errDeep.Error(), facts.Pos{})
	}
	if obfuscated(src) {
		b.Dynamic(facts.DynOpaqueCode, "spelt with brackets and operators only", facts.Pos{Line: 1, Col: 1})
	}
	w := newWalk(b, g, t)
	w.program()
	if t.broken() {
		return errSyntax
	}
	return ctx.Err()
}

func (x *Extractor) parse(src []byte, limit, wall time.Duration) (*grammar, *tree) {
	var best *tree
	var with *grammar
	for _, g := range x.grammars {
		t := parse(g, src, limit, wall)
		if t == nil {
			break
		}
		if best == nil || t.errors < best.errors {
			best, with = t, g
		}
		if t.errors == 0 {
			break
		}
	}
	return with, best
}

// obfuscated reports that a text is spelt with the few characters that suffice
// to spell any program: []()!+ and their like.
func obfuscated(src []byte) bool {
	few, all, run := 0, 0, 0
	for _, c := range src {
		switch c {
		case '[', ']', '(', ')', '!', '+', '{', '}':
			few++
			all++
			if run++; run >= 200 {
				return true
			}
		case ' ', '\t', '\n', '\r', ';':
		default:
			all++
			run = 0
		}
	}
	return all >= 48 && few*10 >= all*9
}
