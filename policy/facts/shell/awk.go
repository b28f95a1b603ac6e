package shell

import (
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// awkProgram is the little of awk that scripts cut words with: an optional
// condition on NR, and one print of fields and literals.
var awkProgram = lazyregexp.New(`^\s*(?:(BEGIN|END|NR\s*==\s*(\d+)|1)\s*)?\{\s*(printf|print)\s*\(?([^{}]*?)\)?\s*;?\s*\}\s*$`)

// awkTerm is one term of a print.
var awkTerm = lazyregexp.New(`^\s*(?:"((?:[^"\\]|\\.)*)"|\$(NF|\d+)|(NR|NF)|(,))`)

func awkFilter(o options, in string) (string, bool) {
	if len(o.operands) == 0 || o.has("f") || o.has("v") {
		return "", false
	}
	m := awkProgram().FindStringSubmatch(o.operands[0])
	if m == nil || !known(o.operands[0]) || m[1] == "END" {
		return "", false
	}
	printf := m[3] == "printf"
	if m[1] == "BEGIN" {
		return awkPrint(m[4], "", nil, 0, printf)
	}
	if in = strings.ReplaceAll(in, unset, ""); !known(in) {
		return "", false
	}
	var b strings.Builder
	for i, line := range lines(in) {
		if m[2] != "" {
			if n, _ := strconv.Atoi(m[2]); n != i+1 {
				continue
			}
		}
		words := strings.Fields(line)
		if sep, ok := o.flags["F"]; ok {
			words = strings.Split(line, ansiC(sep, false))
		}
		s, ok := awkPrint(m[4], line, words, i+1, printf)
		if !ok {
			return "", false
		}
		b.WriteString(s)
	}
	return b.String(), true
}

// awkPrint prints the terms of one print for one line.
func awkPrint(terms, line string, words []string, nr int, printf bool) (string, bool) {
	if strings.TrimSpace(terms) == "" {
		return line + "\n", !printf
	}
	list := []string{""}
	for rest := terms; strings.TrimSpace(rest) != ""; {
		m := awkTerm().FindStringSubmatch(rest)
		if m == nil {
			return "", false
		}
		rest = rest[len(m[0]):]
		last := &list[len(list)-1]
		switch {
		case m[4] != "":
			list = append(list, "")
		case m[3] == "NR":
			*last += strconv.Itoa(nr)
		case m[3] == "NF":
			*last += strconv.Itoa(len(words))
		case m[2] == "NF":
			if len(words) > 0 {
				*last += words[len(words)-1]
			}
		case m[2] == "0":
			*last += line
		case m[2] != "":
			if n, _ := strconv.Atoi(m[2]); n <= len(words) {
				*last += words[n-1]
			}
		default:
			*last += ansiC(m[1], false)
		}
	}
	if printf {
		s, ok := formatText(list[0], list[1:])
		return s, ok
	}
	return strings.Join(list, " ") + "\n", true
}
