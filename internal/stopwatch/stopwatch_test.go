package stopwatch_test

import (
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/stopwatch"
)

func TestStart(t *testing.T) {
	took := stopwatch.Start()
	time.Sleep(100 * time.Millisecond)
	if got := took(); got >= 100*time.Millisecond {
		t.Errorf("waiting counted: %s", got)
	}
	for begin := time.Now(); time.Since(begin) < 100*time.Millisecond; {
		continue
	}
	if got := took(); got < 10*time.Millisecond {
		t.Errorf("computing did not count: %s", got)
	}
}
