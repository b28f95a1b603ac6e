package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// sedCommand is one command of a sed script, as far as they are understood.
type sedCommand struct {
	from, to int // line numbers; 0 is any, -1 the last
	match    *regexp.Regexp
	verb     byte // s, y, p, d, q
	re       *regexp.Regexp
	with     string
	flags    string
	runes    map[rune]rune
}

var sedAddress = lazyregexp.New(`^(\d+|\$)(?:,(\d+|\$))?`)

// parseSed reads a sed script; false where it uses more than is understood.
func parseSed(script string, extended bool) ([]sedCommand, bool) {
	var out []sedCommand
	for s := strings.TrimLeft(script, " \t\n;"); s != ""; s = strings.TrimLeft(s, " \t\n;") {
		var c sedCommand
		var ok bool
		if m := sedAddress().FindStringSubmatch(s); m != nil {
			c.from = sedLine(m[1])
			c.to = c.from
			if m[2] != "" {
				c.to = sedLine(m[2])
			}
			s = s[len(m[0]):]
		} else if s[0] == '/' {
			var pat string
			if pat, s, ok = sedPart(s[1:], '/'); !ok {
				return nil, false
			}
			if c.match, ok = regex(pat, extended, false); !ok {
				return nil, false
			}
		}
		if s, ok = c.parseVerb(strings.TrimLeft(s, " \t"), extended); !ok || len(out) > 64 {
			return nil, false
		}
		out = append(out, c)
	}
	return out, true
}

func sedLine(s string) int {
	if s == "$" {
		return -1
	}
	n, _ := strconv.Atoi(s)
	return n
}

