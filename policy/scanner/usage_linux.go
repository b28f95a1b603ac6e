package scanner

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// processorOf is the processor time of a process, 0 of one that has ended.
func processorOf(pid int) time.Duration {
	const ofProcess = 2 // CPUCLOCK_SCHED of <linux/posix-timers_types.h>
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// busy reports that a process does something, or waits for a processor: that one
// of its threads is not asleep.
func busy(pid int) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended
	}
	for _, t := range tasks {
		b, err := os.ReadFile(filepath.Join(dir, t.Name(), "stat"))
		// The state stands behind the name, which may hold anything.
		if at := bytes.LastIndexByte(b, ')') + 2; err == nil && at < len(b) && (b[at] == 'R' || b[at] == 'D') {
			return true
		}
	}
	return false
}
