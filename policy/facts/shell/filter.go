package shell

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// filter is a program whose output is computed from its arguments and its
// input.
type filter struct {
	run func(o options, in string) (string, bool)
	// values are the short options that take a value.
	values string
	// reads: it reads the files that its operands behind the first skip name,
	// or else standard input.
	reads bool
	skip  int
	// marks: it only moves text about, so that holes may stay in it.
	marks bool
	// decodes: what it prints was encoded.
	decodes func(options) bool
}

// options are the arguments of a filter taken apart.
type options struct {
	flags    map[string]string
	operands []string
}

func (o options) has(flag string) bool { _, ok := o.flags[flag]; return ok }

// longOptions are the letters of long options.
var longOptions = map[string]string{
	"decode": "d", "wrap": "w", "delimiter": "d", "fields": "f", "characters": "c", "bytes": "c",
	"lines": "n", "expression": "e", "quiet": "n", "silent": "n", "delete": "d", "complement": "c",
	"squeeze-repeats": "s", "reverse": "r", "unique": "u", "regexp-extended": "E", "ignore-garbage": "i",
	"revert": "r", "plain": "p", "ps": "p", "postscript": "p", "decompress": "d", "uncompress": "d",
	"stdout": "c", "to-stdout": "c", "field-separator": "F", "only-matching": "o", "width": "w",
	"base64": "base64", "base64url": "base64url", "base32": "base32", "base16": "base16", "in-place": "i",
}

// parseOptions takes arguments apart.
func parseOptions(args []string, values string) options {
	o := options{flags: map[string]string{}}
	set := func(name, value string) { o.flags[name] = value }
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			o.operands = append(o.operands, args[i+1:]...)
			return o
		case strings.HasPrefix(a, "--"):
			name, value, given := strings.Cut(a[2:], "=")
			if short, ok := longOptions[name]; ok {
				name = short
			}
			if !given && len(name) == 1 && strings.Contains(values, name) && i+1 < len(args) {
				i++
				value = args[i]
			}
			set(name, value)
		case len(a) > 1 && a[0] == '-':
			i = o.short(args, i, values, set)
		default:
			o.operands = append(o.operands, a)
		}
	}
	return o
}

// short reads a bundle of short options and returns the last index it used.
func (o options) short(args []string, i int, values string, set func(string, string)) int {
	a := args[i]
	if digits(a[1:], len(a), 10) == len(a)-1 { // head -5
		set("n", a[1:])
		return i
	}
	for j := 1; j < len(a); j++ {
		name := a[j : j+1]
		if !strings.Contains(values, name) {
			set(name, "")
			continue
		}
		if j+1 < len(a) {
			set(name, a[j+1:])
		} else if i+1 < len(args) {
			i++
			set(name, args[i])
		}
		break
	}
	return i
}

// onlyAsks reports grep -q, which answers by its status and prints nothing. The
// option comes first: behind another one it may be that one's value.
func (c *invocation) onlyAsks(name string) bool {
	if !strings.HasSuffix(name, "grep") || len(c.args()) == 0 {
		return false
	}
	first, _ := c.args()[0].t.one()
	bundle, _, quiet := strings.Cut(strings.TrimPrefix(first, "-"), "q")
	return first == "--quiet" || first == "--silent" || quiet && strings.HasPrefix(first, "-") && strings.Trim(bundle, "EFGPivwxnsohcrR") == ""
}

