package scanner

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// tick is the unit of /proc/PID/stat: USER_HZ, which is 100 on every
// architecture that Go runs on.
const tick = 10 * time.Millisecond

// usageOf asks the kernel. A process that it tells nothing of is taken for one
// that does nothing.
func usageOf(pid int) usage {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	fields := statOf(filepath.Join(dir, "stat"))
	if len(fields) < 13 {
		return usage{}
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	if err1 != nil || err2 != nil {
		return usage{}
	}
	u := usage{processor: time.Duration(user+system) * tick}
	tasks, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return usage{}
	}
	for _, t := range tasks {
		if f := statOf(filepath.Join(dir, "task", t.Name(), "stat")); len(f) > 0 && (f[0][0] == 'R' || f[0][0] == 'D') {
			u.busy = true
		}
	}
	return u
}

// statOf are the fields behind the name, which may hold anything: the state
// comes first.
func statOf(file string) [][]byte {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil // it has ended
	}
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}
