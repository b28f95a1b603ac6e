package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// translateSet expands a set of tr: ranges, classes, escapes.
func translateSet(s string) []rune {
	s = octals(s)
	var out []rune
	r := []rune(s)
	for i := 0; i < len(r); i++ {
		if r[i] == '[' && i+1 < len(r) && r[i+1] == ':' {
			if end := strings.Index(string(r[i:]), ":]"); end > 0 {
				name := string(r[i+2 : i+end])
				for c := rune(0); c < 128; c++ {
					if inClass(name, c) {
						out = append(out, c)
					}
				}
				i += end + 1
				continue
			}
		}
		if i+2 < len(r) && r[i+1] == '-' && r[i] <= r[i+2] && r[i+2]-r[i] < 1024 {
			for c := r[i]; c <= r[i+2]; c++ {
				out = append(out, c)
			}
			i += 2
			continue
		}
		out = append(out, r[i])
	}
	return out
}

// octals resolves the escapes of tr.
func octals(s string) string { return ansiC(s, false) }

func trFilter(o options, in string) (string, bool) {
	if len(o.operands) == 0 {
		return "", false
	}
	set1 := translateSet(o.operands[0])
	complement := o.has("c") || o.has("C")
	member := func(r rune) bool { return slices.Contains(set1, r) != complement }
	var set2 []rune
	if len(o.operands) > 1 {
		set2 = translateSet(o.operands[1])
	}
	var b strings.Builder
	last := rune(-1)
	for _, r := range in {
		inSet := member(r)
		switch {
		case o.has("d") && inSet:
			continue
		case !o.has("d") && inSet && len(set2) > 0:
			i := len(set2) - 1
			if !complement {
				i = min(slices.Index(set1, r), i)
			}
			r = set2[i]
		}
		if o.has("s") && r == last && (slices.Contains(set2, r) || set2 == nil && inSet) {
			continue
		}
		last = r
		b.WriteRune(r)
	}
	return b.String(), true
}

func cutFilter(o options, in string) (string, bool) {
	spec, byField := o.flags["f"]
	if !byField {
		if spec = o.flags["c"]; spec == "" {
			spec = o.flags["b"]
		}
	}
	keep, ok := ranges(spec)
	if !ok {
		return "", false
	}
	sep := "\t"
	if d, ok := o.flags["d"]; ok {
		sep = d
	}
	return eachLine(in, func(line string) string {
		if !byField {
			var b strings.Builder
			for i, r := range []rune(line) {
				if keep(i + 1) {
					b.WriteRune(r)
				}
			}
			return b.String()
		}
		if sep == "" || !strings.Contains(line, sep) {
			return line
		}
		var out []string
		for i, f := range strings.Split(line, sep) {
			if keep(i + 1) {
				out = append(out, f)
			}
		}
		return strings.Join(out, sep)
	}), true
}

// ranges reads a list such as 1,3-5,7-.
func ranges(spec string) (func(int) bool, bool) {
	type span struct{ from, to int }
	var spans []span
	for _, part := range strings.Split(spec, ",") {
		a, b, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(a)
		if a == "" && isRange {
			from, err = 1, nil
		}
		if err != nil {
			return nil, false
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(b); b == "" {
				to, err = 1<<30, nil
			}
		}
		if err != nil {
			return nil, false
		}
		spans = append(spans, span{from, to})
	}
	return func(i int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return i >= s.from && i <= s.to })
	}, true
}

// regex compiles a POSIX expression; basic ones have their signs escaped.
func regex(s string, extended, fold bool) (*regexp.Regexp, bool) {
	if len(s) > 1024 {
		return nil, false
	}
	if !extended {
		s = basicToExtended(s)
	}
	if fold {
		s = "(?i)" + s
	}
	re, err := regexp.Compile(s)
	return re, err == nil
}

func basicToExtended(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if strings.IndexByte("(){}+?|", s[i]) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case strings.IndexByte("(){}+?|", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '*' && (i == 0 || i == 1 && s[0] == '^'):
			b.WriteString(`\*`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func grepFilter(o options, in string) (string, bool) {
	pattern, ok := o.flags["e"]
	if !ok {
		if len(o.operands) == 0 {
			return "", false
		}
		pattern = o.operands[0]
	}
	if o.has("q") || o.has("c") || o.has("l") || o.has("n") || o.has("P") || o.has("A") || o.has("B") || o.has("C") {
		return "", false
	}
	if o.has("F") {
		pattern = regexp.QuoteMeta(pattern)
	}
	re, ok := regex(pattern, o.has("E") || o.has("F"), o.has("i"))
	if !ok {
		return "", false
	}
	var out []string
	for _, line := range lines(in) {
		switch {
		case o.has("o"):
			out = append(out, re.FindAllString(line, 256)...)
		case re.MatchString(line) != o.has("v"):
			out = append(out, line)
		}
	}
	return unlines(out, "\n"), true
}

// literalPrint is code that does nothing but print one literal.
var literalPrint = lazyregexp.New(`^\s*(?:print|puts|echo|console\.log|process\.stdout\.write)\s*\(?\s*(?:"([^"\\$#{}]*)"|'([^'\\]*)')\s*\)?\s*;?\s*$`)

// printed is what an interpreter prints, where its code is a single print.
func printed(o options, _ string) (string, bool) {
	for _, flag := range []string{"c", "e", "E", "r", "p"} {
		if code, ok := o.flags[flag]; ok {
			m := literalPrint().FindStringSubmatch(code)
			if m == nil {
				return "", false
			}
			return m[1] + m[2] + "\n", true
		}
	}
	return "", false
}

func exprFilter(o options, _ string) (string, bool) {
	a := o.operands
	switch {
	case len(a) == 2 && a[0] == "length":
		return strconv.Itoa(len(a[1])) + "\n", true
	case len(a) == 4 && a[0] == "substr":
		from, err := strconv.Atoi(a[2])
		n, err2 := strconv.Atoi(a[3])
		if err != nil || err2 != nil || from < 1 || n < 0 {
			return "", false
		}
		return cutRunes(a[1], from-1, n, true) + "\n", true
	case len(a) == 3:
		x, ok := parseInt(a[0])
		y, ok2 := parseInt(a[2])
		if !ok || !ok2 {
			return "", false
		}
		switch a[1] {
		case "+":
			return strconv.FormatInt(x+y, 10) + "\n", true
		case "-":
			return strconv.FormatInt(x-y, 10) + "\n", true
		case "*":
			return strconv.FormatInt(x*y, 10) + "\n", true
		}
	}
	return "", false
}
