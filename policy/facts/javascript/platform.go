package javascript

import "strings"

// platform is what process.platform says where programs run; nil where the
// program may have given it another value.
func (w *walk) platform() *val {
	if w.disguised || w.given("platform") {
		return nil
	}
	return text("linux")
}

// given reports that the text may give this name a meaning, or is too long to say.
func (w *walk) given(name string) bool {
	if w.names == nil {
		if len(w.main.nodes) > maxNames {
			return true
		}
		w.names = w.main.givenNames()
	}
	return w.names[name]
}

// disguises notes that members of process are set whose names are not known.
func (w *walk) disguises(o *val) {
	o.all(func(v *val) { w.disguised = w.disguised || v.name == "process" })
}

// definedBy notes the name that a call gives a meaning to: defineProperty(o, 'a', …).
func (t *tree) definedBy(n id, given map[string]bool) {
	f := t.child(n, fFunction)
	if t.kind(f) != kMember || !strings.Contains(t.text(t.child(f, fProperty)), "define") {
		return
	}
	t.each(t.child(n, fArguments), func(c id) {
		if t.kind(c) == kString {
			given[strings.Trim(t.text(c), `"'`)] = true
		}
	})
}
