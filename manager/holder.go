package manager

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// A holder's name is the boot, the PID namespace, the pid and the start time of
// a process: together they are never used twice, and another process can tell
// whether it still lives.

// ProcessHolder names the calling process.
func ProcessHolder() (string, error) {
	boot, ns, err := here()
	if err != nil {
		return "", sandbox.Errorf(sandbox.Unsupported, "name this process: %w", err)
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return "", sandbox.Errorf(sandbox.Unsupported, "name this process: %w", err)
	}
	return fmt.Sprintf("%s/%s/%d/%s", boot, ns, os.Getpid(), start), nil
}

// HolderAlive reports whether a holder may still live. It answers true for one
// of another machine or another PID namespace, which it cannot see, and for a
// name that it cannot read: what it does not know is not its to remove.
func HolderAlive(holder string) bool {
	parts := strings.Split(holder, "/")
	if len(parts) != 4 {
		return true
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil {
		return true
	}
	boot, ns, err := here()
	if err != nil || boot != parts[0] || ns != parts[1] {
		return true
	}
	start, err := startTime(pid)
	return err == nil && start == parts[3]
}

// ofAnotherBoot reports whether a holder was named under another boot of the
// kernel: before this machine was started, or on another one.
func ofAnotherBoot(holder string) bool {
	parts := strings.Split(holder, "/")
	boot, _, err := here()
	return err == nil && len(parts) == 4 && parts[0] != boot
}

// here names this boot and this PID namespace.
func here() (boot, ns string, err error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", "", err
	}
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", "", err
	}
	return strings.TrimSpace(string(b)), strings.Trim(strings.TrimPrefix(link, "pid:"), "[]"), nil
}

// startTime is when a process started, in clock ticks since boot: field 22 of
// its stat, counted behind the name, which may hold anything.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(string(b), ") ")
	if i := strings.LastIndex(string(b), ") "); i >= 0 {
		rest = string(b)[i+2:]
	}
	fields := strings.Fields(rest)
	const startField = 22 - 3 // the first field behind the name is the third
	if !ok || len(fields) <= startField {
		return "", fmt.Errorf("stat of process %d has %d fields", pid, len(fields))
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[startField], nil
}
