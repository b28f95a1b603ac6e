package python

// A program may put what it likes under a module's name, where imports look
// first: sys.modules["json"] = os.

// swaps notes what an assignment to an item of sys.modules puts there.
func (it *interp) swaps(o, key, v *val) {
	name, ok := key.oneText()
	if !ok || o.kind != kRef || o.text != "sys.modules" || v.kind != kRef && v.kind != kInst && v.kind != kClass || len(it.swapped) >= maxModules {
		return
	}
	if it.swapped == nil {
		it.swapped = map[string]*val{}
	}
	it.swapped[name] = v
}

// swap is what stands in place of a module, nil where nothing does.
func (it *interp) swap(module string) *val { return it.swapped[module] }
