package python

import (
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// formatSpec is format(v, spec) for the specs that text is built with.
func formatSpec(v *val, spec string) *val {
	if spec == "" || spec == "s" || spec == "d" {
		return toStr(v)
	}
	switch spec {
	case "x", "X", "o", "b", "c":
		return v.mapText(kStr, func(s string) (string, bool) {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return "", false
			}
			switch spec {
			case "c":
				return string(rune(n)), true
			case "X":
				return strings.ToUpper(strconv.FormatInt(n, 16)), true
			}
			return strconv.FormatInt(n, map[string]int{"x": 16, "o": 8, "b": 2}[spec]), true
		})
	}
	if n, err := strconv.Atoi(strings.TrimLeft(spec, "<>^")); err == nil && v.isConst() && v.kind == kStr {
		return v.mapText(kStr, func(s string) (string, bool) { return s, len(s) >= n })
	}
	return derived(v)
}

// format is template.format(*a, **a).
func (it *interp) format(template *val, a *arguments, n *node) *val {
	t, ok := template.oneText()
	if !ok {
		return derived(append(a.all(), template)...)
	}
	acc := str("")
	auto := 0
	for t != "" {
		i := strings.IndexAny(t, "{}")
		if i < 0 {
			return concat(acc, str(t)).with(template.from)
		}
		if i+1 < len(t) && t[i+1] == t[i] {
			acc = concat(acc, str(t[:i+1]))
			t = t[i+2:]
			continue
		}
		end := strings.IndexByte(t[i:], '}')
		if t[i] == '}' || end < 0 {
			return derived(append(a.all(), template)...)
		}
		acc = concat(acc, str(t[:i]))
		acc = concat(acc, it.field(t[i+1:i+end], a, &auto, n))
		t = t[i+end+1:]
	}
	return acc.with(template.from)
}

// field is one replacement field: NAME.attr[key]!r:spec.
func (it *interp) field(f string, a *arguments, auto *int, n *node) *val {
	f, spec, _ := strings.Cut(f, ":")
	f, conv, _ := strings.Cut(f, "!")
	name, rest := f, ""
	if i := strings.IndexAny(f, ".["); i >= 0 {
		name, rest = f[:i], f[i:]
	}
	for _, inner := range []string{"__globals__", "__builtins__", "__subclasses__"} {
		if strings.Contains(rest, inner) {
			it.dynamic(facts.DynReflection, "format field "+inner, n)
			break
		}
	}
	var v *val
	if i, err := strconv.Atoi(name); err == nil {
		v = a.get(i, "")
	} else if name == "" {
		v = a.get(*auto, "")
		*auto++
	} else {
		v = a.get(-1, name)
	}
	if v == nil {
		return unknown
	}
	if rest != "" {
		if key, ok := strings.CutPrefix(rest, "["); ok && strings.HasSuffix(key, "]") && strings.Count(rest, "[") == 1 {
			k := str(key[:len(key)-1])
			if i, err := strconv.Atoi(k.text); err == nil {
				k = integer(int64(i))
			}
			return toStr(it.item(v, k, n, it.module))
		}
		return derived(v)
	}
	if conv == "r" || conv == "a" {
		return reprOf(v)
	}
	return formatSpec(v, spec)
}

// percent is template % values.
func (it *interp) percent(template, values *val) *val {
	t, ok := template.oneText()
	if !ok {
		return derived(template, values)
	}
	args := []*val{values}
	if values.kind == kTuple {
		args = values.x.items
	}
	acc := text(template.kind, "")
	next := 0
	for t != "" {
		i := strings.IndexByte(t, '%')
		if i < 0 || i+1 >= len(t) {
			break
		}
		acc = concat(acc, text(template.kind, t[:i]))
		t = t[i+1:]
		if t[0] == '%' {
			acc = concat(acc, text(template.kind, "%"))
			t = t[1:]
			continue
		}
		var v *val
		if t[0] == '(' {
			end := strings.IndexByte(t, ')')
			if end < 0 {
				return derived(template, values)
			}
			key := t[1:end]
			t = t[end+1:]
			v = unknown
			switch values.kind {
			case kDict:
				v = values.value(str(key))
			case kSpace:
				v = it.lookup(values, str(key), nil, it.module)
			default: // it has no keys that are known
			}
		} else {
			v = derived(values)
			if next < len(args) && (values.kind != kTuple || !values.open) {
				v = args[next]
			}
			next++
		}
		j := strings.IndexAny(t, "diouxXeEfFgGcrsab")
		if j < 0 {
			return derived(template, values)
		}
		acc = concat(acc, percentVerb(v, t[j], j > 0, template.kind))
		t = t[j+1:]
	}
	return concat(acc, text(template.kind, t)).with(template.from)
}

func percentVerb(v *val, verb byte, padded bool, k kind) *val {
	switch verb {
	case 'c':
		if v.kind == kInt {
			return formatSpec(v, "c")
		}
	case 'x', 'X', 'o':
		if !padded {
			return formatSpec(v, string(verb))
		}
		return derived(v)
	case 'r', 'a':
		return reprOf(v)
	case 'd', 'i', 'u':
		if padded {
			return counted(derived(v))
		}
		v = counted(v)
	case 's', 'b':
		if v.kind == kBytes && k == kBytes {
			return v
		}
	default:
		return derived(v)
	}
	s := toStr(v)
	if k == kBytes && s.kind == kStr {
		c := *s
		c.kind = kBytes
		return &c
	}
	return s
}
