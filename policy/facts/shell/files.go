package shell

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

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
