//go:build linux

package pid1

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// How long a text may take to end by itself once it was interrupted, and its shell
// once what it started was killed too. Then the shell is killed.
const (
	interruptGrace = 250 * time.Millisecond
	shellGrace     = time.Second
)

// followRun waits for a run's end and has the last word. It is the run's one owner.
func (a *Agent) followRun(r *run, before counters, disks disks) {
	ex, sh := r.ex, r.sh
	defer close(ex.done)
	defer a.life.use()()
	watch := a.sampler.watch(disks)
	end := &wire.End{}
	said, ok := a.awaitRun(r, end)
	killed := end.ShellEnded != ""
	wall := time.Since(ex.started)
	close(ex.over)
	if ok {
		end.Code, _ = strconv.Atoi(said.status) // what is no number is 0, as is what no honest shell says
		end.Signal = signalOf(end)
	} else {
		a.shellEnded(r, end)
	}
	for i, p := range ex.pumps {
		r.writers[i].close()
		p.finish()
	}
	<-ex.pumps[0].drained
	<-ex.pumps[1].drained
	if !ok && !killed {
		r.lastWords()
	}
	if h := ex.leave(); h != (held{}) {
		end.HeldBytes, end.HeldEntries, end.Events = h.bytes, h.entries, append(end.Events, endedDisk)
	}
	left := a.look(r, end)
	a.account(ex, end, exitStatus{}, before, watch.stop(), wall)
	a.accountRun(r, end, said)
	if end.Ended == "" && (ex.pumps[0].over || ex.pumps[1].over) {
		end.Ended = endedOutput
	}
	ex.dropStdin()
	end.Touched = a.trackRun(ex, left)
	sh.release(r)
	ex.out.finish(end)
	a.conclude(ex, true)
	runtime.Gosched() // the end is told before what it leaves is cleared away
	r.remove()
	for _, p := range ex.pumps {
		go p.trail()
	}
}

// signalOf is the signal that a status tells of, as shells do. Ours is none.
func signalOf(end *wire.End) int {
	if end.Ended == "" && end.Code > 128 && end.Code <= 128+64 {
		return end.Code - 128
	}
	return 0
}

// awaitRun waits until the shell has answered, or has ended. Where the run is to end
// it is interrupted, and then what it started killed, and then the shell.
func (a *Agent) awaitRun(r *run, end *wire.End) (answer, bool) {
	var deadline <-chan time.Time
	timer := time.NewTimer(r.ex.left())
	defer timer.Stop()
	if r.ex.req.TimeoutMS > 0 {
		deadline = timer.C
	}
	for going := true; going; {
		select {
		case said := <-r.answered:
			return said, true
		case <-r.sh.ex.over:
			return r.late()
		case <-deadline:
			if left := r.ex.left(); left > 0 {
				timer.Reset(max(left, clockStep))
				continue
			}
			end.Ended = endedTimeout
		case why := <-r.ex.stop:
			end.Ended, end.Cause = why.by, why.cause
		}
		going = false
	}
	r.ex.dropStdin() // what waits for more of it goes on
	a.interrupt(r)
	said, ok := r.within(interruptGrace)
	if !ok {
		_, _ = a.killOnce(r) // until it is interrupted the shell may start more
		said, ok = r.within(shellGrace / 4)
	}
	for try := 0; !ok && try < 4; try++ {
		a.interrupt(r) // what it was in may have taken the one before for its own
		r.sh.again()   // or that may have met what begins the loop anew
		said, ok = r.within(shellGrace / 4)
	}
	if ok {
		end.Survivors = a.killRun(r)
		return said, true
	}
	if isClosed(r.sh.ex.over) {
		return r.late()
	}
	end.ShellEnded = "it could not be interrupted, and was killed"
	r.sh.ex.end(end.Ended)
	_ = a.signal(r.sh.ex, unix.SIGKILL) // it may have ended
	<-r.sh.ex.over
	return answer{}, false
}

// late is the answer of a shell that has ended since it gave it.
func (r *run) late() (answer, bool) {
	select {
	case said := <-r.answered:
		return said, true
	default:
		return answer{}, false
	}
}

