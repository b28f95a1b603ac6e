package python

import "strings"

// maxSplit bounds the texts that one may be, where a method gives a list.
const maxSplit = 8

// eachSelf is a method of each text that the object may be.
func (c *invocation) eachSelf(method func(*invocation, string) *val, name string) *val {
	before := c.self
	defer func() { c.self = before }()
	var out *val
	for _, s := range before.all() {
		c.self = text(before.kind, s).with(before.from)
		out = join(out, method(c, name))
	}
	if before.open {
		out = join(out, derived(before))
	}
	return out
}

func (c *invocation) split(name string) *val {
	s, ok := c.self.oneText()
	if !ok && c.self.isText() && len(c.self.more) < maxSplit {
		return c.eachSelf((*invocation).textMethod, name)
	}
	if !ok {
		return derived(append(c.all(), c.self)...)
	}
	sep, given := "", false
	if len(c.pos) > 0 && c.pos[0].kind != kNone {
		if sep, given = c.pos[0].oneText(); !given || sep == "" {
			return derived(append(c.all(), c.self)...)
		}
	}
	limit := int64(-1)
	if n := c.at(1, "maxsplit"); n != nil {
		limit, _ = n.int()
	}
	var parts []string
	switch {
	case name == "splitlines":
		parts = strings.Split(strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
	case name == "partition", name == "rpartition":
		i := strings.Index(s, sep)
		if name == "rpartition" {
			i = strings.LastIndex(s, sep)
		}
		if i < 0 {
			parts = []string{s, "", ""}
		} else {
			parts = []string{s[:i], sep, s[i+len(sep):]}
		}
	case !given:
		parts = strings.Fields(s)
	case limit >= 0 && name == "split":
		parts = strings.SplitN(s, sep, int(min(limit, 4096))+1)
	case limit == 1 && name == "rsplit":
		if i := strings.LastIndex(s, sep); i >= 0 {
			parts = []string{s[:i], s[i+len(sep):]}
		} else {
			parts = []string{s}
		}
	default:
		parts = strings.Split(s, sep)
	}
	if len(parts) > 4096 {
		return derived(c.self)
	}
	items := make([]*val, len(parts))
	for i, p := range parts {
		items[i] = text(c.self.kind, p).with(c.self.from)
	}
	return list(kList, items)
}
