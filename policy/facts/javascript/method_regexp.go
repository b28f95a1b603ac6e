package javascript

import (
	"regexp"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// goRegexp gives a regular expression in Go's words, where it has them, and whether it is global.
func goRegexp(v *val) (re *regexp.Regexp, global, ok bool) {
	if v.ref == nil || v.ref.role != regex {
		return nil, false, false
	}
	src, okS := v.ref.items[0].one()
	flags, okF := v.ref.items[1].one()
	if !okS || !okF || len(src) > 512 {
		return nil, false, false
	}
	set := ""
	for _, f := range flags {
		switch f {
		case 'i', 'm', 's':
			set += string(f)
		}
	}
	if set != "" {
		src = "(?" + set + ")" + src
	}
	src = strings.ReplaceAll(src, `\/`, "/")
	src = strings.ReplaceAll(src, "(?<", "(?P<")
	re, err := regexp.Compile(src)
	return re, strings.Contains(flags, "g"), err == nil
}

func (w *walk) split(obj *val, s *site) *val {
	t, ok := obj.one()
	if !ok {
		return &val{ref: &object{role: array, open: true, from: merge(obj.From, s.origins())}}
	}
	var parts []string
	sep := s.arg(0)
	switch {
	case sep.isNone():
		parts = []string{t}
	case sep.isText() && len(sep.Alts) == 1:
		parts = strings.Split(t, sep.Alts[0])
	default:
		re, _, ok := goRegexp(sep)
		if !ok {
			return &val{ref: &object{role: array, open: true, from: obj.From}}
		}
		parts = re.Split(t, -1)
	}
	o := &object{role: array, from: obj.From}
	for i, p := range parts {
		if i == maxItems {
			o.open = true
			break
		}
		o.items = append(o.items, text(p).with(obj.From))
	}
	return &val{ref: o}
}

// replace is s.replace(what, with), where with may be a function.
func (w *walk) replace(obj *val, all bool, s *site) *val {
	from := merge(obj.From, s.origins())
	t, ok := obj.one()
	if !ok {
		w.handOver(s, from)
		return opaque(from)
	}
	what, with := s.arg(0), s.arg(1)
	var spans [][]int
	if sub, ok := what.one(); ok && what.isText() {
		spans = occurrences(t, sub, all)
	} else {
		re, global, ok := goRegexp(what)
		if !ok {
			w.handOver(s, from)
			return opaque(from)
		}
		n := 1
		if global || all {
			n = 2048
		}
		spans = re.FindAllStringSubmatchIndex(t, n)
	}
	out, last := text(""), 0
	if len(spans) > maxEach*4 {
		return opaque(from)
	}
	for _, sp := range spans {
		out = plus(out, text(t[last:sp[0]]))
		out = plus(out, w.replacement(t, sp, with, s))
		last = sp[1]
	}
	return plus(out, text(t[last:])).with(from)
}

func occurrences(t, sub string, all bool) [][]int {
	var spans [][]int
	for at := 0; at <= len(t); {
		i := strings.Index(t[at:], sub)
		if i < 0 {
			break
		}
		spans = append(spans, []int{at + i, at + i + len(sub)})
		if !all || sub == "" {
			break
		}
		at += i + len(sub)
	}
	return spans
}

// replacement is what stands for one match.
func (w *walk) replacement(t string, sp []int, with *val, s *site) *val {
	group := func(i int) string {
		if 2*i+1 < len(sp) && sp[2*i] >= 0 {
			return t[sp[2*i]:sp[2*i+1]]
		}
		return ""
	}
	if with.isFunc() || with.name != "" {
		args := make([]*val, 0, len(sp)/2)
		for i := range len(sp) / 2 {
			args = append(args, text(group(i)))
		}
		args = append(args, numeric(float64(sp[0])), text(t))
		return plus(text(""), w.back(with, args, s.n))
	}
	return mapText(with, func(r string) (string, bool) {
		if !strings.Contains(r, "$") {
			return r, true
		}
		var b strings.Builder
		for i := 0; i < len(r); i++ {
			if r[i] != '$' || i+1 == len(r) {
				b.WriteByte(r[i])
				continue
			}
			i++
			switch c := r[i]; {
			case c == '$':
				b.WriteByte('$')
			case c == '&':
				b.WriteString(group(0))
			case c >= '1' && c <= '9':
				b.WriteString(group(int(c - '0')))
			default:
				return "", false
			}
		}
		return b.String(), b.Len() <= facts.MaxFolded
	})
}

func match(obj *val, all bool, s *site) *val {
	t, ok := obj.one()
	re, global, okRe := goRegexp(s.arg(0))
	if !ok || !okRe {
		return &val{ref: &object{role: array, open: true, from: merge(obj.From, s.origins())}}
	}
	o := &object{role: array, from: obj.From}
	if global && !all {
		for _, m := range re.FindAllString(t, maxItems) {
			o.items = append(o.items, text(m).with(obj.From))
		}
		return &val{ref: o}
	}
	if all {
		for _, m := range re.FindAllStringSubmatch(t, maxItems) {
			o.items = append(o.items, texts(m, obj.From))
		}
		return &val{ref: o}
	}
	m := re.FindStringSubmatch(t)
	if m == nil {
		return null
	}
	return texts(m, obj.From)
}

func texts(ss []string, from []string) *val {
	o := &object{role: array, from: from}
	for _, t := range ss {
		o.items = append(o.items, text(t).with(from))
	}
	return &val{ref: o}
}
