package python

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// identifier is a name as the language sees it: in NFKC, so that letters from
// other alphabets' styles cannot hide it.
func identifier(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return norm.NFKC.String(s)
		}
	}
	return s
}

// number folds an integer or float literal.
func number(s string) *val {
	s = strings.ReplaceAll(strings.ToLower(s), "_", "")
	if strings.HasSuffix(s, "j") {
		return unknown
	}
	s = strings.TrimSuffix(s, "l") // Python 2
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return integer(n)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.ContainsAny(s, ".e") {
		return &val{kind: kFloat, text: formatFloat(f)}
	}
	return unknown
}

func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".en") {
		s += ".0"
	}
	return s
}

// prefix reads what stands before the quotes.
type stringPrefix struct{ raw, bytes, format bool }

func parsePrefix(start string) stringPrefix {
	var p stringPrefix
	for _, c := range strings.ToLower(start) {
		switch c {
		case 'r':
			p.raw = true
		case 'b':
			p.bytes = true
		case 'f', 't':
			p.format = true
		}
	}
	return p
}

// unescape resolves the escapes of a literal. bytes keep \u as it is.
func unescape(s string, bytes bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		i += escape(&b, s[i:], bytes) - 1
	}
	return b.String()
}

var simpleEscapes = map[byte]byte{
	'\\': '\\', '\'': '\'', '"': '"', 'a': 7, 'b': 8, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11,
}

// escape writes what stands behind a backslash and says how long that was.
func escape(b *strings.Builder, s string, bytes bool) int {
	c := s[0]
	if r, ok := simpleEscapes[c]; ok {
		b.WriteByte(r)
		return 1
	}
	code := func(n uint64) {
		if bytes {
			b.WriteByte(byte(n))
		} else {
			b.WriteRune(rune(n))
		}
	}
	hex := func(digits int) int {
		if len(s) > digits {
			if n, err := strconv.ParseUint(s[1:1+digits], 16, 32); err == nil {
				code(n)
				return 1 + digits
			}
		}
		b.WriteByte('\\')
		b.WriteByte(c)
		return 1
	}
	switch {
	case c == '\n':
		return 1
	case c == '\r':
		if len(s) > 1 && s[1] == '\n' {
			return 2
		}
		return 1
	case c >= '0' && c <= '7':
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint(s[:n], 8, 32)
		code(v)
		return n
	case c == 'x':
		return hex(2)
	case c == 'u' && !bytes:
		return hex(4)
	case c == 'U' && !bytes:
		return hex(8)
	case c == 'N' && !bytes && len(s) > 1 && s[1] == '{':
		if end := strings.IndexByte(s, '}'); end > 0 {
			b.WriteString(unicodeName(s[2:end]))
			return end + 1
		}
	}
	b.WriteByte('\\')
	b.WriteByte(c)
	return 1
}

// unicodeName knows the names of the letters, digits and marks that a program
// is written with; others become the replacement character.
func unicodeName(name string) string {
	name = strings.ToUpper(name)
	for _, p := range []struct {
		prefix string
		lower  bool
	}{{"LATIN SMALL LETTER ", true}, {"LATIN CAPITAL LETTER ", false}} {
		if rest, ok := strings.CutPrefix(name, p.prefix); ok && len(rest) == 1 {
			if p.lower {
				return strings.ToLower(rest)
			}
			return rest
		}
	}
	if s, ok := markNames[name]; ok {
		return s
	}
	return "\uFFFD"
}

var markNames = map[string]string{
	"SPACE": " ", "SOLIDUS": "/", "SLASH": "/", "FULL STOP": ".", "PERIOD": ".", "LOW LINE": "_", "HYPHEN-MINUS": "-",
	"LEFT PARENTHESIS": "(", "RIGHT PARENTHESIS": ")", "QUOTATION MARK": `"`, "APOSTROPHE": "'", "COMMA": ",",
	"SEMICOLON": ";", "COLON": ":", "EQUALS SIGN": "=", "ASTERISK": "*", "VERTICAL LINE": "|", "AMPERSAND": "&",
	"DOLLAR SIGN": "$", "TILDE": "~", "REVERSE SOLIDUS": `\`, "NUMBER SIGN": "#", "COMMERCIAL AT": "@",
	"DIGIT ZERO": "0", "DIGIT ONE": "1", "DIGIT TWO": "2", "DIGIT THREE": "3", "DIGIT FOUR": "4",
	"DIGIT FIVE": "5", "DIGIT SIX": "6", "DIGIT SEVEN": "7", "DIGIT EIGHT": "8", "DIGIT NINE": "9",
}
