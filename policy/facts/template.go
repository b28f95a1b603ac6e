package facts

import (
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// template scans the code between the marks of a template.
func (x *effects) template(v Value) {
	for _, text := range v.Alts {
		for i, m := range templateCode().FindAllStringSubmatch(text, maxItems) {
			if i == 16 {
				break
			}
			before := len(x.b.s.doc.Dynamic)
			x.b.Nested(x.b.lang, Text(strings.TrimSpace(m[1]+m[2])), NestedOpts{Pos: x.pos, Via: []string{x.via}})
			x.b.s.unparsed(before)
		}
	}
}

// templateCode is what stands between the marks of templates that hold code.
var templateCode = lazyregexp.New(`(?s)<%[-=_#]?(.*?)[-_]?%>|\{\{[=~!?-]*(.*?)\}\}`)

// elsewhere is the folder that a call starts a program in, where that is told:
// an argument, or a field of the options, that is called cwd.
func (x *effects) elsewhere() (Value, bool) {
	a, ok := x.args.(callArgs)
	if !ok {
		return Value{}, false
	}
	if v, ok := a.c.Kwargs["cwd"]; ok {
		return v, v.Type == "str" && v.Known()
	}
	for i := len(a.c.Args) - 1; i > 0; i-- {
		if v, ok := a.c.Args[i].Fields["cwd"]; ok {
			_, known := v.One()
			return v, known
		}
	}
	return Value{}, false
}
