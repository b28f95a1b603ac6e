package python

import "strings"

// names reports that eval of a text gives what names stand for that stand in it,
// one within the other, and does no more: what is done with that is followed.
// None of them leads to a module that matters, or out of an object, and it is
// known what comes of it.
func (c *invocation) names(t *tree, v *val) bool {
	n := t.root.first
	if c.name != "eval" || c.it.quiet > 0 || n == nil || n.next != nil || v == nil || v.kind == kUnknown || v.kind == kAlt {
		return false
	}
	for n = n.nth(0); n != nil && n.kind == "attribute"; n = n.child("object") {
		name := identifier(t.text(n.child("attribute")))
		if innards[name] || strings.HasPrefix(name, "__") || strings.HasSuffix(name, "_frame") || c.it.dangerous(name) {
			return false
		}
	}
	if n == nil || n.kind != "identifier" {
		return false
	}
	name := identifier(t.text(n))
	return !c.it.dangerous(name) && !strings.HasPrefix(name, "__builtins__")
}
