package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/policy/facts"
)

// within ends once a scan has had a processor for that long, or has taken
// [facts.Patience] times that.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), facts.Patience*d)
	used := processor()
	go func() {
		for left := d; left > 0; left = d - (processor() - used) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(left, time.Millisecond)):
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// processor is the processor time of this process.
func processor() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano()) // by the clock, then
	}
	return time.Duration(t.Nano())
}