// sedPart cuts s at the next delimiter that is not escaped.
func sedPart(s string, delim byte) (part, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] != delim {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
			continue
		}
		if s[i] == delim {
			return b.String(), s[i+1:], true
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

func (c *sedCommand) parseVerb(s string, extended bool) (string, bool) {
	if s == "" {
		return "", false
	}
	c.verb = s[0]
	switch c.verb {
	case 'p', 'd', 'q':
		return s[1:], true
	case 's', 'y':
		if len(s) < 2 {
			return "", false
		}
		from, rest, ok := sedPart(s[2:], s[1])
		if !ok {
			return "", false
		}
		with, rest, ok := sedPart(rest, s[1])
		if !ok {
			return "", false
		}
		if c.verb == 'y' {
			return rest, c.setRunes(from, with)
		}
		n := len(rest) - len(strings.TrimLeft(rest, "gpiIeM0123456789"))
		c.flags, c.with = rest[:n], with
		c.re, ok = regex(from, extended, strings.ContainsAny(c.flags, "iI"))
		return rest[n:], ok
	}
	return "", false
}

// selects reports a command that leaves the letters of what it does not delete
// as they are, and adds none.
func (c *sedCommand) selects() bool {
	return c.verb != 'y' && !strings.ContainsAny(sedBack().ReplaceAllString(c.with, ""), sedLetters)
}

// sedBack is a part of the match in a replacement, or one character that is no
// letter.
var sedBack = lazyregexp.New(`&|\\\d`)

const sedLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (c *sedCommand) setRunes(from, to string) bool {
	a, b := []rune(ansiC(from, false)), []rune(ansiC(to, false))
	if len(a) != len(b) {
		return false
	}
	c.runes = map[rune]rune{}
	for i := range a {
		c.runes[a[i]] = b[i]
	}
	return true
}

func (c *sedCommand) applies(line string, n, last int) bool {
	if c.match != nil {
		return c.match.MatchString(line)
	}
	from, to := c.from, c.to
	if from == 0 {
		return true
	}
	if from < 0 {
		from = last
	}
	if to < 0 {
		to = last
	}
	return n >= from && n <= max(from, to)
}

// substituted is the line after s///.
func (c *sedCommand) substituted(line string) (string, bool) {
	which := 1
	if i := strings.IndexAny(c.flags, "123456789"); i >= 0 {
		which, _ = strconv.Atoi(c.flags[i : i+1])
	}
	global := strings.Contains(c.flags, "g")
	var b strings.Builder
	at, count := 0, 0
	for _, m := range c.re.FindAllStringSubmatchIndex(line, 4096) {
		count++
		if count < which || count > which && !global {
			continue
		}
		b.WriteString(line[at:m[0]])
		if !sedReplacement(&b, c.with, line, m) {
			return "", false
		}
		at = m[1]
	}
	b.WriteString(line[at:])
	return b.String(), true
}

func sedReplacement(b *strings.Builder, with, line string, m []int) bool {
	for i := 0; i < len(with); i++ {
		switch {
		case with[i] == '&':
			b.WriteString(line[m[0]:m[1]])
		case with[i] == '\\' && i+1 < len(with):
			i++
			switch d := with[i]; {
			case d >= '0' && d <= '9':
				g := 2 * int(d-'0')
				if g+1 >= len(m) {
					return false
				}
				if m[g] >= 0 {
					b.WriteString(line[m[g]:m[g+1]])
				}
			case strings.IndexByte("ULElu", d) >= 0:
				return false
			default:
				b.WriteString(ansiC(with[i-1:i+1], false))
				if r := ansiC(with[i-1:i+1], false); len(r) == 2 { // an escape of its own: \/ and the like
					s := b.String()
					b.Reset()
					b.WriteString(s[:len(s)-2] + string(d))
				}
			}
		default:
			b.WriteByte(with[i])
		}
	}
	return b.Len() <= 1<<20
}

// runSed gives what a script prints for a text, and the lines that its e flag
// would run.
func runSed(cmds []sedCommand, in string, silent bool) (out string, code []string, ok bool) {
	list := lines(in)
	var kept []string
	for i, line := range list {
		deleted, stop := false, false
		for j := range cmds {
			c := &cmds[j]
			if !c.applies(line, i+1, len(list)) {
				continue
			}
			before := line
			switch c.verb {
			case 's':
				if line, ok = c.substituted(line); !ok {
					return "", nil, false
				}
				if line != before && strings.Contains(c.flags, "e") {
					code = append(code, line)
				}
				if line != before && strings.Contains(c.flags, "p") {
					kept = append(kept, line)
				}
			case 'y':
				line = strings.Map(func(r rune) rune {
					if to, ok := c.runes[r]; ok {
						return to
					}
					return r
				}, line)
			case 'p':
				kept = append(kept, line)
			case 'd':
				deleted = true
			case 'q':
				stop = true
			}
			if deleted || stop {
				break
			}
		}
		if !deleted && !silent {
			kept = append(kept, line)
		}
		if stop {
			break
		}
	}
	return unlines(slices.Clone(kept), in), code, true
}

// sedExecutes finds the command e of GNU sed, which runs its argument.
var sedExecutes = lazyregexp.New(`(?m)(?:^|[;{\n])\s*(?:\d+|\$|/[^/]*/)?\s*e\s+([^;\n]+)$`)

// sed is computed on constants; what its e commands run is walked.
func (w *walker) sed(c *invocation) (text, bool) {
	args := make([]string, 0, len(c.argv))
	var from []string
	for _, f := range c.args() {
		s, ok := f.t.guess()
		if !ok {
			return opaque(f.t.from...), true
		}
		args = append(args, s)
		from = origins(from, f.t.from)
	}
	o := parseOptions(args, "ef")
	script := strings.Join(o.list, "\n")
	files := o.operands
	if len(o.list) == 0 && len(files) > 0 {
		script, files = files[0], files[1:]
	}
	for _, m := range sedExecutes().FindAllStringSubmatch(script, 16) {
		w.evalText("sed e", lit(m[1]), c.pos, false)
	}
	in := w.input(files, c.args())
	cmds, ok := parseSed(script, o.has("E") || o.has("r"))
	if !ok || slices.ContainsFunc(cmds, func(c sedCommand) bool { return !c.selects() }) {
		from = origins(from, []string{filtered})
	} else if slices.ContainsFunc(cmds, func(c sedCommand) bool { return c.verb == 'q' || c.verb == 'p' }) {
		from = origins(from, []string{facts.FromChosen})
	}
	if !ok || o.has("i") || o.has("f") {
		return opaque(origins(in.from, from)...), true
	}
	out := in.each(func(s string) (string, bool) {
		r, code, ok := runSed(cmds, s, o.has("n"))
		for _, line := range code {
			w.evalText("sed s///e", lit(line), c.pos, false)
		}
		return r, ok
	})
	if w.in.kind == "" && len(files) == 0 {
		return opaque(origins(in.from, from)...), true
	}
	return out.tainted(from...), true
}
