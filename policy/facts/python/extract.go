package python

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// extractor is the [facts.Extractor] of Python. It holds nothing of a scan.
type extractor struct {
	*language
	handlers    map[string]handler
	statements  map[string]statementFunc
	expressions map[string]expressionFunc
}

// programs reports that the tables know a program of that name.
func (x *extractor) programs(t *facts.Tables, name string) bool {
	_, _, ok := t.Program(name)
	return ok
}

var _ facts.Extractor = (*extractor)(nil)

// New gives the extractor of Python. It is safe for concurrent use.
func New() facts.Extractor {
	return &extractor{
		language: newLanguage(), handlers: newHandlers(), statements: newStatements(), expressions: newExpressions(),
	}
}

// errUnparsable: the parser found no end in time.
var errUnparsable = errors.New("the parser gave up after " + parseTime.String())

// Extract implements [facts.Extractor].
func (x *extractor) Extract(_ context.Context, src []byte, b *facts.Builder) error {
	text := oneLineEnd(string(src))
	t := x.parse(text)
	if t == nil || t.root == nil {
		return errUnparsable
	}
	b.SyntaxErrors(t.errors)
	if t.cut {
		b.Limit(fmt.Sprintf("syntax tree of more than %d nodes", maxNodes), facts.Pos{})
	}
	newInterp(x, t, b).run()
	if t.errors > 0 && t.lost() && (b.Depth() == 0 || mayCall(t.src)) {
		return errors.New("not Python: most of it is not understood")
	}
	if codec := codecOf(text); b.Depth() == 0 && !plainCodec().MatchString(codec) {
		return fmt.Errorf("its bytes are no text before %s decodes them", codec)
	}
	return nil
}

// oneLineEnd is a text whose lines all end as Python ends them: a return ends one, too.
func oneLineEnd(src string) string {
	if !strings.Contains(src, "\r") {
		return src
	}
	b := []byte(src)
	for i, c := range b {
		if c == '\r' && (i+1 == len(b) || b[i+1] != '\n') {
			b[i] = '\n'
		}
	}
	return string(b)
}

// codecOf is what a file says that its bytes are to be decoded by, in one of its first
// two lines, "" where it says nothing.
func codecOf(src string) string {
	for range 2 {
		line, rest, _ := strings.Cut(src, "\n")
		if m := declared().FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if line = strings.TrimLeft(line, " \t\f\r"); line != "" && line[0] != '#' {
			break
		}
		src = rest
	}
	return ""
}

// Codecs by which a byte below 128 is what it is in ASCII.
var (
	declared   = lazyregexp.New(`^(?:\xEF\xBB\xBF)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)
	plainCodec = lazyregexp.New(`(?i)^(|utf[-_]?8([-_]sig)?|(us[-_])?ascii|latin[-_]?1|iso[-_]?8859[-_]?\d+|cp125\d|windows[-_]125\d|koi8[-_][ru])$`)
)

// mayCall reports that a text could call or import something in any reading of
// it. One that is run as code, does not parse and could not, does nothing but
// raise a SyntaxError.
func mayCall(src string) bool {
	before := byte('\n') // what stands before, but for spaces
	for i := range len(src) {
		c := src[i]
		switch {
		case c == '@', c == '`', c >= utf8.RuneSelf:
			return true
		case c == '(' && (wordRune(rune(before)) || strings.IndexByte(`)]}'"\`, before) >= 0):
			return true
		case c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f':
			before = c
		}
	}
	return slices.ContainsFunc(telling, func(word string) bool { return strings.Contains(src, word) })
}

// telling are words of statements, and of names that others may stand for.
var telling = []string{"import", "exec", "eval", "print", "open", "system", "lambda", "__"}

// lost reports that errors cover most of the text.
func (t *tree) lost() bool {
	bad, end := 0, uint32(0)
	var walk func(n *node)
	walk = func(n *node) {
		for c := n.first; c != nil; c = c.next {
			if c.kind == "ERROR" {
				if c.end > end {
					bad += int(c.end - max(c.start, end))
					end = c.end
				}
			} else if c.size > 1 {
				walk(c)
			}
		}
	}
	if t.root.kind == "ERROR" {
		return true
	}
	walk(t.root)
	return bad*2 > len(t.src)
}
