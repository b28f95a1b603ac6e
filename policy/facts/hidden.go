package facts

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// hidden looks for characters that make text look other than it is.
func (b *Builder) hidden(src []byte) {
	if i := bytes.IndexByte(src, 0); i >= 0 {
		b.Dynamic(DynInvisible, "NUL byte", posAt(src, i))
	}
	b.confusable(src)
	for i, r := range b.src {
		switch {
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			b.Dynamic(DynInvisible, fmt.Sprintf("U+%04X changes the direction of text", r), posAt(src, i))
			return
		case r == 0x200B || r == 0x2060 || r == 0xFEFF && i > 0 || r == 0x00AD:
			if after := i + utf8.RuneLen(r); i > 0 && wordByte(src[i-1]) && after < len(src) && wordByte(src[after]) && !b.comment(src[:i]) {
				b.Dynamic(DynInvisible, fmt.Sprintf("U+%04X within a word", r), posAt(src, i))
				return
			}
		}
	}
}

// comment reports that a text ends in a line of comment: what does not show there
// names nothing.
func (b *Builder) comment(src []byte) bool {
	line := bytes.TrimLeft(src[bytes.LastIndexByte(src, '\n')+1:], " \t")
	marks := []string{"#"}
	if b.lang == JavaScript || b.lang == TypeScript {
		marks = []string{"//", "/*", "* "}
	}
	return slices.ContainsFunc(marks, func(m string) bool { return bytes.HasPrefix(line, []byte(m)) })
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func posAt(src []byte, off int) Pos {
	line := 1 + bytes.Count(src[:off], []byte{'\n'})
	col := off - bytes.LastIndexByte(src[:off], '\n')
	return Pos{Line: line, Col: col, EndLine: line, EndCol: col + 1}
}

// guarded are names that a confusable spelling is meant to pass for.
var guarded = []string{"eval", "exec", "compile", "system", "popen", "spawn", "require", "Function", "getattr", "subprocess", "__import__", "importlib", "execSync", "builtins", "globals"}

// confusable looks for words that pass for a name that matters: those that
// Unicode's normal form turns into one, and those in which letters of other
// scripts stand for Latin ones.
func (b *Builder) confusable(src []byte) {
	for i := 0; i < len(src); {
		if src[i] < utf8.RuneSelf {
			i++
			continue
		}
		start := i
		for start > 0 && wordByte(src[start-1]) {
			start--
		}
		end := i
		for end < len(src) {
			r, n := utf8.DecodeRune(src[end:])
			inWord := r >= utf8.RuneSelf && (r == utf8.RuneError || unicode.IsPrint(r)) || n == 1 && wordByte(src[end])
			if !inWord {
				break
			}
			end += n
		}
		if end <= i {
			_, n := utf8.DecodeRune(src[i:])
			i += n
			continue
		}
		if name := passesFor(string(src[start:end])); name != "" {
			b.Dynamic(DynInvisible, "a word that looks like "+name, posAt(src, start))
			return
		}
		i = end
	}
}

func passesFor(word string) string {
	if len(word) > 64 {
		return ""
	}
	folded := []rune(norm.NFKC.String(word))
	for _, g := range guarded {
		if len(folded) != len(g) {
			continue
		}
		latin, same := 0, true
		for i, r := range folded {
			switch {
			case r < utf8.RuneSelf:
				latin++
				same = same && byte(r) == g[i]
			case unicode.IsPunct(r): // a quotation mark is read as no letter
				same = false
			}
		}
		if same && latin > 0 && 2*latin >= len(folded) { // a letter before a word of another script disguises nothing
			return g
		}
	}
	var skeleton strings.Builder
	for _, r := range folded {
		if l, ok := lookalike[r]; ok {
			r = l
		}
		skeleton.WriteRune(r)
	}
	for _, g := range guarded {
		if skeleton.String() == g {
			return g
		}
	}
	return ""
}

// lookalike gives the Latin letter that a letter of another script looks like.
var lookalike = map[rune]rune{
	'а': 'a', 'ɑ': 'a', 'α': 'a', '⍺': 'a', 'е': 'e', 'ҽ': 'e', '℮': 'e', 'ꬲ': 'e', 'ε': 'e', 'ν': 'v', 'ѵ': 'v', 'ᴠ': 'v', '∨': 'v', '⋁': 'v', 'ꮩ': 'v',
	'ӏ': 'l', 'ⵏ': 'l', 'ו': 'l', 'ן': 'l', '∣': 'l', 'ꓲ': 'l', 'ⲓ': 'l', 'І': 'l', 'ا': 'l', '١': 'l', '۱': 'l', 'ߊ': 'l', 'х': 'x', '×': 'x', '᙮': 'x', '⤫': 'x',
	'с': 'c', 'ϲ': 'c', 'ᴄ': 'c', 'ѕ': 's', 'ꜱ': 's', 'у': 'y', 'ү': 'y', 'т': 't', 'м': 'm', 'о': 'o', 'ο': 'o', 'р': 'p', 'ρ': 'p', 'і': 'i', 'ι': 'i', 'ո': 'n', 'п': 'n',
}

// otherName is what a function is called besides.
var otherName = map[string]string{"open": "FileIO"}

// hiddenName records that a name which the program uses does not stand in its
// text: it was put together to pass a filter, or is written in other letters.
func (b *Builder) hiddenName(name, kind string, pos Pos) {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if len(last) < 3 || strings.Contains(b.src, last) || b.src == "" || strings.Contains(b.given, last) {
		return
	}
	if base, sync := strings.CutSuffix(last, "Sync"); sync && len(base) > 2 && strings.Contains(b.src, base) {
		return // fs[name + 'Sync'], where the function of that name stands in the text
	}
	if other := otherName[name]; other != "" && strings.Contains(b.src, other) {
		return
	}
	b.Dynamic(kind, name, pos)
}
