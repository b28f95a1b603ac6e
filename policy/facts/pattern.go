package facts

import (
	"regexp"
	"sync"
)

// Pattern gives a regular expression that is compiled at first use: a scanner
// starts for each owner and needs few of them. One that is wrong panics then.
// It is safe for concurrent use.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
