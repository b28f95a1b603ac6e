//go:build linux

package pid1

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockStep is how often an exec's time is looked at that has stood still.
const clockStep = 20 * time.Millisecond

// clock counts how long an exec stood still. The zero value is ready.
type clock struct {
	mu    sync.Mutex
	holds int
	since time.Time
	sum   time.Duration
}

// hold changes by how many it is held, and reports whether that stopped it or let it
// go on.
func (c *clock) hold(more int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.holds
	c.holds += more
	switch {
	case before == 0:
		c.since = time.Now()
	case c.holds == 0:
		c.sum += time.Since(c.since)
	default:
		return false
	}
	return true
}

func (c *clock) stood() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds > 0 {
		return c.sum + time.Since(c.since)
	}
	return c.sum
}

// stand stops an exec's processes and its clock, and that of what runs in it where it
// is a shell, until they may go on. One that waits for an answer about what it starts
// stands by itself.
func (a *Agent) stand(ex *exec) (goOn func()) {
	var inside *exec
	if sh := ex.shell; sh != nil {
		if r := sh.running(); r != nil {
			inside = r.ex
		}
	}
	hold := func(more int, sig unix.Signal) {
		if inside != nil {
			inside.clock.hold(more)
		}
		if ex.clock.hold(more) {
			_, _ = a.signalAll(ex, sig) // who is gone needs none, and an unreadable /proc stops nobody
		}
	}
	hold(1, unix.SIGSTOP)
	return func() { hold(-1, unix.SIGCONT) }
}
