package policycmd

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestCaretBelowWideText puts the mark below what it means, however wide the
// text before it is.
func TestCaretBelowWideText(t *testing.T) {
	var b strings.Builder
	caret(&b, []string{"\t\"日本\"; bad"}, sandbox.Finding{Line: 1, Column: 12, EndLine: 1, EndColumn: 15})
	if want := "    1 | →   \"日本\"; bad\n      |             ^~~\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	caret(&b, []string{strings.Repeat("日", 200) + "bad" + strings.Repeat("本", 200)}, sandbox.Finding{Line: 1, Column: 601, EndLine: 1, EndColumn: 604})
	if !utf8.ValidString(b.String()) || strings.Contains(b.String(), "\\ufffd") {
		t.Errorf("a character was cut: %q", b.String())
	}
}

// TestSARIFPlaces: addresses of files are URIs, and columns count characters.
func TestSARIFPlaces(t *testing.T) {
	var b strings.Builder
	d := sandbox.Decision{Findings: []sandbox.Finding{{ID: "X-1", Severity: sandbox.High, File: "a b#c.py", Line: 1, Column: 12, EndLine: 1, EndColumn: 15}}}
	if err := writeSARIF(&b, []program{{file: "a b#c.py", code: []byte("\t\"日本\"; bad"), decision: d}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"uri": "a%20b%23c.py"`, `"startColumn": 8`, `"endColumn": 11`, `"columnKind": "unicodeCodePoints"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
}
