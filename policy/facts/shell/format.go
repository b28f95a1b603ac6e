package shell

import (
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// format is printf.
func (w *walker) format(c *invocation) (text, bool) {
	args := c.args()
	if len(args) > 0 && args[0].t.is("--") {
		args = args[1:]
	}
	if len(args) == 0 {
		return text{}, true
	}
	var from []string
	dims := make([][]string, len(args))
	for i, f := range args {
		dims[i] = f.t.all()
		from = origins(from, f.t.from)
	}
	var alts []string
	for _, words := range combinations(dims) {
		s, ok := formatText(words[0], words[1:])
		if !ok {
			s = hole
		}
		alts = with(alts, bound(s))
	}
	return text{alts, from}, true
}

// formatText is printf on strings, which may have holes. The format is used
// again until the arguments are used up.
func formatText(format string, args []string) (string, bool) {
	if strings.Contains(format, hole) {
		return "", false
	}
	format = strings.ReplaceAll(format, unset, "")
	var b strings.Builder
	for {
		before := len(args)
		for i := 0; i < len(format); {
			switch {
			case format[i] == '\\' && i+1 < len(format):
				var e strings.Builder
				n := ansiEscape(&e, format[i+1:], false)
				b.WriteString(clean(e.String()))
				i += 1 + n
			case format[i] == '%' && i+1 < len(format):
				n := verb(&b, format[i:], &args)
				if n == 0 {
					return "", false
				}
				i += n
			default:
				b.WriteByte(format[i])
				i++
			}
		}
		if len(args) == 0 || len(args) == before || b.Len() > facts.MaxFolded {
			return b.String(), true
		}
	}
}

// verb prints one conversion and returns its length in the format.
func verb(b *strings.Builder, format string, args *[]string) int {
	if format[1] == '%' {
		b.WriteByte('%')
		return 2
	}
	n := 1 + strings.IndexFunc(format[1:], func(r rune) bool { return !strings.ContainsRune("-+ #0123456789.*'", r) })
	if n == 0 {
		return 0
	}
	spec, c := format[1:n], format[n]
	arg := ""
	if before, after, star := strings.Cut(spec, "*"); star {
		spec = before + next(args) + after
	}
	switch c {
	case 's', 'b', 'q':
		if arg = next(args); c == 'b' {
			arg = ansiC(arg, true)
		}
	case 'c':
		arg = next(args)
		arg = arg[:min(1, len(arg))]
	case 'd', 'i', 'u', 'x', 'X', 'o':
		arg = integer(next(args), c)
	default:
		next(args)
		b.WriteString(hole)
		return n + 1
	}
	b.WriteString(padded(arg, spec, c))
	return n + 1
}

func next(args *[]string) string {
	if len(*args) == 0 {
		return ""
	}
	s := (*args)[0]
	*args = (*args)[1:]
	return s
}

// integer prints a numeric argument, where 'c is the code of a character.
func integer(s string, verb byte) string {
	if !known(s) {
		return hole
	}
	n, ok := parseInt(s)
	if !ok {
		if len(s) < 2 || s[0] != '\'' && s[0] != '"' {
			if s == "" {
				return "0"
			}
			return hole
		}
		n = int64([]rune(s[1:])[0])
	}
	switch verb {
	case 'x':
		return strconv.FormatUint(uint64(n), 16)
	case 'X':
		return strings.ToUpper(strconv.FormatUint(uint64(n), 16))
	case 'o':
		return strconv.FormatUint(uint64(n), 8)
	}
	return strconv.FormatInt(n, 10)
}

// maxWidth bounds padding.
const maxWidth = 4096

// padded applies width and precision.
func padded(s, spec string, verb byte) string {
	left := strings.Contains(spec, "-")
	zero := strings.HasPrefix(strings.TrimLeft(spec, "-+ #'"), "0")
	width, precision, limited := strings.Cut(strings.TrimLeft(spec, "-+ #0'"), ".")
	if p, _ := strconv.Atoi(precision); limited && strings.IndexByte("sbcq", verb) >= 0 && p < len(s) {
		if !known(s) && p > 0 {
			return hole
		}
		s = s[:max(p, 0)]
	} else if limited && p > len(s) && p < maxWidth && verb != 's' {
		s = strings.Repeat("0", p-len(s)) + s
	}
	n, _ := strconv.Atoi(width)
	if n <= len(s) || n > maxWidth {
		return s
	}
	pad := strings.Repeat(" ", n-len(s))
	switch {
	case left:
		return s + pad
	case zero && verb != 's':
		return strings.Repeat("0", n-len(s)) + s
	}
	return pad + s
}
