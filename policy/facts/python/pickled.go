package python

import (
	"slices"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// pickles rebuild objects from bytes.
var pickles = map[string]bool{"pickle.loads": true, "_pickle.loads": true, "cPickle.loads": true, "dill.loads": true, "cloudpickle.loads": true}

var (
	// pickledGlobal is the opcode that fetches a function by its name.
	pickledGlobal = lazyregexp.New(`c([A-Za-z_][\w.]*)\n([A-Za-z_][\w.]*)\n`)
	// pickledText is a text among the opcodes of the first protocol.
	pickledText = lazyregexp.New(`[SV]['"]?([^'"\n]*)['"]?\n`)
)

// unpickles calls what a pickle that is known calls: a function that it names,
// with the texts in it.
func (c *invocation) unpickles() {
	if !pickles[c.name] {
		return
	}
	data := c.nth(0)
	if data.kind != kBytes || data.open || len(data.text) > 1<<16 {
		return
	}
	short := shortTexts(data.text)
	var texts []*val
	for _, m := range pickledText().FindAllStringSubmatch(data.text, 8) {
		texts = append(texts, str(m[1]))
	}
	for _, t := range short[min(2, len(short)):] {
		texts = append(texts, str(t))
	}
	name := ""
	if m := pickledGlobal().FindStringSubmatch(data.text); m != nil {
		name = m[1] + "." + m[2]
	} else if len(short) > 1 {
		name = short[0] + "." + short[1]
	}
	if name != "" {
		c.it.call(ref(canonical(name), "value"), &arguments{pos: slices.Clip(texts), how: "value"}, c.n, c.s)
	}
}

// shortTexts are the texts of later protocols: their length, then themselves.
func shortTexts(data string) []string {
	var out []string
	for i := 0; i+1 < len(data) && len(out) < 16; i++ {
		if data[i] != 0x8c {
			continue
		}
		if n := int(data[i+1]); i+2+n <= len(data) {
			out = append(out, data[i+2:i+2+n])
			i += 1 + n
		}
	}
	return out
}
