package python

// printsTo: what is printed goes to what the program put in place of standard
// output, or of its method.
func (it *interp) printsTo(name string, a *arguments, n *node, s *scope) {
	if name != "print" {
		return
	}
	if p := it.patched["sys.stdout.write"]; p != nil {
		it.call(p, a, n, s)
	}
	out := it.patched["sys.stdout"]
	if file := a.kw["file"]; file != nil {
		out = file
	}
	if out == nil || out.kind != kInst {
		return
	}
	if w := out.x.cls.member("write", 0); w != nil && w.kind == kFunc && w.x.fn.active == 0 {
		it.follow(w.x.fn, &arguments{pos: a.pos[:min(1, len(a.pos))]}, out, n)
	}
}
