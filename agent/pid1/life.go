//go:build linux

package pid1

import (
	"sync"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
)

// life ends a sandbox that nobody uses any more, or whose time is over. It is
// in the sandbox itself, so that it works while no manager runs.
type life struct {
	end func(why string)

	mu    sync.Mutex
	idle  time.Duration // 0 is never
	uses  int           // calls and execs that go on
	quiet *time.Timer   // runs while uses is 0 and idle is set
	ttl   *time.Timer
}

// renew sets new times, counted from now.
func (l *life) renew(r wire.Renew) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.TTLMS != nil {
		if l.ttl != nil {
			l.ttl.Stop()
			l.ttl = nil
		}
		if ms := *r.TTLMS; ms > 0 {
			l.ttl = time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { l.end("its time to live is over") })
		}
	}
	if r.IdleMS != nil {
		l.idle = time.Duration(max(*r.IdleMS, 0)) * time.Millisecond
		l.rearmLocked()
	}
}

func (l *life) rearmLocked() {
	if l.quiet != nil {
		l.quiet.Stop()
		l.quiet = nil
	}
	if l.uses > 0 || l.idle == 0 {
		return
	}
	l.waitLocked(l.idle)
}

// An idle time is waited for in so many steps, none of them shorter than this.
const (
	idleSteps = 64
	idleStep  = 100 * time.Millisecond
)

// waitLocked waits for what is left of the idle time, in steps: one in which the
// sandbox was frozen counts no more than the others.
func (l *life) waitLocked(left time.Duration) {
	step := min(left, max(l.idle/idleSteps, idleStep))
	var t *time.Timer
	t = time.AfterFunc(step, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.quiet != t: // somebody has used it
		case left > step:
			l.waitLocked(left - step)
		default:
			go l.end("nobody has used it for its idle time")
		}
	})
	l.quiet = t
}

// use notes that something goes on; the returned function ends that.
func (l *life) use() func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uses++
	l.rearmLocked()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.uses--
		l.rearmLocked()
	}
}
