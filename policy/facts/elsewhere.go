package facts

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
