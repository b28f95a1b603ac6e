package policy

import (
	"runtime/debug"
	"sync"
)

// collector counts who is loading rules, and what the collector was set to
// before. Loading makes tens of megabytes of garbage within some milliseconds:
// in a process that starts, one that judges once, the collector would take a
// quarter of that time to free what is soon gone anyway.
var collector struct {
	sync.Mutex
	users, percent int
}

// relaxedPercent lets the heap grow to that much more before it is collected.
const relaxedPercent = 400

// relaxed puts collections off until what it returns is called.
func relaxed() func() {
	collector.Lock()
	defer collector.Unlock()
	if collector.users++; collector.users == 1 {
		collector.percent = debug.SetGCPercent(relaxedPercent)
	}
	return func() {
		collector.Lock()
		defer collector.Unlock()
		if collector.users--; collector.users == 0 {
			debug.SetGCPercent(collector.percent)
		}
	}
}
