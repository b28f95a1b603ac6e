package client

import (
	"sync"
	"time"
)

// Clock is that of an exec which has a time limit. While it is stopped, its time does
// not pass on this side; the agent's is told by a [Verdict]. The zero value is ready. It
// is safe for concurrent use, and for one exec.
type Clock struct {
	mu      sync.Mutex
	f       *follower
	stopped time.Time // zero while it goes
}

// of gives it its exec.
func (c *Clock) of(f *follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.f = f
	if !c.stopped.IsZero() {
		f.stand()
	}
}

// Stop has it stand still.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = time.Now()
	if c.f != nil {
		c.f.stand()
	}
}

// Go has it go on.
func (c *Clock) Go() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.f != nil {
		c.f.goOn(time.Since(c.stopped))
	}
	c.stopped = time.Time{}
}

// stand has the exec's deadline wait.
func (f *follower) stand() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.canceled && !f.deadline.IsZero() {
		f.still = true
		_ = f.s.SetDeadline(time.Time{}) // never fails on a stream
	}
}

// goOn sets the deadline that waited for d.
func (f *follower) goOn(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.still {
		f.still, f.deadline = false, f.deadline.Add(d)
		_ = f.s.SetDeadline(f.deadline) // never fails on a stream
	}
}
