package policycmd

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/caisson-dev/caisson/internal/shown"
	"github.com/caisson-dev/caisson/sandbox"
)

// writeText prints a decision for people: each finding with its line and a
// caret. Text of the program is escaped, since it may be hostile.
func writeText(w io.Writer, p program) error {
	var b strings.Builder
	name := p.file
	if name == "" {
		name = "<code>"
	}
	lines := strings.Split(string(p.code), "\n")
	for _, f := range p.decision.Findings {
		fmt.Fprintf(&b, "%s:%d:%d: %s %s: %s\n", shown.Text(name), f.Line, f.Column, f.Severity, f.ID, shown.Text(f.Title))
		caret(&b, lines, f)
		fmt.Fprintf(&b, "      | %s\n", shown.Text(f.Message))
		if len(f.Via) > 0 {
			fmt.Fprintf(&b, "      = via %s\n", shown.Text(strings.Join(f.Via, " → ")))
		}
		switch {
		case f.Contained != "":
			fmt.Fprintf(&b, "      = contained by %s\n", f.Contained)
		case f.Remediation != "":
			fmt.Fprintf(&b, "      = %s\n", shown.Text(f.Remediation))
		}
	}
	d := p.decision
	fmt.Fprintf(&b, "%s: %s (%s), %d findings, policy %s\n", shown.Text(name), d.Verdict, d.Level, len(d.Findings), d.PolicyRevision)
	_, err := io.WriteString(w, b.String())
	return err
}

const widest = 160

// caret prints the source line of a finding with a mark below it.
func caret(b *strings.Builder, lines []string, f sandbox.Finding) {
	if f.Line < 1 || f.Line > len(lines) {
		return
	}
	line := strings.TrimSuffix(lines[f.Line-1], "\r")
	start := min(max(f.Column-1, 0), len(line))
	end := len(line)
	if f.EndLine == f.Line && f.EndColumn > f.Column {
		end = min(f.EndColumn-1, len(line))
	}
	from := 0
	if start > widest/2 {
		from = start - widest/4
		for from < start && !utf8.RuneStart(line[from]) {
			from++
		}
	}
	before, marked, after := shown.Code(line[from:start]), shown.Code(line[start:end]), shown.Code(line[end:])
	if short := clip(marked); short != marked {
		marked, after = short, ""
	}
	after = clip(after)
	fmt.Fprintf(b, "%5d | %s%s%s\n", f.Line, before, marked, after)
	fmt.Fprintf(b, "      | %s%s\n", strings.Repeat(" ", cells(before)), "^"+strings.Repeat("~", max(cells(marked)-1, 0)))
}

// clip cuts a text that is too long to show, between characters.
func clip(s string) string {
	if len(s) <= widest {
		return s
	}
	end := widest
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// cells is how many cells of a terminal a text takes.
func cells(s string) int {
	n := 0
	for _, r := range s {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 2
		default:
			if !unicode.Is(unicode.Mn, r) {
				n++
			}
		}
	}
	return n
}
