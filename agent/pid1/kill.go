//go:build linux

package pid1

import (
	"time"

	"golang.org/x/sys/unix"
)

// killPatience is how long the agent tries to end an exec before it reports
// survivors. A process can be out of reach only inside the kernel.
const killPatience = 5 * time.Second

// endAll kills everything that ex started, waits until it is gone, and returns
// how many processes it could not end.
func (a *Agent) endAll(ex *exec) int {
	deadline := time.Now().Add(killPatience)
	if a.childless() {
		return 0
	}
	// One call under the kernel's own lock, which a fork cannot slip past: it
	// reaches everything in the agent's own namespace but the agent. ESRCH: nothing is left.
	var spawned uint64
	kill := func() {
		spawned = a.reaper.spawned.Load()
		_ = unix.Kill(-1, unix.SIGKILL)
	}
	// It would reach relays as well.
	if unix.Getpid() == 1 && !a.relays.Load() && a.killAlone(ex, kill) && a.reaper.awaitEmpty(deadline, spawned) {
		return 0
	}
	return a.killRest(ex, deadline)
}

// killRest kills what is left of an exec, whatever runs beside it.
func (a *Agent) killRest(ex *exec, deadline time.Time) int {
	if ex.nest != nil {
		return a.killNest(ex, deadline)
	}
	return a.killGroup(ex.group, deadline)
}

// killGroup kills by the exec's group, until two looks in a row find nothing:
// one look can miss a process that was forked behind it.
func (a *Agent) killGroup(group int, deadline time.Time) int {
	pause := 200 * time.Microsecond
	for clean := 0; ; {
		alive, err := a.members(group, func(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }) // gone meanwhile is what we want
		if err == nil && alive == 0 {
			if clean++; clean == 2 {
				return 0
			}
			continue
		}
		clean = 0
		if time.Now().After(deadline) {
			return max(alive, 1)
		}
		// The kernel tells nobody but the parent that a process is gone, and
		// the parents are strangers: there is only looking again.
		time.Sleep(pause) //nolint:forbidigo // nothing tells when strangers' children are gone
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// leadersOnly reports whether nothing runs but the first processes of execs, each of
// which has one thread: then nobody needs to be looked for. Where it cannot be told it
// is false.
func (a *Agent) leadersOnly() bool {
	if a.cfg.Alone != nil || unix.Getpid() != 1 {
		return false // the counter is of others, too
	}
	r := a.reaper
	r.mu.Lock() // so that none begins, and none is reaped
	defer r.mu.Unlock()
	own := ownTasks() // before all are counted: the agent's may become more
	return own > 0 && a.cgroup.tasks()-own == len(r.leaders)
}

// members calls visit for each process of a group, and counts those that live.
// What looks dead is visited too: a signal does it no harm.
func (a *Agent) members(group int, visit func(pid int)) (int, error) {
	alive := 0
	err := a.scan(func(p procInfo) {
		if !p.inGroup(group) {
			return
		}
		visit(p.pid)
		if !p.dead() {
			alive++
		}
	})
	return alive, err
}
