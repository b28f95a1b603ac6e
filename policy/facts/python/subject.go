package python

import "strings"

// maxSubjects bounds how many subjects are mended, and how deep they stand in
// each other's cases.
const (
	maxSubjects = 256
	subjectDeep = 4
)

// subjects parses anew what the grammar takes for something else: where the
// subject of a match statement stands in brackets, it reads an item of "match"
// with a type behind the colon, which is the first case. A tuple of the same
// items is read as what it is.
func (g *language) subjects(t *tree, parse func(string) *tree) *tree {
	for range subjectDeep {
		if t == nil || t.root == nil || t.cut || !mayHaveSubject(t.src) {
			return t
		}
		src, found := t.asTuples()
		if !found {
			return t
		}
		again := parse(src)
		if again == nil {
			return t
		}
		t = again
	}
	return t
}

// mayHaveSubject reports that a bracket follows a "match" somewhere, which is
// quicker to see than the tree is to walk.
func mayHaveSubject(src string) bool {
	for {
		_, behind, found := strings.Cut(src, "match")
		if !found {
			return false
		}
		if strings.HasPrefix(strings.TrimLeft(behind, " \t\f\r\n\\"), "[") {
			return true
		}
		src = behind
	}
}

// asTuples is the text with such subjects in parentheses.
func (t *tree) asTuples() (string, bool) {
	var out strings.Builder
	from, found := uint32(0), 0
	var look func(n *node)
	look = func(n *node) {
		if n.kind == "subscript" && n.start >= from && found < maxSubjects && t.isSubject(n) {
			open, inner := t.text(n), ""
			open, inner, _ = strings.Cut(open, "[")
			inner = strings.TrimSuffix(inner, "]")
			if !strings.HasSuffix(strings.TrimSpace(inner), ",") {
				inner += ","
			}
			out.WriteString(t.src[from:n.start] + open + "(" + inner + ")")
			from = n.end
			found++
			return
		}
		for c := n.first; c != nil; c = c.next {
			if c.size > 2 {
				look(c)
			}
		}
	}
	look(t.root)
	out.WriteString(t.src[from:])
	return out.String(), found > 0
}

// isSubject reports an item of a name "match" with which a line begins, and that
// has nothing but a colon behind it: no type could follow there.
func (t *tree) isSubject(n *node) bool {
	if v := n.child("value"); v == nil || t.text(v) != "match" {
		return false
	}
	begin := strings.LastIndexByte(t.src[:n.start], '\n') + 1
	behind, ok := strings.CutPrefix(strings.TrimLeft(t.src[n.end:], " \t"), ":")
	line, _, more := strings.Cut(behind, "\n")
	line, _, _ = strings.Cut(line, "#")
	return ok && more && strings.TrimSpace(line) == "" && strings.TrimSpace(t.src[begin:n.start]) == ""
}
