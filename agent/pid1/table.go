//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Groups that mark an exec's processes. They stay below 65536, which rootless
// engines map, and above the users' own.
const (
	firstGroup = 60000
	groupCount = 5000
)

// keepEnded bounds the ended execs whose output waits for a client.
const keepEnded = 256

// keepForbidden bounds the ids that may not begin: a request is on its way for moments.
const keepForbidden = 256

var errBusy = errors.New("too many execs: end some, or wait for them")

// register gives ex its group and its place in the table.
func (a *Agent) register(ex *exec) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.execs[ex.req.ID] != nil {
		return fmt.Errorf("exec %s exists", ex.req.ID)
	}
	if slices.Contains(a.forbidden, ex.req.ID) {
		return fmt.Errorf("exec %s was killed before it began", ex.req.ID)
	}
	if len(a.execs) >= keepEnded {
		a.sweepLocked()
	}
	for range groupCount {
		g := firstGroup + a.nextGroup%groupCount
		a.nextGroup++
		if a.groups[g] == nil {
			ex.group = g
			a.groups[g] = ex
			a.execs[ex.req.ID] = ex
			ex.lease.add(ex)
			a.shareLocked()
			return nil
		}
	}
	return errBusy
}

// forget takes ex, which has no process, out of the table.
func (a *Agent) forget(ex *exec) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgetLocked(ex)
}

func (a *Agent) forgetLocked(ex *exec) {
	delete(a.execs, ex.req.ID)
	delete(a.groups, ex.group)
	ex.lease.remove(ex)
	a.shareLocked()
}

// expectMany notes that an exec goes on starting programs.
func (a *Agent) expectMany(ex *exec) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ex.many = true
	a.shareLocked()
}

// shareLocked tells how many processors the execs that can have processes need.
func (a *Agent) shareLocked() {
	if a.cfg.Procs == nil {
		return
	}
	live := 0
	for _, ex := range a.execs {
		if !ex.settled {
			live++
		}
		if !ex.settled && ex.many { // else its starts would hand the one processor to and fro
			live++
		}
	}
	if n := min(max(live, 1), 2); n != a.procs {
		a.procs = n
		a.cfg.Procs(n)
	}
}

// conclude notes that ex has ended.
func (a *Agent) conclude(ex *exec, settled bool) {
	a.outward.end(ex.req.ID)
	a.calling.end(ex.req.ID)
	a.mu.Lock()
	defer a.mu.Unlock()
	ex.ended = true
	ex.settled = settled || a.childless()
	if ex.read && ex.settled {
		a.forgetLocked(ex)
	}
	a.shareLocked()
}

// delivered notes that a client has all of ex's output and its end.
func (a *Agent) delivered(ex *exec) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ex.read = true
	if ex.ended && ex.settled {
		a.forgetLocked(ex)
	}
}

// sweepLocked looks once at all processes, marks the execs that have none
// left, and drops what nobody will ask for: what was read, and the oldest
// beyond keepEnded.
func (a *Agent) sweepLocked() {
	living := map[int]int{}
	if err := a.scan(func(p procInfo) {
		if !p.dead() {
			living[p.execGroup()]++
		}
	}); err != nil {
		return // without a look nothing is known to be gone
	}
	var ended []*exec
	for _, ex := range a.execs {
		if ex.shell != nil && !ex.inShell() {
			ex.shell.jobs.Store(living[ex.group] > 1)
		}
		if !ex.ended {
			continue
		}
		ex.settled = living[ex.group] == 0
		switch {
		case ex.settled && ex.read:
			a.forgetLocked(ex)
		case ex.settled:
			ended = append(ended, ex)
		}
	}
	for len(ended) >= keepEnded {
		oldest := 0
		for i := range ended {
			if ended[i].since.Before(ended[oldest].since) {
				oldest = i
			}
		}
		a.forgetLocked(ended[oldest])
		ended[oldest] = ended[len(ended)-1]
		ended = ended[:len(ended)-1]
	}
}

// aloneLocked reports whether no other exec can have processes.
func (a *Agent) aloneLocked(ex *exec) bool {
	for _, other := range a.execs {
		if other != ex && !other.settled {
			return false
		}
	}
	return true
}

func (a *Agent) find(id string) *exec {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.execs[id]
}

// findOrForbid finds an exec, or sees to it that there never is one of that id: a
// request for it may still be on its way.
func (a *Agent) findOrForbid(id string) *exec {
	a.mu.Lock()
	defer a.mu.Unlock()
	ex := a.execs[id]
	if ex == nil && !slices.Contains(a.forbidden, id) {
		if len(a.forbidden) == keepForbidden {
			a.forbidden = slices.Delete(a.forbidden, 0, 1)
		}
		a.forbidden = append(a.forbidden, id)
	}
	return ex
}

// list describes every exec in the table.
func (a *Agent) list() []wire.ExecInfo {
	processes := map[int]int{}
	_ = a.scan(func(p procInfo) { // an unreadable /proc shows as no processes
		if !p.dead() {
			processes[p.execGroup()]++
		}
	})
	infos, seen := a.listed(processes)
	room := listText
	for i, w := range seen { // which is locked before the agent
		infos[i].Starts, infos[i].StartsLeftOut = w.list(&room)
	}
	return infos
}

// listed describes the execs, the oldest first, and has by its place in that what is known
// of the starts of each that runs.
func (a *Agent) listed(processes map[int]int) (infos []wire.ExecInfo, seen map[int]*watched) {
	seen = map[int]*watched{}
	a.mu.Lock()
	defer a.mu.Unlock()
	infos = make([]wire.ExecInfo, 0, len(a.execs))
	oldest := slices.SortedFunc(maps.Values(a.execs), func(x, y *exec) int { return x.since.Compare(y.since) })
	for _, ex := range oldest {
		if ex.shownPID == 0 {
			continue // it is being started
		}
		if ex.watched != nil && !ex.ended {
			seen[len(infos)] = ex.watched
		}
		stdout, stderr := ex.out.totals()
		infos = append(infos, wire.ExecInfo{
			ID: ex.req.ID, Argv: shortened(ex.req.Argv), PID: ex.shownPID, AgeMS: time.Since(ex.since).Milliseconds(), Running: !ex.ended,
			Processes: processes[ex.group], Stdout: stdout, Stderr: stderr, Lease: ex.lease.id,
		})
	}
	return infos, seen
}

// shortened cuts an argv to what a list shows, so that a list of many execs
// fits into one message.
func shortened(argv []string) []string {
	const args, length = 8, 64
	short := make([]string, 0, min(len(argv), args))
	for _, arg := range argv[:min(len(argv), args)] {
		short = append(short, arg[:min(len(arg), length)])
	}
	return short
}

// show lets ex, whose process runs now, appear in lists.
func (a *Agent) show(ex *exec) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ex.shownPID, ex.since = ex.pid, ex.started
}

// killAlone kills everything in the sandbox if ex is the only exec that can
// have processes, and reports whether it was. The lock keeps out an exec that
// begins meanwhile: it registers before it forks.
func (a *Agent) killAlone(ex *exec, kill func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.aloneLocked(ex) {
		return false
	}
	kill()
	return true
}