// filter computes what a command prints, where it is one of the filters; all
// it does otherwise has been reported already.
func (w *walker) filter(c *invocation) (text, bool) {
	name, _ := c.argv[0].t.guess()
	name = base(name)
	if special, ok := w.x.specials[name]; ok {
		out, ok := special(w, c)
		if name == "dd" {
			out = w.ofItself(c, out)
		}
		return out, ok
	}
	f, ok := filters[name]
	if !ok {
		return text{}, false
	}
	if c.onlyAsks(name) {
		return text{}, true
	}
	var from []string
	dims := make([][]string, 0, len(c.argv))
	for _, arg := range c.args() {
		t := arg.t
		if name == "realpath" || name == "readlink" {
			t = w.sheltered(t)
		}
		dims = append(dims, t.all())
		if _, own := w.load(t); own && f.reads && !t.known() {
			continue // the name of a file of the script's own says nothing of what is in it
		}
		from = origins(from, t.from)
	}
	out := text{}
	for i, args := range combinations(dims) {
		o := w.filterOnce(&f, parseOptions(args, f.values), c.args())
		if i == 0 {
			out = o
		} else {
			out = union(out, o)
		}
	}
	out = out.tainted(from...)
	if f.reads {
		out = w.ofItself(c, out)
	}
	out = onTheWay(name, c.args(), out)
	if name == "dirname" {
		out.from = notSelf(out.from)
		out = w.sheltered(out)
	}
	return out, true
}

// ofItself says of what a program prints that it stands in the script, where it
// is given that to read.
func (w *walker) ofItself(c *invocation, out text) text {
	if slices.ContainsFunc(c.args(), func(arg field) bool { return w.isSelf(arg.t) }) {
		return out.tainted(facts.FromOwnText)
	}
	return out
}

// idle reports a filter whose output nobody reads, and which does nothing else.
func (w *walker) idle(c *invocation) bool {
	if w.capture > 0 || len(c.rd.list) > 0 {
		return false
	}
	name, _ := c.argv[0].t.guess()
	_, pure := filters[base(name)]
	return pure || name == "echo" || name == "printf"
}

// filterOnce runs a filter on one choice of its arguments.
func (w *walker) filterOnce(f *filter, o options, args fields) text {
	in := text{}
	if f.reads {
		in = w.input(o.operands[min(f.skip, len(o.operands)):], args)
	}
	if !w.heavy(in) {
		return opaque(in.from...)
	}
	var alts []string
	for _, s := range in.all() {
		if !f.marks {
			s = strings.ReplaceAll(s, unset, "")
			if !known(s) || slices.ContainsFunc(o.operands, func(a string) bool { return !known(a) }) {
				alts = with(alts, hole)
				continue
			}
		}
		if f.run == nil {
			alts = with(alts, hole)
			continue
		}
		r, ok := f.run(o, s)
		if !ok {
			r = hole
		} else if !f.marks {
			r = clean(r)
		}
		alts = with(alts, bound(r))
	}
	from := in.from
	if f.decodes != nil && f.decodes(o) {
		from = origins(from, []string{"decoded"})
	}
	return text{alts, from}
}

// input is what a filter reads: files that the script wrote, or its standard
// input. The words that it is given say where the files' names come from.
func (w *walker) input(files []string, args fields) text {
	if len(files) == 0 {
		return w.in.rest()
	}
	var t text
	for _, name := range files {
		switch name {
		case "-", "/dev/stdin":
			t = concat(t, w.in.rest())
		default:
			t = concat(t, w.openFile(text{[]string{name}, namedBy(name, args)}).t)
		}
	}
	return t
}

// namedBy is where a name comes from that has variables of the environment in
// it, if one word alone may be that.
func namedBy(name string, args fields) []string {
	var from []string
	n := 0
	for _, f := range args {
		if strings.Contains(name, unset) && slices.Contains(f.t.alts, name) {
			from = f.t.from
			n++
		}
	}
	if n != 1 {
		return nil
	}
	return from
}

// combinations gives every choice of one out of each dimension, where they are
// few; else the one with holes in place of what has several.
func combinations(dims [][]string) [][]string {
	n := 1
	for _, d := range dims {
		if n *= len(d); n > facts.MaxAlts {
			one := make([]string, len(dims))
			for i, d := range dims {
				one[i] = hole
				if len(d) == 1 {
					one[i] = d[0]
				}
			}
			return [][]string{one}
		}
	}
	out := [][]string{make([]string, 0, len(dims))}
	for _, d := range dims {
		if len(d) == 1 {
			for i := range out {
				out[i] = append(out[i], d[0])
			}
			continue
		}
		var next [][]string
		for _, head := range out {
			for _, s := range d {
				next = append(next, append(slices.Clone(head), s))
			}
		}
		out = next
	}
	return out
}
