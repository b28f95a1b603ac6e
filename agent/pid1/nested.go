//go:build linux

package pid1

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Alone says how an agent works in a sandbox whose processes all belong to one
// user, as an ordinary user's do: it cannot become another, nor give an exec a group
// of its own. It is an administrator of the sandbox's user namespace, and gives each
// exec PID and mount namespaces of its own, which end with their first process: see
// [Inner].
type Alone struct {
	// Filter is the file of the filter of system calls for execs, "" for none.
	Filter string
	// Memory is how many bytes of data one process may have, and PIDs how many
	// processes there may be, the agent's threads among them. 0 is no limit.
	Memory, PIDs int64
}

// nest is an exec's own namespace, as the agent sees it.
type nest struct {
	socket *os.File
	own    time.Duration // of the inner process itself, before the program
	gone   chan struct{} // closed once its first process was reaped, and so all of it is gone
	usage  unix.Rusage   // of all of it; set before gone is closed
}

// sockets makes the two ends of what is spoken with an inner process.
func sockets() (ours *os.File, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, err
	}
	if ours, err = parentEnd(fds[0], "inner"); err != nil {
		return nil, -1, errors.Join(err, unix.Close(fds[1]))
	}
	return ours, fds[1], nil
}

// spawnNested starts an exec's program in namespaces of its own.
func (a *Agent) spawnNested(ex *exec, binary string, env []string, files [3]uintptr) error {
	ours, theirs, err := sockets()
	if err != nil {
		return err
	}
	c := a.cfg.Alone
	in := inner{Exec: ex.req.ID, Binary: binary, Argv: ex.req.Argv, Env: env, Dir: ex.dir, Filter: c.Filter, Memory: c.Memory, PIDs: c.PIDs}
	if h := a.claim.Harden; h != nil {
		in.Writable = h.Writable
	}
	ex.nest = &nest{socket: ours, gone: make(chan struct{})}
	attr := &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{files[0], files[1], files[2], uintptr(theirs)},
		Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS},
	}
	err = a.spawn.start(ex, wire.AgentPath, in.argv(), attr)
	_ = unix.Close(theirs) // the process's own stays; ours would hide its end
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	hear := json.NewDecoder(ours)
	var b begun
	switch err := hear.Decode(&b); {
	case err != nil:
		err = fmt.Errorf("an exec's namespace ended before its program began: %w", err)
		return errors.Join(err, a.abandon(ex))
	case b.Error != "":
		return errors.Join(fmt.Errorf("enclose an exec: %s", b.Error), a.abandon(ex))
	case b.Errno != 0:
		return errors.Join(b.Errno, a.abandon(ex))
	}
	if ex.shell != nil {
		if err := a.hideNested(ex); err != nil {
			return errors.Join(err, a.abandon(ex))
		}
	}
	ex.nest.own = time.Duration(b.OwnUS) * time.Microsecond
	go a.hearEnd(ex, hear)
	return nil
}

// hideNested closes a nested shell to what it starts.
func (a *Agent) hideNested(ex *exec) error {
	pid := a.shellPID(ex.shell)
	if pid == 0 {
		return nil // it has ended
	}
	return a.spawn.on(func() error {
		a.reaper.mu.Lock()
		defer a.reaper.mu.Unlock()
		return hide(pid)
	})
}

// abandon ends a namespace whose program did not begin.
func (a *Agent) abandon(ex *exec) error {
	if left := a.killNest(ex, time.Now().Add(killPatience)); left > 0 {
		return errors.New("its first process does not end")
	}
	return ex.nest.socket.Close()
}

// hearEnd waits for the program's end, and then for that of its namespace. Where
// that ended first, the program was killed with it.
func (a *Agent) hearEnd(ex *exec, hear *json.Decoder) {
	var e ended
	st := exitStatus{status: unix.WaitStatus(unix.SIGKILL)}
	if hear.Decode(&e) == nil {
		st.status = unix.WaitStatus(e.Status)
		st.usage = unix.Rusage{Utime: unix.NsecToTimeval(e.CPUUS * 1000), Maxrss: e.MaxRSS}
	}
	ex.exited <- st
	<-ex.nest.gone
	_ = ex.nest.socket.Close() // nothing is said any more
}

// killNest ends all that runs in an exec's namespace, and returns how many
// processes it could not end, of which it knows one.
func (a *Agent) killNest(ex *exec, deadline time.Time) int {
	_ = a.reaper.signal(ex, unix.SIGKILL) // it may be gone
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-ex.nest.gone:
		return 0
	case <-timer.C:
		return 1
	}
}

// signalNest has a signal handed on to the program, or to all in the namespace.
func (ex *exec) signalNest(sig unix.Signal, all bool) error {
	b := byte(sig)
	if all {
		b |= toAll
	}
	if _, err := ex.nest.socket.Write([]byte{b}); err != nil {
		return unix.ESRCH
	}
	return nil
}

// rest is the processor time of what the program left behind, once all is gone.
func (n *nest) rest(program *unix.Rusage) (cpu time.Duration, maxRSS int64) {
	select {
	case <-n.gone:
		return max(0, cpuTime(&n.usage)-n.own-cpuTime(program)), n.usage.Maxrss << 10
	default:
		return 0, 0
	}
}

// nested calls visit for every process of an exec, with the exec's group, which
// none of them carries itself: they descend from their namespace's first process,
// which gets every orphan there is. That one is not among them.
func (a *Agent) nested(visit func(procInfo)) error {
	parents := map[int]int{}
	var all []procInfo
	if err := scanAll(func(p procInfo) {
		parents[p.pid] = p.parent
		p.groups = nil
		all = append(all, p)
	}); err != nil {
		return err
	}
	firsts := a.reaper.groups()
	for _, p := range all {
		if firsts[p.pid] != 0 {
			continue
		}
		for at := p.parent; at > 1; at = parents[at] {
			if g := firsts[at]; g != 0 {
				p.groups = fmt.Append(nil, g)
				break
			}
		}
		visit(p)
	}
	return nil
}
