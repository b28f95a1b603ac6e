package shell

import (
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// specials are filters that need more than their words: streams, files, or the
// shell's state.
var specials = map[string]func(*walker, *invocation) (text, bool){}

func init() { //nolint:gochecknoinits // the functions refer to the table
	specials["echo"] = (*walker).echo
	specials["printf"] = (*walker).format
	specials["sed"] = (*walker).sed
	specials["gsed"] = (*walker).sed
	specials["tee"] = (*walker).tee
	specials["cp"] = (*walker).copyFile
	specials["mv"] = (*walker).copyFile
	specials["ln"] = (*walker).copyFile
	specials["install"] = (*walker).copyFile
	specials["dd"] = (*walker).dd
	specials["curl"] = (*walker).download
	specials["wget"] = (*walker).download
	specials["pwd"] = (*walker).pwd
	specials["which"] = (*walker).whichProgram
	specials["type"] = (*walker).whichProgram
	specials["printenv"] = (*walker).printenv
	specials["busybox"] = (*walker).applet
	specials["toybox"] = (*walker).applet
	specials["xargs"] = (*walker).xargs
	for _, name := range []string{"env", "sudo", "nohup", "nice", "time", "stdbuf", "setsid", "command", "builtin", "doas"} {
		specials[name] = (*walker).wrapped
	}
}

// echo joins its words. Its options are those of bash.
func (w *walker) echo(c *invocation) (text, bool) {
	args, newline, escapes := c.args(), true, false
	for len(args) > 0 {
		s, ok := args[0].t.one()
		if !ok || len(s) < 2 || s[0] != '-' || strings.Trim(s[1:], "neE") != "" {
			break
		}
		newline = newline && !strings.Contains(s, "n")
		escapes = escapes || strings.Contains(s, "e")
		args = args[1:]
	}
	var t text
	single := true
	words := make([]string, len(args))
	for i, f := range args {
		words[i] = f.t.all()[0]
		single = single && len(f.t.all()) == 1
		t.from = origins(t.from, f.t.from)
	}
	if single {
		t.alts = []string{bound(strings.Join(words, " "))}
	} else {
		for i, f := range args {
			if i > 0 {
				t = concat(t, lit(" "))
			}
			t = concat(t, f.t)
		}
	}
	if escapes {
		t = t.each(func(s string) (string, bool) { return ansiC(s, true), true })
	}
	if newline {
		t = concat(t, lit("\n"))
	}
	return t, true
}

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
	if strings.Contains(spec, "*") {
		spec = strings.Replace(spec, "*", next(args), 1)
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

// tee writes what it reads, and prints it.
func (w *walker) tee(c *invocation) (text, bool) {
	t, appending := w.in.rest(), false
	for _, f := range c.args() {
		if s, _ := f.t.guess(); s == "-a" || s == "--append" {
			appending = true
		}
	}
	for _, f := range operands(c.args()) {
		w.store(f.t, t, appending)
	}
	return t, true
}

// copyFile gives a file that the script wrote, or a program, another name.
func (w *walker) copyFile(c *invocation) (text, bool) {
	ops := operands(c.args())
	if len(ops) < 2 {
		return text{}, true
	}
	src, dst := ops[0].t, ops[len(ops)-1].t
	from, ok := src.guess()
	to, ok2 := dst.guess()
	if !ok || !ok2 {
		return text{}, true
	}
	if strings.HasSuffix(to, "/") || to == "." {
		to += "/" + base(from)
	}
	if t, known := w.load(src); known {
		w.store(lit(to), t, false)
	} else if _, name, known := w.tables.Program(from); known && name != "" {
		w.renamed[w.absolute(to)] = from
	}
	return text{}, true
}

// dd copies standard input to a file.
func (w *walker) dd(c *invocation) (text, bool) {
	in, out := w.in.rest(), text{}
	for _, f := range c.args() {
		s, ok := f.t.guess()
		if name, is := strings.CutPrefix(s, "if="); is && ok {
			in = w.openFile(lit(name)).t
		}
		if name, is := strings.CutPrefix(s, "of="); is && ok {
			out = lit(name)
		}
	}
	if out.empty() {
		return in, true
	}
	w.store(out, in, false)
	return text{}, true
}

// download keeps what curl and wget save, as text that comes from there.
func (w *walker) download(c *invocation) (text, bool) {
	v := text{alts: []string{hole}}
	file, url := text{}, ""
	args := c.args()
	name, _ := c.argv[0].t.guess()
	curl := base(name) == "curl"
	remote := !curl
	for i, f := range args {
		s, _ := f.t.guess()
		long, value, isLong := strings.Cut(s, "=")
		switch {
		case isLong && (long == "--output" || long == "--output-document"):
			file = lit(value)
		case i+1 < len(args) && (s == "--output" || s == "--output-document"):
			file = args[i+1].t
		case outputFlag(s, curl) > 0:
			if at := outputFlag(s, curl); at+1 < len(s) {
				file = lit(s[at+1:])
			} else if i+1 < len(args) {
				file = args[i+1].t
			}
		case curl && (s == "--remote-name" || len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.Contains(s, "O")):
			remote = true
		case len(s) > 0 && s[0] != '-' && (strings.Contains(s, "://") || url == "" && strings.Contains(s, ".")):
			url = s
		}
	}
	from := []string{"net"}
	if url != "" {
		from = append(from, "net:"+facts.ParseTarget(url).Host)
	}
	if file.empty() && remote && url != "" {
		file = lit(base(strings.SplitN(url, "?", 2)[0]))
	}
	v = v.tainted(from...)
	if !file.empty() && !file.is("-") && !file.is("/dev/stdout") {
		w.store(file, v, false)
		return text{}, true
	}
	return v, true
}

// outputFlag finds the flag that takes the file in a bundle of short ones; 0
// where it is not there.
func outputFlag(s string, curl bool) int {
	if len(s) < 2 || s[0] != '-' || s[1] == '-' {
		return 0
	}
	if curl {
		return max(strings.IndexByte(s, 'o'), 0)
	}
	return max(strings.IndexByte(s, 'O'), 0)
}

func (w *walker) pwd(*invocation) (text, bool) { return concat(w.cwd(), lit("\n")), true }

// whichProgram prints the path of a program: its name is near enough.
func (w *walker) whichProgram(c *invocation) (text, bool) {
	ops := operands(c.args())
	if len(ops) == 0 {
		return text{}, false
	}
	return concat(ops[0].t, lit("\n")), true
}

func (w *walker) printenv(c *invocation) (text, bool) {
	if ops := operands(c.args()); len(ops) == 1 {
		if name, ok := ops[0].t.one(); ok && name != "" {
			t, _ := w.lookup(name, c.pos)
			return concat(t, lit("\n")), true
		}
	}
	return opaque("env"), true
}

func (w *walker) applet(c *invocation) (text, bool) {
	if len(c.args()) == 0 {
		return text{}, false
	}
	each := *c
	each.argv = c.args()
	return w.filter(&each)
}

// wrapped is what the command behind a wrapper prints.
func (w *walker) wrapped(c *invocation) (text, bool) {
	name, _ := c.argv[0].t.guess()
	p, _, _ := w.tables.Program(name)
	words := make([]string, len(c.args()))
	for i, f := range c.args() {
		words[i], _ = f.t.guess()
	}
	rest := skipOptions(p, words)
	if len(rest) == 0 || len(rest) == len(c.argv) {
		return text{}, false
	}
	each := *c
	each.argv = c.args()[len(words)-len(rest):]
	return w.filter(&each)
}

// xargs prints what its command prints for the words that it reads.
func (w *walker) xargs(c *invocation) (text, bool) {
	in := w.in.rest()
	s, ok := in.one()
	if !ok || w.in.kind == "" {
		return opaque(in.from...), true
	}
	rest := c.args()
	mark := ""
	for len(rest) > 0 {
		f, _ := rest[0].t.guess()
		if len(f) < 2 || f[0] != '-' {
			break
		}
		takes := len(f) == 2 && strings.Contains("InLPsdE", f[1:])
		if f[1] == 'I' {
			mark = f[2:]
			if takes && len(rest) > 1 {
				mark, _ = rest[1].t.guess()
			}
		}
		if takes && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	each := *c
	each.argv = append(fields{}, rest...)
	if len(rest) == 0 {
		each.argv = fields{{t: lit("echo")}}
	}
	if mark != "" {
		return opaque(in.from...), true
	}
	for _, word := range strings.Fields(s) {
		each.argv = append(each.argv, field{t: text{[]string{word}, in.from}})
	}
	return w.filter(&each)
}
