package shell

import (
	"strings"
	"unicode/utf8"
)

// maxMatch bounds the work of one pattern: its length times the subject's.
const maxMatch = 1 << 20

// hasMeta reports whether s holds an unescaped wildcard.
func hasMeta(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if strings.IndexByte(s[i+1:], ']') > 0 {
				return true
			}
		}
	}
	return false
}

// quoteMeta escapes wildcards, so that quoted text stays literal in a pattern.
func quoteMeta(s string) string {
	if !strings.ContainsAny(s, `*?[]\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`*?[]\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// match reports whether the shell pattern pat matches all of s. Where slash is
// true, wildcards do not match slashes, as in file names.
func match(pat, s string, slash bool) bool {
	if len(pat)*len(s) > maxMatch {
		return false
	}
	var backPat, backStr = -1, 0
	p, i := 0, 0
	for i < len(s) {
		if p < len(pat) && pat[p] == '*' {
			backPat, backStr = p, i
			p++
			continue
		}
		if n, size := matchOne(pat[p:], s[i:], slash); n > 0 {
			p += n
			i += size
			continue
		}
		if backPat < 0 || slash && s[backStr] == '/' {
			return false
		}
		_, size := utf8.DecodeRuneInString(s[backStr:])
		backStr += size
		p, i = backPat+1, backStr
	}
	return strings.Trim(pat[p:], "*") == ""
}

// matchOne matches one pattern element against one character and returns how
// much of each it took.
func matchOne(pat, s string, slash bool) (int, int) {
	if pat == "" {
		return 0, 0
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case pat[0] == '?':
		if slash && r == '/' {
			return 0, 0
		}
		return 1, size
	case pat[0] == '[':
		if n, ok, valid := matchClass(pat, r); valid {
			if ok && (!slash || r != '/') {
				return n, size
			}
			return 0, 0
		}
	case pat[0] == '\\' && len(pat) > 1:
		if strings.HasPrefix(s, pat[1:2]) {
			return 2, 1
		}
		return 0, 0
	}
	if pat[0] == s[0] {
		return 1, 1
	}
	return 0, 0
}

// matchClass matches a bracket expression at the start of pat.
func matchClass(pat string, r rune) (n int, ok, valid bool) {
	i := 1
	negated := i < len(pat) && (pat[i] == '!' || pat[i] == '^')
	if negated {
		i++
	}
	for first := true; i < len(pat); first = false {
		if pat[i] == ']' && !first {
			return i + 1, ok != negated, true
		}
		if rest, found := strings.CutPrefix(pat[i:], "[:"); found {
			if name, _, found := strings.Cut(rest, ":]"); found {
				ok = ok || inClass(name, r)
				i += len(name) + 4
				continue
			}
		}
		if pat[i] == '\\' && i+1 < len(pat) {
			i++
		}
		lo, size := utf8.DecodeRuneInString(pat[i:])
		i += size
		hi := lo
		if i+1 < len(pat) && pat[i] == '-' && pat[i+1] != ']' {
			hi, size = utf8.DecodeRuneInString(pat[i+1:])
			i += 1 + size
		}
		ok = ok || lo <= r && r <= hi
	}
	return 0, false, false
}

func inClass(name string, r rune) bool {
	lower, upper := r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z'
	digit := r >= '0' && r <= '9'
	switch name {
	case "lower":
		return lower
	case "upper":
		return upper
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "alnum":
		return lower || upper || digit
	case "xdigit":
		return digit || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	case "space":
		return strings.ContainsRune(" \t\n\r\v\f", r)
	case "blank":
		return r == ' ' || r == '\t'
	case "punct":
		return r > ' ' && r < 0x7f && !lower && !upper && !digit
	case "cntrl":
		return r < ' ' || r == 0x7f
	case "print":
		return r >= ' ' && r != 0x7f
	case "graph":
		return r > ' ' && r != 0x7f
	}
	return false
}

// literalPattern gives the text that a pattern without wildcards stands for.
func literalPattern(pat string) (string, bool) {
	if strings.ContainsAny(pat, "*?[(") {
		return "", false
	}
	return unescape(pat), true
}

// trimMatch removes what pat matches from the start or the end of s.
func trimMatch(s, pat string, suffix, longest bool) string {
	if r, ok := trimSimple(s, pat, suffix, longest); ok {
		return r
	}
	if len(s)*len(s)*max(len(pat), 1) > 4*maxMatch {
		return hole
	}
	for k := 0; k <= len(s); k++ {
		n := k
		if longest {
			n = len(s) - k
		}
		if suffix && match(pat, s[len(s)-n:], false) {
			return s[:len(s)-n]
		}
		if !suffix && match(pat, s[:n], false) {
			return s[n:]
		}
	}
	return s
}

// trimSimple handles the patterns that scripts use: a literal, and a star
// before or behind one.
func trimSimple(s, pat string, suffix, longest bool) (string, bool) {
	if l, ok := literalPattern(pat); ok {
		if suffix {
			return strings.TrimSuffix(s, l), true
		}
		return strings.TrimPrefix(s, l), true
	}
	find := strings.Index
	if suffix != longest { // the nearest from the end: %x* and ##*x
		find = strings.LastIndex
	}
	if rest, ok := strings.CutPrefix(pat, "*"); ok && !suffix && rest != "" {
		if l, ok := literalPattern(rest); ok {
			if i := find(s, l); i >= 0 {
				return s[i+len(l):], true
			}
			return s, true
		}
	}
	if rest, ok := strings.CutSuffix(pat, "*"); ok && suffix && rest != "" && !strings.HasSuffix(rest, "\\") {
		if l, ok := literalPattern(rest); ok {
			if i := find(s, l); i >= 0 {
				return s[:i], true
			}
			return s, true
		}
	}
	return "", false
}

// replaceMatch is ${s/pat/with}, whose pattern may start with # or %.
func replaceMatch(s, pat, with string, all bool) string {
	if pat == "" {
		return s
	}
	if rest, ok := strings.CutPrefix(pat, "#"); ok && !all {
		if t := trimMatch(s, rest, false, true); t != s || match(rest, "", false) {
			return with + t
		}
		return s
	}
	if rest, ok := strings.CutPrefix(pat, "%"); ok && !all {
		if t := trimMatch(s, rest, true, true); t != s || match(rest, "", false) {
			return t + with
		}
		return s
	}
	if l, ok := literalPattern(pat); ok {
		n := 1
		if all {
			n = -1
		}
		return strings.Replace(s, l, with, n)
	}
	if strings.Contains(pat, "*") && len(s) > 200 || len(s)*len(pat) > maxMatch {
		return hole
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := matchAt(s[i:], pat)
		if n <= 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(with)
		i += n
		if !all {
			b.WriteString(s[i:])
			break
		}
		if b.Len() > 1<<17 {
			return hole
		}
	}
	return b.String()
}

// matchAt is the length of the longest match at the start of s.
func matchAt(s, pat string) int {
	if strings.Contains(pat, "*") {
		for n := len(s); n > 0; n-- {
			if match(pat, s[:n], false) {
				return n
			}
		}
		return 0
	}
	i := 0
	for pat != "" && i < len(s) {
		n, size := matchOne(pat, s[i:], false)
		if n == 0 {
			return 0
		}
		pat, i = pat[n:], i+size
	}
	if pat != "" {
		return 0
	}
	return i
}
