// Package recipe says how the programs are built where make does not: by tests
// and benchmarks, which measure what a release has.
package recipe

// Scanner are the flags of go build for caisson-scan, as the Makefile has them.
// Cgo must be on. The slice must not be changed.
var Scanner = []string{
	"-trimpath", "-tags=netgo,osusergo",
	"-gcflags=mvdan.cc/sh/v3/...=-l",
	"-gcflags=github.com/caisson-dev/caisson/policy/facts/shell=-l",
	"-gcflags=github.com/caisson-dev/caisson/policy/facts/javascript=-l",
	`-ldflags=-s -w -linkmode external -extldflags "-static -Wl,--gc-sections"`,
}
