package transfer

import (
	"path"
	"regexp"
	"strings"
)

// Ignore is what .gitignore files say. The zero value ignores nothing.
type Ignore struct {
	rules map[string][]rule // by the folder of the file
}

type rule struct {
	match   *regexp.Regexp // of a path below the folder
	keep    bool           // "!": not ignored after all
	dirOnly bool
}

// Add takes in the .gitignore of a folder; "." is the top.
func (g *Ignore) Add(dir, text string) {
	if g.rules == nil {
		g.rules = map[string][]rule{}
	}
	for line := range strings.Lines(text) {
		if r, ok := parseRule(strings.TrimRight(line, "\r\n")); ok {
			g.rules[dir] = append(g.rules[dir], r)
		}
	}
}

// parseRule reads one line.
func parseRule(line string) (r rule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.keep, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, strings.TrimSuffix(line, "/")
	}
	if line == "" {
		return r, false
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	expr := "^"
	if !anchored {
		expr += "(?:.*/)?"
	}
	match, err := regexp.Compile(expr + globExpr(line) + "$")
	r.match = match
	return r, err == nil
}

// globExpr is a pattern of git's as a regular expression.
func globExpr(p string) string {
	var b strings.Builder
	b.WriteString("(?s:")
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case strings.HasPrefix(p[i:], "**/") && (i == 0 || p[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += 2
		case p[i:] == "**" && i > 0 && p[i-1] == '/':
			b.WriteString(".+")
			i++
		case c == '*':
			for i+1 < len(p) && p[i+1] == '*' {
				i++
			}
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[':
			class, n := classExpr(p[i:])
			b.WriteString(class)
			i += n - 1
		case c == '\\' && i+1 < len(p):
			i++
			b.WriteString(regexp.QuoteMeta(latin(p[i : i+1])))
		default:
			b.WriteString(regexp.QuoteMeta(latin(p[i : i+1])))
		}
	}
	b.WriteString(")")
	return b.String()
}

// latin makes a character of each byte: git's patterns know bytes alone.
func latin(s string) string {
	r := make([]rune, len(s))
	for i := range len(s) {
		r[i] = rune(s[i])
	}
	return string(r)
}

// classExpr reads a class such as [a-z] or [!0-9], and says how long it is.
func classExpr(p string) (string, int) {
	end := 1
	if end < len(p) && (p[end] == '!' || p[end] == '^') {
		end++
	}
	if end < len(p) && p[end] == ']' {
		end++
	}
	for end < len(p) && p[end] != ']' {
		end++
	}
	if end >= len(p) {
		return `[^\x00-\x{10ffff}]`, len(p) // without an end it matches nothing
	}
	inner, not := p[1:end], ""
	if inner != "" && (inner[0] == '!' || inner[0] == '^') {
		not, inner = "^/", inner[1:]
	}
	inner = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `&`, `\&`).Replace(inner)
	return "[" + not + latin(inner) + "]", end + 1
}

// Match reports whether a path is ignored by itself: who walks a tree leaves out
// what is below an ignored folder, since git does not look into it.
func (g *Ignore) Match(name string, dir bool) bool {
	// The deepest file that says something decides, and in it the last line.
	for at := path.Dir(name); ; at = path.Dir(at) {
		rel := strings.TrimPrefix(name, at+"/")
		list := g.rules[at]
		for i := len(list) - 1; i >= 0; i-- {
			if (dir || !list[i].dirOnly) && list[i].match.MatchString(latin(rel)) {
				return !list[i].keep
			}
		}
		if at == "." || at == "/" {
			return false
		}
	}
}
