// Package shown makes texts of strangers fit to be read on a terminal: nothing
// in them acts on it or hides, and no two texts look the same.
package shown

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text shows what does not print as \x1b, \u202e or \U000e0100, a byte that is
// not UTF-8 as \xff. Backslashes stay as they are, but where they stand before
// what could be taken for that: there each is shown as two, so that a text with
// the four characters \x1b is shown as \\x1b.
func Text(text string) string { return show(text, false) }

// Code is [Text] for a line of a program: a tab is shown as an arrow as wide as
// four cells, and an arrow as \u2192.
func Code(line string) string { return show(line, true) }

const tab = "→   "

func show(text string, code bool) string {
	var b strings.Builder
	slashes := 0 // backslashes that were just shown
	for i, r := range text {
		hex := ""
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			hex = fmt.Sprintf("x%02x", text[i])
		case code && r == '\t':
			b.WriteString(tab)
		case unicode.IsPrint(r) && !unicode.Is(blank, r) && (!code || r != '→'):
			if strings.ContainsRune("xuU", r) {
				b.WriteString(strings.Repeat(`\`, slashes))
			}
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			hex = fmt.Sprintf("x%02x", r)
		case r < 1<<16:
			hex = fmt.Sprintf("u%04x", r)
		default:
			hex = fmt.Sprintf("U%08x", r)
		}
		if hex != "" {
			b.WriteString(strings.Repeat(`\`, slashes) + `\` + hex)
		}
		if r == '\\' {
			slashes++
		} else {
			slashes = 0
		}
	}
	return b.String()
}

// blank are characters that count as letters, marks and symbols, and that show
// as nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034F, Hi: 0x034F, Stride: 1}, {Lo: 0x115F, Hi: 0x1160, Stride: 1}, {Lo: 0x17B4, Hi: 0x17B5, Stride: 1},
		{Lo: 0x180B, Hi: 0x180F, Stride: 1}, {Lo: 0x2800, Hi: 0x2800, Stride: 1}, {Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1}, {Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xE0100, Hi: 0xE01EF, Stride: 1}},
}
