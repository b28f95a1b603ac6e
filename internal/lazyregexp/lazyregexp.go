// Package lazyregexp compiles regular expressions when they are first used.
// caisson and its scanner start for a single run each, which needs few of them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New gives an expression that the first call compiles. One that is wrong
// panics then. It is safe for concurrent use.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
