//go:build linux

package pid1

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// cgroup reads the sandbox's own counters. Its files are opened once: a read
// is one system call and opens nothing, also when descriptors are short.
// A counter that this kernel lacks reads as 0, and has says so.
type cgroup struct {
	files map[string]*os.File
	v2    bool
}

// openCgroup opens what there is below root, which is /sys/fs/cgroup.
func openCgroup(root string) *cgroup {
	c := &cgroup{files: map[string]*os.File{}}
	paths := map[string]string{
		"oom": "memory/memory.oom_control", "memory": "memory/memory.usage_in_bytes", "memstat": "memory/memory.stat",
		"memlimit": "memory/memory.limit_in_bytes", "pids": "pids/pids.current", "pidsmax": "pids/pids.events", "pidspeak": "pids/pids.peak", "cpu": "cpuacct/cpuacct.usage",
		"pidslimit": "pids/pids.max", "throttled": "cpu/cpu.stat", "quota": "cpu/cpu.cfs_quota_us", "period": "cpu/cpu.cfs_period_us",
		"io": "blkio/blkio.throttle.io_service_bytes",
	}
	if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
		c.v2 = true
		paths = map[string]string{
			"oom": "memory.events", "memory": "memory.current", "memstat": "memory.stat",
			"memlimit": "memory.max", "pids": "pids.current", "pidsmax": "pids.events", "pidspeak": "pids.peak", "cpu": "cpu.stat",
			"pidslimit": "pids.max", "throttled": "cpu.stat", "quota": "cpu.max", "io": "io.stat",
		}
	}
	for name, path := range paths {
		if f, err := os.Open(root + "/" + path); err == nil {
			c.files[name] = f
		}
	}
	return c
}

func (c *cgroup) has(name string) bool { return c.files[name] != nil }

// read returns the content of a counter's file in buf.
func (c *cgroup) read(name string, buf []byte) []byte {
	f := c.files[name]
	if f == nil {
		return nil
	}
	n, err := unix.Pread(int(f.Fd()), buf, 0)
	if err != nil || n < 0 {
		return nil
	}
	return buf[:n]
}

// number reads a file that holds one number.
func (c *cgroup) number(name string) int64 {
	var buf [64]byte
	return parseInt(c.read(name, buf[:]))
}

// field reads the number behind key in a file of "key value" lines.
func (c *cgroup) field(name, key string) int64 {
	var buf [4096]byte
	return fieldOf(c.read(name, buf[:]), key)
}

// event is field for a file of a few lines: what is read of each exec is to need no larger
// stack than that has.
func (c *cgroup) event(name, key string) int64 {
	var buf [512]byte
	return fieldOf(c.read(name, buf[:]), key)
}

func (c *cgroup) oomKills() int64 { return c.event("oom", "oom_kill") }
func (c *cgroup) pidsHits() int64 { return c.event("pidsmax", "max") }
func (c *cgroup) tasks() int      { return int(c.number("pids")) }
func (c *cgroup) tasksPeak() int  { return int(c.number("pidspeak")) }
func (c *cgroup) memory() int64   { return c.number("memory") }

// anonymous is the memory of processes, without page cache and tmpfs.
func (c *cgroup) anonymous() int64 {
	if c.v2 {
		return c.field("memstat", "anon")
	}
	return c.field("memstat", "rss")
}

// memoryLeft is what may still be taken of the memory limit once the kernel has
// given up what it caches of files on disks. What lies in a tmpfs stays. Without
// a limit, or where it cannot be known, it is a lot.
func (c *cgroup) memoryLeft() int64 {
	limit := c.number("memlimit") // "max" reads as 0
	if limit == 0 || !c.has("memory") || !c.has("memstat") {
		return math.MaxInt64
	}
	return limit - c.memory() + c.field("memstat", "inactive_file") + c.field("memstat", "active_file")
}

// inactiveFile is what the kernel caches of files and drops first.
func (c *cgroup) inactiveFile() int64 {
	if c.v2 {
		return c.field("memstat", "inactive_file")
	}
	return c.field("memstat", "total_inactive_file")
}

// memoryLimit is the limit, or 0 where there is none: version 1 has a number for
// that which no machine reaches.
func (c *cgroup) memoryLimit() int64 {
	n := c.number("memlimit") // "max" reads as 0
	if n >= 1<<60 {
		return 0
	}
	return n
}

// throttledUS is how long the CPU limit held processes back.
func (c *cgroup) throttledUS() int64 {
	if c.v2 {
		return c.field("throttled", "throttled_usec")
	}
	return c.field("throttled", "throttled_time") / 1000
}

// milliCPUs is the CPU limit in thousandths of a core, or 0 where there is none.
func (c *cgroup) milliCPUs() int64 {
	var buf [64]byte
	var quota, period int64
	if c.v2 {
		q, p, _ := bytes.Cut(c.read("quota", buf[:]), []byte{' '})
		quota, period = parseInt(q), parseInt(p) // "max" reads as 0
	} else {
		quota, period = c.number("quota"), c.number("period") // -1 is none
	}
	if quota <= 0 || period <= 0 {
		return 0
	}
	return quota * 1000 / period
}

// blockIO adds up what block devices were read and written, in bytes.
func (c *cgroup) blockIO() (read, written int64) {
	var buf [16 << 10]byte
	for line := range bytes.Lines(c.read("io", buf[:])) {
		f := bytes.Fields(line)
		for i, word := range f {
			if v, ok := bytes.CutPrefix(word, []byte("rbytes=")); ok {
				read += parseInt(v)
			} else if v, ok := bytes.CutPrefix(word, []byte("wbytes=")); ok {
				written += parseInt(v)
			} else if i == 1 && len(f) == 3 && string(word) == "Read" { // version 1: device, operation, bytes
				read += parseInt(f[2])
			} else if i == 1 && len(f) == 3 && string(word) == "Write" {
				written += parseInt(f[2])
			}
		}
	}
	return read, written
}

func (c *cgroup) cpuUS() int64 {
	if c.v2 {
		return c.field("cpu", "usage_usec")
	}
	return c.number("cpu") / 1000
}

func fieldOf(b []byte, key string) int64 {
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte{'\n'})
		if v, ok := bytes.CutPrefix(line, []byte(key)); ok && len(v) > 0 && (v[0] == ' ' || v[0] == ':') {
			return parseInt(v[1:])
		}
		b = rest
	}
	return 0
}

func parseInt(b []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
