package python

// A text that is not known, but of which more can be told than where it comes
// from, is marked by how it came to be. Whatever is done to it makes another
// text, without a mark.
const (
	ofOwnNames   = "own names"   // the name of something that the module has
	ofOwnProcess = "own process" // the program's own number
)

func marked(v *val, how string) bool { return v.kind == kUnknown && v.x != nil && v.x.how == how }

// ownNames are the names that a module has: dir(), globals().keys(). What is
// told of one is told of all.
func ownNames() *val {
	return list(kList, []*val{{x: &extra{how: ofOwnNames}}})
}

// dir lists the names of the module.
func (c *invocation) dir() *val {
	switch {
	case len(c.all()) == 0:
		return ownNames()
	case len(c.all()) == 1 && c.it.theirs(c.get0()):
		return manyOf(ofTheirs)
	}
	return nil
}

// evaluateMarked is eval of the name of something that the module has, which is
// looked up, or of a dotted name; nil for any other text.
func (c *invocation) evaluateMarked(code *val) *val {
	if c.name != "eval" || !marked(code, ofOwnNames) || len(c.all()) != 1 {
		return nil
	}
	if c.s != c.it.module {
		return fromSomewhere // it may be one of the function's own
	}
	return c.it.lookup(&val{kind: kSpace}, unknown, c.n, c.s)
}

// ownProcess is os.getpid().
func (c *invocation) ownProcess() *val {
	v := c.it.report(c.name, c.arguments, nil, c.n)
	return &val{from: v.from, x: &extra{how: ofOwnProcess}}
}

// ofItself reports the beginning of a path below /proc that is the program's own,
// which has a name of its own there: /proc/self.
func ofItself(a, b *val) bool {
	s, ok := a.one()
	return ok && s == "/proc/" && marked(b, ofOwnProcess)
}
