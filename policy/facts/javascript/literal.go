package javascript

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape gives the text that a string or identifier spells, with its \x, \u and octal escapes read. Strings are held
// as UTF-8; a lone surrogate becomes U+FFFD, and code units from \x80 to \xff stand for themselves.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	high := rune(0)
	put := func(r rune) {
		if high != 0 {
			if joined := utf16.DecodeRune(high, r); joined != utf8.RuneError {
				b.WriteRune(joined)
				high = 0
				return
			}
			b.WriteRune(utf8.RuneError)
			high = 0
		}
		if r >= 0xd800 && r < 0xdc00 {
			high = r
			return
		}
		b.WriteRune(r)
	}
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 >= len(s) {
			r, n := utf8.DecodeRuneInString(s[i:])
			put(r)
			i += n
			continue
		}
		r, n, ok := escape(s[i+1:])
		if ok {
			put(r)
		}
		i += 1 + n
	}
	if high != 0 {
		b.WriteRune(utf8.RuneError)
	}
	return b.String()
}

// escape reads what follows a backslash: the character, how long it was spelt, and false for a line continuation.
func escape(s string) (rune, int, bool) {
	switch c := s[0]; c {
	case 'n':
		return '\n', 1, true
	case 't':
		return '\t', 1, true
	case 'r':
		return '\r', 1, true
	case 'b':
		return '\b', 1, true
	case 'f':
		return '\f', 1, true
	case 'v':
		return '\v', 1, true
	case '\n':
		return 0, 1, false
	case '\r':
		if len(s) > 1 && s[1] == '\n' {
			return 0, 2, false
		}
		return 0, 1, false
	case 'x':
		if r, ok := hexRune(s, 1, 3); ok {
			return r, 3, true
		}
	case 'u':
		if len(s) > 1 && s[1] == '{' {
			if end := strings.IndexByte(s, '}'); end > 0 {
				if r, ok := hexRune(s, 2, end); ok {
					return r, end + 1, true
				}
			}
		} else if r, ok := hexRune(s, 1, 5); ok {
			return r, 5, true
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := 1
		for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		if n == 3 && s[0] > '3' {
			n = 2
		}
		v, _ := strconv.ParseInt(s[:n], 8, 32)
		return rune(v), n, true
	}
	r, n := utf8.DecodeRuneInString(s)
	return r, n, true
}

func hexRune(s string, from, to int) (rune, bool) {
	if to > len(s) || to <= from || to-from > 8 {
		return 0, false
	}
	v, err := strconv.ParseUint(s[from:to], 16, 32)
	if err != nil || v > utf8.MaxRune {
		return 0, false
	}
	return rune(v), true
}

// number reads a numeric literal or the text of a number, as Number() does.
func number(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	s = strings.ReplaceAll(strings.TrimSuffix(s, "n"), "_", "")
	if s == "" {
		return 0, true
	}
	if len(s) > 1 && s[0] == '0' {
		base := 0
		switch s[1] {
		case 'x', 'X':
			base = 16
		case 'o', 'O':
			base = 8
		case 'b', 'B':
			base = 2
		}
		if base != 0 {
			n, ok := new(big.Int).SetString(s[2:], base)
			if !ok || len(s) > 300 {
				return 0, false
			}
			f, _ := new(big.Float).SetInt(n).Float64()
			return f, true
		}
	}
	switch s {
	case "Infinity", "+Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && !strings.ContainsRune("+-.eE", rune(c)) {
			return math.NaN(), true
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN(), true
	}
	return f, true
}

// spell writes a number as JavaScript does.
func spell(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		return "0"
	case math.Abs(f) < 1e21 && f == math.Trunc(f):
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if math.Abs(f) >= 1e-6 && math.Abs(f) < 1e21 {
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	s = strings.Replace(s, "e-0", "e-", 1)
	return strings.Replace(s, "e+0", "e+", 1)
}

// inBase writes a number as n.toString(base) does.
func inBase(f float64, base int) (string, bool) {
	if base == 10 {
		return spell(f), true
	}
	if base < 2 || base > 36 || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return "", false
	}
	return strconv.FormatInt(int64(f), base), true
}

// parseInteger is parseInt(s, base).
func parseInteger(s string, base int) float64 {
	s = strings.TrimSpace(s)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimLeft(s, "+-")
	if (base == 0 || base == 16) && (strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X")) {
		s, base = s[2:], 16
	}
	if base == 0 {
		base = 10
	}
	if base < 2 || base > 36 {
		return math.NaN()
	}
	v, n := 0.0, 0
	for _, c := range []byte(strings.ToLower(s)) {
		d := 99
		switch {
		case c >= '0' && c <= '9':
			d = int(c - '0')
		case c >= 'a' && c <= 'z':
			d = int(c-'a') + 10
		}
		if d >= base {
			break
		}
		v = v*float64(base) + float64(d)
		n++
	}
	switch {
	case n == 0:
		return math.NaN()
	case neg:
		return -v
	}
	return v
}

// units are the UTF-16 code units of s, which is how JavaScript counts.
func units(s string) []uint16 { return utf16.Encode([]rune(s)) }

// fromUnits is the reverse of units.
func fromUnits(u []uint16) string { return string(utf16.Decode(u)) }

// ascii reports whether bytes and code units of s are the same.
func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
