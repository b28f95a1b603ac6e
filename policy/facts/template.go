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
