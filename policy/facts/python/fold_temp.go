package python

import (
	"fmt"

	"github.com/caisson-dev/caisson/policy/facts"
)

// tempHandlers give temporary files and folders names that are as good as any
// others, so that what is written there is found again.
func tempHandlers() map[string]handler {
	file := func(c *invocation) *val {
		name := c.tempName(true)
		got := c.it.report("open", &arguments{pos: []*val{name, str("w+")}}, nil, c.n)
		if got.kind == kObj && got.x != nil {
			o, x := *got, *got.x
			x.dict = map[string]*val{"name": name}
			o.x = &x
			return &o
		}
		return got
	}
	dir := func(c *invocation) *val {
		name := c.tempName(false)
		if c.kw["dir"] != nil {
			c.it.report("os.mkdir", &arguments{pos: []*val{name}}, nil, c.n)
		}
		return name
	}
	return map[string]handler{
		"tempfile.gettempdir":         func(*invocation) *val { return str("/tmp") },
		"tempfile.mkdtemp":            dir,
		"tempfile.mktemp":             func(c *invocation) *val { return c.tempName(true) },
		"tempfile.NamedTemporaryFile": file,
		"tempfile.mkstemp": func(c *invocation) *val {
			name := c.tempName(true)
			if c.kw["dir"] != nil { // elsewhere than where all are
				c.it.report("open", &arguments{pos: []*val{name, str("w")}}, nil, c.n)
			}
			handle := &val{kind: kObj, text: "fd", x: &extra{recv: []facts.Value{name.fact()}}}
			return list(kTuple, []*val{handle, name})
		},
		"os.write":  (*invocation).descriptorWrite,
		"os.fdopen": (*invocation).descriptorOpen,
		"tempfile.TemporaryDirectory": func(c *invocation) *val {
			return &val{kind: kObj, text: "tempfile.TemporaryDirectory", x: &extra{dict: map[string]*val{"name": c.tempName(false)}}}
		},
	}
}

// tempName is a name that no other place of the text gives.
func (c *invocation) tempName(file bool) *val {
	folder, suffix := "/tmp", ""
	if d, ok := c.kw["dir"].text0(); ok {
		folder = d
	}
	if s, ok := c.kw["suffix"].text0(); ok {
		suffix = s
	} else if file && len(c.pos) > 0 && c.name == "tempfile.mktemp" {
		suffix, _ = c.pos[0].text0()
	}
	return str(fmt.Sprintf("%s/tmp%d_%d%s", folder, c.n.row, c.n.col, suffix))
}

// text0 is the text of an argument that may be absent.
func (v *val) text0() (string, bool) {
	if v == nil || v.kind != kStr {
		return "", false
	}
	return v.oneText()
}

// descriptorWrite remembers what is written by a descriptor whose file is
// known, for when that file is run.
func (c *invocation) descriptorWrite() *val {
	if fd := c.nth(0); fd.kind == kObj && fd.text == "fd" && fd.x != nil && len(fd.x.recv) > 0 && c.it.quiet == 0 {
		c.it.b.Store(fd.x.recv[0], c.nth(1).fact(), fd.written(nil), c.it.pos(c.n))
	}
	return nil
}

// descriptorOpen is a file made of a descriptor.
func (c *invocation) descriptorOpen() *val {
	fd := c.nth(0)
	if fd.kind != kObj || fd.text != "fd" || fd.x == nil || len(fd.x.recv) == 0 {
		return nil
	}
	mode := c.at(1, "mode")
	if mode == nil {
		mode = str("r")
	}
	return c.it.report("open", &arguments{pos: []*val{fromFact(fd.x.recv[0]), mode}}, nil, c.n)
}
