//go:build unix

// Package stopwatch times what a test holds to a bound, on machines that do
// other things beside it.
package stopwatch

import (
	"syscall"
	"time"
)

// Start returns a function that tells what has been taken since: wall time, or
// this process's processor time where that is less, as it is while others keep
// the processors busy. It suits code that computes and does not wait.
func Start() func() time.Duration {
	begin, used := time.Now(), processor()
	return func() time.Duration { return min(time.Since(begin), processor()-used) }
}

func processor() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		panic(err) // it fails for bad arguments alone
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
