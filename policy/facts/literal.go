package facts

import (
	"math"
	"path"
	"strings"
)

// tokenPrefixes are how well-known secrets begin.
var tokenPrefixes = []struct {
	prefix string
	least  int
}{
	{"AKIA", 20}, {"ASIA", 20}, {"ghp_", 30}, {"gho_", 30}, {"ghs_", 30}, {"github_pat_", 40}, {"xoxb-", 20}, {"xoxp-", 20},
	{"sk_live_", 20}, {"glpat-", 20}, {"AIza", 35}, {"npm_", 36}, {"pypi-", 40},
}

// Literal classes a string literal and records it where it is of a kind that
// rules ask about.
func (b *Builder) Literal(text string, pos Pos) {
	kind, class := b.s.tables.literal(text)
	if kind == "" || !b.room() {
		return
	}
	s := String{At: b.at(pos), Kind: kind, Text: short(text), Len: len(text), Class: class}
	switch kind {
	case "private_key", "token":
		s.Text = short(text[:4]) + "…"
	case "base64", "hex":
		s.Entropy = math.Round(entropy(text)*100) / 100
	}
	b.s.doc.Strings = append(b.s.doc.Strings, s)
}

func (t *Tables) literal(text string) (kind, class string) {
	n := len(text)
	if n < 4 || n > MaxFolded {
		return "", ""
	}
	switch {
	case strings.Contains(text, "-----BEGIN") && strings.Contains(text, "PRIVATE KEY"):
		return "private_key", ""
	case hasToken(text):
		return "token", ""
	case text[0] == '/' && n < 256 && !strings.ContainsAny(text, "\n\t <>"):
		if c := t.PathClass(path.Clean(text)); c != "outside" && c != "workspace" && c != "tmp" {
			return "path", c
		}
	case n < 2048 && strings.Contains(text, "://") && !strings.ContainsAny(text, " \n"):
		return "url", t.HostClass(ParseTarget(text).Host)
	case n <= 15 && text[0] >= '0' && text[0] <= '9' && strings.Count(text, ".") == 3:
		if a, ok := parseAddr(text); ok {
			return "ip", t.HostClass(a.String())
		}
	case n >= 64 && all(text, "0123456789abcdefABCDEF"):
		return "hex", ""
	case n >= 64 && encodedLike(text):
		return "base64", ""
	}
	return "", ""
}

func hasToken(text string) bool {
	for _, p := range tokenPrefixes {
		if strings.HasPrefix(text, p.prefix) && len(text) >= p.least && len(text) < 256 && !strings.ContainsAny(text, " \n*.") {
			return true
		}
	}
	return false
}

func all(s, set string) bool {
	for i := range len(s) {
		if strings.IndexByte(set, s[i]) < 0 {
			return false
		}
	}
	return true
}

const base64Set = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\n"

// encodedLike tells base64 from words and tables of characters: it mixes
// cases and digits, and its entropy is high.
func encodedLike(s string) bool {
	return all(s, base64Set) && strings.ContainsAny(s, "0123456789") && strings.ToUpper(s) != s && strings.ToLower(s) != s && entropy(s) > 4.3 && !strings.Contains(s, "abcdefghij")
}

func entropy(s string) float64 {
	var count [256]int
	for _, c := range []byte(s) {
		count[c]++
	}
	e := 0.0
	for _, c := range count {
		if c > 0 {
			p := float64(c) / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	return e
}
