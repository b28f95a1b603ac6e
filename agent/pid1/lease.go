//go:build linux

package pid1

import (
	"sync"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
)

// lease ties execs to the clients that answer for them. When the last of its
// connections is gone, and it does not keep its execs, they are ended after a
// grace in which a client may come back.
type lease struct {
	id    string
	keep  bool
	grace time.Duration

	mu    sync.Mutex
	conns int
	timer *time.Timer
	execs map[*exec]struct{}
}

// leases finds or makes a lease by its id.
func (a *Agent) joinLease(l wire.Lease) *lease {
	ms := l.GraceMS
	if ms <= 0 {
		ms = wire.DefaultGraceMS
	}
	ms = min(ms, wire.MaxGraceMS)
	a.mu.Lock()
	defer a.mu.Unlock()
	ls := a.leases[l.ID]
	if ls == nil {
		ls = &lease{id: l.ID, execs: map[*exec]struct{}{}}
		a.leases[l.ID] = ls
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.keep, ls.grace = l.Keep, time.Duration(ms)*time.Millisecond
	ls.conns++
	if ls.timer != nil {
		ls.timer.Stop()
		ls.timer = nil
	}
	return ls
}

// leave takes one connection off a lease.
func (a *Agent) leave(ls *lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.conns--
	if ls.conns > 0 {
		return
	}
	if ls.keep {
		if len(ls.execs) == 0 {
			delete(a.leases, ls.id)
		}
		return
	}
	ls.timer = time.AfterFunc(ls.grace, func() { a.expire(ls) })
}

// expire ends what nobody came back for.
func (a *Agent) expire(ls *lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ls.mu.Lock()
	if ls.conns > 0 {
		ls.mu.Unlock()
		return
	}
	delete(a.leases, ls.id)
	execs := make([]*exec, 0, len(ls.execs))
	for ex := range ls.execs {
		execs = append(execs, ex)
	}
	ls.mu.Unlock()
	for _, ex := range execs {
		ex.end(endedCanceled)
		ex.out.abandon()
		ex.read = true
		if ex.ended && ex.settled {
			a.forgetLocked(ex)
		}
	}
}

func (l *lease) add(ex *exec) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.execs[ex] = struct{}{}
}

func (l *lease) remove(ex *exec) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.execs, ex)
}
