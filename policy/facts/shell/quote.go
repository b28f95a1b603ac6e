package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape resolves the backslashes of an unquoted literal.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescapeDouble resolves the backslashes that count between double quotes, or
// in a here-document, where the quote itself is not special.
func unescapeDouble(s string, heredoc bool) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	special := "$`\"\\\n"
	if heredoc {
		special = "$`\\\n"
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(special, s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescapePattern turns the escapes of a literal into pattern escapes.
func unescapePattern(s string) string { return strings.ReplaceAll(s, "\\\n", "") }

var simpleEscapes = map[byte]string{
	'a': "\a", 'b': "\b", 'e': "\x1b", 'E': "\x1b", 'f': "\f", 'n': "\n", 'r': "\r",
	't': "\t", 'v': "\v", '\\': "\\", '\'': "'", '"': "\"", '?': "?",
}

// ansiC decodes the escapes of $'…'. echo -e and printf %b write octal with a
// leading zero, which zero allows.
func ansiC(s string, zero bool) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if c := s[i]; c == 'c' && i+1 < len(s) {
			if zero { // echo -e stops here
				return clean(b.String())
			}
			i++
			b.WriteByte(s[i] & 0x1f)
			continue
		}
		i += ansiEscape(&b, s[i:], zero) - 1
	}
	return clean(b.String())
}

// ansiEscape decodes the escape whose backslash has been taken, and returns
// how many bytes it has.
func ansiEscape(b *strings.Builder, s string, zero bool) int {
	if r, ok := simpleEscapes[s[0]]; ok {
		b.WriteString(r)
		return 1
	}
	switch c := s[0]; {
	case c == 'x':
		if n := digits(s[1:], 2, 16); n > 0 {
			v, _ := strconv.ParseUint(s[1:1+n], 16, 8)
			b.WriteByte(byte(v))
			return 1 + n
		}
	case c == 'u' || c == 'U':
		width := 4
		if c == 'U' {
			width = 8
		}
		if n := digits(s[1:], width, 16); n > 0 {
			v, _ := strconv.ParseUint(s[1:1+n], 16, 32)
			b.WriteString(string(utf8.AppendRune(nil, rune(v))))
			return 1 + n
		}
	case c >= '0' && c <= '7':
		width := 3
		if zero && c == '0' {
			width = 4
		}
		n := digits(s, width, 8)
		v, _ := strconv.ParseUint(s[:n], 8, 16)
		b.WriteByte(byte(v))
		return n
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1
}

// digits counts the leading digits of s in a base, at most width.
func digits(s string, width, base int) int {
	n := 0
	for n < len(s) && n < width {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	return n
}
