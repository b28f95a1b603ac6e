package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/policy/facts"
)

// within ends once this process has had a processor for that long: see
// [facts.Within].
func within(d time.Duration) (context.Context, context.CancelFunc) {
	before := processor()
	return facts.Within(context.Background(), d, func() time.Duration { return processor() - before })
}

// processor is the processor time of this process.
func processor() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano()) // by the clock, then
	}
	return time.Duration(t.Nano())
}
