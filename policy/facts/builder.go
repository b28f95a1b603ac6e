package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Extractor turns source text of one language into facts. It is safe for
// concurrent use, returns an error only where the text is not a program of its
// language or ctx ended, and then what it reported before still counts.
type Extractor interface {
	Extract(ctx context.Context, src []byte, b *Builder) error
}

// Limits bound a scan. Zero fields mean the defaults.
type Limits struct {
	Source  int // bytes of the source and of each nested text; 1 MiB
	Facts   int // of all kinds together; 20000
	Depth   int // of code in code; 6
	Nested  int // texts scanned in all; 200
	Bracket int // depth of brackets; 200
	Nodes   int // syntax nodes over all texts; 2,000,000
	// NoCalls leaves the list of calls out of the document, which is most of
	// it; what the calls do is there all the same.
	NoCalls bool
}

// Dispatcher knows the extractor of each language.
type Dispatcher map[Lang]Extractor

// Scan extracts the facts of one source text. It returns no error: what went
// wrong stands in the document as a dynamic fact.
func Scan(ctx context.Context, t *Tables, d Dispatcher, lim Limits, lang Lang, src []byte) *Document {
	return ScanStarted(ctx, t, d, lim, lang, src, Start{})
}

// ScanStarted is [Scan] of a text of which it is known how it is started.
func ScanStarted(ctx context.Context, t *Tables, d Dispatcher, lim Limits, lang Lang, src []byte, start Start) *Document {
	sum := sha256.Sum256(src)
	s := &scan{ctx: ctx, tables: t, langs: d, lim: lim.withDefaults(), files: map[string]Value{}, lying: start.Files, modules: start.Modules, links: start.Links, seen: map[nestedKey]bool{}}
	s.doc.Meta = Meta{Lang: lang, SHA256: hex.EncodeToString(sum[:]), Bytes: len(src)}
	b := &Builder{s: s, lang: lang, cwd: t.Cwd, start: start, given: start.texts()}
	b.extract(ctx, src)
	return &s.doc
}

// Builder collects the facts of one text. Texts found in it (nested code) have
// Builders of their own that write into the same document. It is not safe for
// concurrent use.
type Builder struct {
	s    *scan
	lang Lang
	// depth, via and origin say how this text came to be code, and where it
	// stands in the outermost source.
	depth    int
	via      []string
	origin   Pos
	verbatim bool
	cwd      string
	orCwd    string // where cwd is a guess, see SetCwd
	idle     bool
	offers   bool // see Offers
	offered  bool
	src      string // the text itself
	shown    string // the same, also where the caller walks it; for people
	lines    []string
	start    Start
	given    string // the texts of start
	packages int8   // whether src speaks of a package.json: 1 if it does, -1 if not
}

// scan is what all Builders of one call of [Scan] share. It lives as long as
// that call, so that it may hold the call's context.
type scan struct {
	ctx     context.Context
	tables  *Tables
	langs   Dispatcher
	lim     Limits
	doc     Document
	facts   int
	nested  int
	inlined int // texts that a caller walked itself
	looked  int // see maxLooked
	full    bool
	files   map[string]Value  // written by the program so far, by absolute path
	lying   map[string]string // what lies in others
	modules map[string]string // see Start.Modules
	links   map[string]string
	set     map[string]Value // variables that the program sets, for shells that it starts
	seen    map[nestedKey]bool
}

// weight counts the facts that say what a program does.
func (s *scan) weight() int {
	d := &s.doc
	return len(d.Files) + len(d.Net) + len(d.Commands) + len(d.Env) + len(d.Actions) + len(d.Dynamic) + len(d.Structs) + len(d.Imports)
}

// touched is weight without commands by themselves.
func (s *scan) touched() int { return s.weight() - len(s.doc.Commands) }

type nestedKey struct {
	lang  Lang
	cwd   string
	code  string
	start string
	own   bool
}

// Lang is the language of this text.
func (b *Builder) Lang() Lang { return b.lang }

// Depth is how often text became code on the way to this one.
func (b *Builder) Depth() int { return b.depth }

// Tables are the tables of this scan, to be read only.
func (b *Builder) Tables() *Tables { return b.s.tables }

// Idle says that what follows stands in functions that nothing in the program
// calls or names, so that it does not run by itself.
func (b *Builder) Idle(idle bool) { b.idle = idle }

// Full reports that a bound was hit, the time is over, or nothing more will be
// kept; extractors should stop at the next node.
func (b *Builder) Full() bool { return b.s.full || b.s.ctx.Err() != nil }

// Node counts a syntax node and reports whether the extractor may go on.
func (b *Builder) Node() bool {
	b.s.doc.Meta.Nodes++
	if b.s.doc.Meta.Nodes > b.s.lim.Nodes {
		b.limit("syntax nodes")
	}
	return !b.s.full && (b.s.doc.Meta.Nodes&255 != 0 || b.s.ctx.Err() == nil)
}

// SyntaxErrors adds to the count of syntax errors.
func (b *Builder) SyntaxErrors(n int) { b.s.doc.Meta.Errors += n }

// Request is one text to be scanned.
type Request struct {
	Lang Lang
	Code []byte
	// Owner keeps texts of different owners out of one scanner process.
	Owner string
	// Calls asks for the list of calls too.
	Calls bool
	// Start is how it is started.
	Start Start
	// Within is how much time a scan may take that has a processor to itself. One
	// that has not may take longer, until its context ends; 0 is until then.
	Within time.Duration
}
