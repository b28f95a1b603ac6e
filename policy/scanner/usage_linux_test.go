package scanner

import (
	"os"
	"testing"
	"time"
)

func TestUsageOf(t *testing.T) {
	pid := os.Getpid()
	before := processorOf(pid)
	for start := time.Now(); processorOf(pid)-before < 50*time.Millisecond; {
		if time.Since(start) > time.Minute {
			t.Fatal("this process computes, and no time of a processor is told")
		}
	}
	if !busy(pid) {
		t.Error("a process that asks about itself is not told to do anything")
	}
	if n := processorOf(1 << 26); n != 0 || busy(1<<26) {
		t.Errorf("a process that does not exist took %s", n)
	}
}
