package shell

import "strings"

// readOptions are the options of read that take a value.
const readOptions = "adinNptu"

// read gives variables the next line of standard input.
func (w *walker) read(c *invocation) text {
	w.report(c)
	array, names, delimiter := "", []string{}, "\n"
	args := c.args()
	for i := 0; i < len(args); i++ {
		s, ok := args[i].t.guess()
		if !ok || len(s) < 2 || s[0] != '-' {
			names = append(names, s)
			continue
		}
		j := strings.IndexAny(s[1:], readOptions) + 1
		if j == 0 {
			continue
		}
		value := s[j+1:]
		if value == "" && i+1 < len(args) {
			i++
			value, _ = args[i].t.guess()
		}
		switch s[j] {
		case 'a':
			array = value
		case 'd':
			delimiter = value
		case 'u':
			if file, ok := w.fds[value]; ok {
				in := w.in
				w.in = w.openFile(file)
				defer func() { w.in = in }()
			}
		}
	}
	line, status := w.in.until(delimiter)
	w.status = status
	switch {
	case array != "":
		var list []text
		list = append(list, w.splitText(line)...)
		w.put(array, &variable{isArray: true, list: list})
	case len(names) == 0:
		w.assign("REPLY", line)
	default:
		w.readInto(names, line)
	}
	return text{}
}

// until reads up to a delimiter of its own.
func (s *stream) until(delimiter string) (text, tri) {
	if delimiter == "\n" {
		return s.line()
	}
	t := s.rest()
	if s.kind == "" {
		return t, unsure
	}
	if delimiter != "" {
		t = t.each(func(v string) (string, bool) {
			v, _, _ = strings.Cut(v, delimiter)
			return v, true
		})
	}
	if t.empty() {
		return t, fails
	}
	s.t, s.used = text{}, true
	return t.trimNewlines(), unsure
}

// splitText is the fields of a text, where it has one alternative.
func (w *walker) splitText(t text) []text {
	s, ok := t.one()
	if !ok {
		return []text{t}
	}
	words, _, _ := split(s, w.separators())
	out := make([]text, 0, len(words))
	for _, word := range words {
		out = append(out, text{[]string{word}, t.from})
	}
	return out
}

// readInto gives each name a word, and the last the rest of the line.
func (w *walker) readInto(names []string, line text) {
	ifs := w.separators()
	for i, name := range names {
		if name == "" {
			continue
		}
		if i == len(names)-1 {
			w.assign(name, line.each(func(s string) (string, bool) { return strings.Trim(s, blank(ifs)), true }))
			return
		}
		first, rest := line, line
		if !line.has(func(s string) bool { return !known(s) }) {
			first = line.each(func(s string) (string, bool) { a, _ := cutWord(s, ifs); return a, true })
			rest = line.each(func(s string) (string, bool) { _, b := cutWord(s, ifs); return b, true })
		}
		w.assign(name, first)
		line = rest
	}
}

func blank(ifs string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\n", r) {
			return r
		}
		return -1
	}, ifs)
}

func cutWord(s, ifs string) (word, rest string) {
	s = strings.TrimLeft(s, blank(ifs))
	i := strings.IndexAny(s, ifs)
	if i < 0 || ifs == "" {
		return s, ""
	}
	word, rest = s[:i], strings.TrimLeft(s[i:], blank(ifs))
	if rest != "" && strings.IndexByte(ifs, rest[0]) >= 0 {
		rest = rest[1:]
	}
	return word, rest
}

// mapfile reads lines into an array.
func (w *walker) mapfile(c *invocation) text {
	w.report(c)
	name := "MAPFILE"
	if ops := c.args(); len(ops) > 0 {
		if s, ok := ops[len(ops)-1].t.one(); ok && !strings.HasPrefix(s, "-") {
			name = s
		}
	}
	v := &variable{isArray: true}
	t := w.in.rest()
	if s, ok := t.one(); ok && w.in.kind != "" {
		for _, line := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
			v.list = append(v.list, text{[]string{line}, t.from})
		}
	} else {
		v.list = []text{opaque(t.from...)}
	}
	w.put(name, v)
	return text{}
}

// printf prints, or with -v assigns.
func (w *walker) printf(c *invocation) text {
	args := c.args()
	if len(args) >= 3 && args[0].t.is("-v") {
		name, ok := args[1].t.one()
		each := *c
		each.argv = append(fields{c.argv[0]}, args[2:]...)
		out, known := w.filter(&each)
		if !known {
			out = opaque()
		}
		if ok {
			w.assign(strings.TrimSuffix(name, "[0]"), out)
		}
		w.status = succeeds
		return text{}
	}
	return w.external(c)
}

// getopts sets its variable to one of the letters.
func (w *walker) getopts(c *invocation) text {
	args := c.args()
	if len(args) < 2 {
		return text{}
	}
	letters, ok := args[0].t.one()
	name, ok2 := args[1].t.one()
	if !ok || !ok2 {
		return text{}
	}
	var alts []string
	for _, r := range strings.ReplaceAll(letters, ":", "") + "?" {
		alts = with(alts, string(r))
	}
	w.assign(name, text{alts: alts})
	words, rest := w.st.args, w.st.rest.orOpaque()
	if len(args) > 2 {
		words = nil
		for _, f := range args[2:] {
			words = append(words, f.t)
		}
	}
	optarg := rest
	if given := optionValues(letters, words); len(given) > 0 {
		if optarg = anyOf(given); len(args) == 2 {
			optarg = union(optarg, rest)
		}
	}
	w.assign("OPTARG", optarg)
	return text{}
}

// optionValues are the words that options with a value have.
func optionValues(letters string, words []text) []text {
	var out []text
	for i, t := range words {
		s, ok := t.one()
		if !ok || len(s) < 2 || s[0] != '-' || !strings.Contains(letters, s[1:2]+":") {
			continue
		}
		if len(s) > 2 {
			out = append(out, text{[]string{s[2:]}, t.from})
		} else if i+1 < len(words) {
			out = append(out, words[i+1])
		}
	}
	return out
}

// orOpaque turns the empty text into one that is not known.
func (t text) orOpaque() text {
	if t.empty() {
		return opaque("argv")
	}
	return t
}
