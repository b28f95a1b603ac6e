package javascript

import "strings"

// tagged is what a function of the program is given of a template behind its name: the texts between the substitutions,
// as they are read and as they are written, and then the substitutions. parts are these in turn, without empty texts.
func (w *walk) tagged(n id, parts []*val) []*val {
	read, written := &object{role: array}, &object{role: array}
	var between []*val
	var source strings.Builder
	next := func() *val {
		v := unknown
		if len(parts) > 0 {
			v, parts = parts[0], parts[1:]
		}
		return v
	}
	flush := func() {
		v := text("")
		if source.Len() > 0 {
			v = next()
		}
		read.items = append(read.items, v)
		written.items = append(written.items, text(source.String()))
		source.Reset()
	}
	w.t.each(n, func(c id) {
		if w.t.kind(c) == kSubstitution {
			flush()
			between = append(between, next())
			return
		}
		source.WriteString(w.t.text(c))
	})
	flush()
	read.set("raw", &val{ref: written})
	return append([]*val{{ref: read}}, between...)
}