func (r *run) within(d time.Duration) (answer, bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case said := <-r.answered:
		return said, true
	case <-r.sh.ex.over:
	case <-t.C:
	}
	return answer{}, false
}

// interrupt does what Ctrl-C would. Jobs in the background ignore it.
func (a *Agent) interrupt(r *run) { a.signalRun(r.ex, unix.SIGINT) }

// signalRun signals what runs in a shell: with SIGINT and SIGQUIT the group of its
// terminal, if it had one, and else what the run has started. It returns how many
// processes there were.
func (a *Agent) signalRun(ex *exec, sig unix.Signal) int {
	r := ex.shell.running()
	if r == nil || r.ex != ex {
		return 0
	}
	own := a.shellPID(ex.shell)
	if sig == unix.SIGINT || sig == unix.SIGQUIT {
		if own <= 1 || unix.Kill(-own, sig) != nil {
			return 0
		}
		return 1
	}
	n := 0
	_, _ = a.members(ex.shell.ex.group, func(pid int) { // where /proc cannot be read, there is nobody to signal
		if pid != own && !r.before[pid] && unix.Kill(pid, sig) == nil {
			n++
		}
	})
	return n
}

// shellPID is the shell's own process. Where that is nested it is the first child of
// its namespace's first process, which is asked for once.
func (a *Agent) shellPID(sh *shell) int {
	if sh.ex.nest == nil {
		return sh.ex.pid
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return a.shellPIDLocked(sh)
}

func (a *Agent) shellPIDLocked(sh *shell) int {
	if sh.ex.nest == nil {
		return sh.ex.pid
	}
	if sh.pid == 0 {
		_ = a.scan(func(p procInfo) { // where /proc cannot be read it stays unknown
			if p.parent == sh.ex.pid && (sh.pid == 0 || p.pid < sh.pid) {
				sh.pid = p.pid
			}
		})
	}
	return sh.pid
}

// running is the run that the shell is at, nil between two.
func (sh *shell) running() *run {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.run
}

// killRun kills what a run has started, and returns how many it could not end.
func (a *Agent) killRun(r *run) int {
	deadline := time.Now().Add(killPatience)
	pause := 200 * time.Microsecond
	for clean := 0; clean < 2; {
		alive, err := a.killOnce(r)
		if err == nil && alive == 0 {
			clean++
			continue
		}
		clean = 0
		if time.Now().After(deadline) {
			return max(alive, 1)
		}
		time.Sleep(pause) //nolint:forbidigo // as in killGroup
		pause = min(2*pause, 10*time.Millisecond)
	}
	return 0
}

// killOnce kills what is there of a run at one look, and returns how many that were.
func (a *Agent) killOnce(r *run) (alive int, err error) {
	own := a.shellPID(r.sh)
	parents := map[int]int{}
	var found []int
	err = a.scan(func(p procInfo) {
		parents[p.pid] = p.parent
		if p.inGroup(r.sh.ex.group) && p.pid != own && !p.dead() {
			found = append(found, p.pid)
		}
	})
	for _, pid := range found {
		if !r.earlier(pid, parents) {
			alive++
			_ = unix.Kill(pid, unix.SIGKILL) // gone meanwhile is what we want
		}
	}
	return alive, err
}

// earlier reports whether a process was there before the run, or descends from one that
// was: that may start others all the time.
func (r *run) earlier(pid int, parents map[int]int) bool {
	for range len(parents) { // which change while they are read, and may lead in a circle
		if r.before[pid] {
			return true
		}
		pid = parents[pid]
	}
	return false
}

// shellEnded says how a shell's process has ended.
func (a *Agent) shellEnded(r *run, end *wire.End) {
	st := r.sh.ex.last.status
	end.Code, end.Signal = codeOf(st)
	if end.ShellEnded != "" {
		return
	}
	end.ShellEnded = fmt.Sprintf("it exited with %d", end.Code)
	if st.Signaled() {
		end.ShellEnded = fmt.Sprintf("%s killed it", unix.SignalName(st.Signal()))
	}
}

// lastWords are what a shell put out at its end, when the run's streams were no more
// its own: a trap of its EXIT does.
func (r *run) lastWords() {
	sh := r.sh.ex
	<-sh.done // all of it is there
	for i := range sh.out.streams {
		sh.out.mu.Lock()
		s := &sh.out.streams[i]
		at := max(r.base[i], s.base)
		var words []byte
		for at < s.total() {
			part := s.view(at, chunkSize)
			words, at = append(words, part...), at+int64(len(part))
		}
		sh.out.mu.Unlock()
		if len(words) > 0 {
			r.ex.pumps[i].keep(words)
		}
	}
}

// look finds out where the shell is now, and whether anything that it started lives.
func (a *Agent) look(r *run, end *wire.End) (left bool) {
	sh := r.sh
	var err error
	if !a.leadersOnly() {
		n, failed := a.members(sh.ex.group, func(int) {})
		left = failed != nil || n > 1 || n == 1 && end.ShellEnded != ""
	}
	sh.jobs.Store(left)
	dir := ""
	if own := a.shellPID(sh); end.ShellEnded == "" && own > 0 {
		dir, err = os.Readlink(fmt.Sprintf("/proc/%d/cwd", own)) // which CAP_SYS_PTRACE is for
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if dir != "" && err == nil {
		sh.held.Dir = dir
	}
	end.Dir = sh.held.Dir
	return left
}

// trackRun is trackEnd for a run: what it started is the shell's.
func (a *Agent) trackRun(ex *exec, left bool) int {
	if !ex.req.Track {
		return 0
	}
	return a.tracker.End(ex.req.ID, left || a.leftovers())
}

// accountRun fills in what a run used, as its shell tells, which the kernel told.
func (a *Agent) accountRun(r *run, end *wire.End, said answer) {
	host := r.sh.ex
	host.mu.Lock()
	orphans := host.orphans
	host.mu.Unlock()
	all := host.watched.totals()
	end.Starts, end.Refused, end.Unjudged = all[0]-r.starts[0], all[1]-r.starts[1], all[2]-r.starts[2]
	sh := r.sh
	sh.mu.Lock()
	defer sh.mu.Unlock()
	was := sh.used
	cpu := readTimes(said.used)
	if wall := time.Duration(end.Usage.WallUS) * time.Microsecond; max(wall, cpu-was.shell) > coarse {
		cpu = checkedTimes(cpu, a.shellPIDLocked(sh))
	}
	end.Usage.CPUMethod = "times of the shell"
	if end.ShellEnded != "" {
		cpu, end.Usage.CPUMethod = cpuTime(&host.last.usage), "rusage of the shell and what it waited for"
	}
	sh.errexit = said.errexit
	sh.used.shell, sh.used.orphans = max(cpu, was.shell), orphans
	sh.status = end.Code
	end.Usage.CPUUS = (max(0, cpu-was.shell) + orphans - was.orphans).Microseconds()
}

// readTimes reads what the builtin times prints.
func readTimes(s string) (sum time.Duration) {
	for word := range strings.FieldsSeq(s) {
		d, err := time.ParseDuration(strings.Replace(word, ",", ".", 1)) // as its locale has it
		if err == nil && d > 0 {
			sum += d
		}
	}
	return sum
}

// A tick is what the kernel tells everybody the times of processes in, rounded down: of
// four such times the sum is coarse.
const (
	tick   = 10 * time.Millisecond
	coarse = 5 * tick
)

// checkedTimes is what a process and those that it waited for have used, where anybody
// may have said what that is.
func checkedTimes(said time.Duration, pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return said // it is gone, which tells
	}
	const first, last = 11, 15 // behind its name: of its own, and of those
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	sum := time.Duration(0)
	for _, field := range fields[min(first, len(fields)):min(last, len(fields))] {
		sum += time.Duration(parseInt(field)) * tick
	}
	if said < sum || said > sum+coarse {
		return sum
	}
	return said
}
