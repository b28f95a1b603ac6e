package python

import "strings"

// Programs that a package gives as functions: plumbum.local["rm"],
// plumbum.cmd.rm, sh.rm.

// programOf is the program that a name stands for, or "".
func (it *interp) programOf(name string) string {
	for _, prefix := range []string{"plumbum.cmd.", "plumbum.local.cmd."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, ".") {
			return rest
		}
	}
	if rest, ok := strings.CutPrefix(name, "sh."); ok && !strings.Contains(rest, ".") && rest != "Command" && strings.ToLower(rest) == rest {
		return strings.ReplaceAll(rest, "_", "-")
	}
	return ""
}

// program is a program as a value, with words that are bound already.
func program(words ...*val) *val {
	return &val{kind: kWrap, text: "program", x: &extra{items: words}}
}

// runProgram runs one with more words.
func (it *interp) runProgram(words []*val, a *arguments, n *node) *val {
	all := append(append([]*val(nil), words...), a.pos...)
	for i, v := range all { // sh.rm(["-r", "x"])
		if v.isSeq() && len(v.x.items) > 0 && i > 0 {
			all = append(append(all[:i:i], v.x.items...), all[i+1:]...)
			break
		}
	}
	return it.report("plumbum.run", &arguments{pos: []*val{list(kList, all)}, open: a.open, rest: a.rest}, nil, n)
}
