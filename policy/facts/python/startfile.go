package python

import (
	"slices"
	"strings"
)

// startFile is os.startfile, which Python has on Windows alone: a document that
// somebody else names is opened as any desktop opens it.
func (c *invocation) startFile() *val {
	v := c.get0()
	if len(v.fact().Alts) > 0 || slices.ContainsFunc(v.origins(0), hidden) {
		return nil
	}
	return none
}

// hidden are origins of what a program received, or made so that it is not seen.
func hidden(from string) bool {
	switch from {
	case "decoded", "encoded", "encrypted", "computed", "cut":
		return true
	}
	return strings.HasPrefix(from, "net")
}
