package policy

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadClock returns a function, for any thread, that tells what the calling
// one has had of a processor since.
func threadClock() func() time.Duration {
	const ofThread = 4 | 2 // CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of <linux/posix-timers_types.h>
	clock := int32(^unix.Gettid()<<3 | ofThread)
	begun := time.Now()
	read := func() (time.Duration, bool) {
		var t unix.Timespec
		err := unix.ClockGettime(clock, &t)
		return time.Duration(t.Nano()), err == nil
	}
	before, ok := read()
	return func() time.Duration {
		now, still := read()
		if !ok || !still {
			return time.Since(begun)
		}
		return now - before
	}
}
