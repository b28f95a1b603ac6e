//go:build !linux

package scanner

// usageOf knows nothing here: a process has its time by the clock.
func usageOf(int) usage { return usage{} }
