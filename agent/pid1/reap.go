//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// exitStatus is what the kernel said when a process was reaped.
type exitStatus struct {
	status unix.WaitStatus
	usage  unix.Rusage
}

// reaper is the one place that waits for processes. It gives an exec the
// status of its own process, and books the CPU time of those that were
// re-parented to the agent to the exec whose group they carry.
//
//	spawn: mu held over fork and registration, so that a process that ends at
//	       once is known by the time it is reaped
//	reap:  waitid(WNOWAIT) looks, mu is taken, wait4 takes
type reaper struct {
	mu      sync.Mutex
	changed sync.Cond
	spawned atomic.Uint64 // counts registrations, under mu; read by anybody
	empty   bool          // the kernel said that there is no child, and none was spawned since
	leaders map[int]*exec // by pid
	orphan  func(group int, st exitStatus)
}

func newReaper(orphan func(int, exitStatus)) *reaper {
	r := &reaper{leaders: map[int]*exec{}, empty: true, orphan: orphan}
	r.changed.L = &r.mu
	return r
}

// run reaps for ever. It blocks in the kernel, and so keeps a thread busy.
func (r *reaper) run() {
	for {
		r.mu.Lock()
		seen := r.spawned.Load()
		r.mu.Unlock()
		pid, err := peek(0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			r.mu.Lock()
			if r.spawned.Load() == seen {
				r.empty = true
				r.changed.Broadcast()
			}
			for r.spawned.Load() == seen {
				r.changed.Wait()
			}
			r.mu.Unlock()
		case err != nil:
			panic(fmt.Sprintf("waitid: %v", err)) // the call's arguments are constant
		default:
			r.take(pid)
			runtime.Gosched() // who was told goes on at once, on this very thread
		}
	}
}

// take reaps one zombie and tells who waits for it.
func (r *reaper) take(pid int) {
	r.mu.Lock()
	_, leader := r.leaders[pid] // a spawn registers before it lets go of mu
	r.mu.Unlock()
	var info procInfo
	known := false
	if !leader {
		info, known = readProc(pid) // while it is a zombie; a leader's group is known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var st exitStatus
	got, err := unix.Wait4(pid, &st.status, unix.WNOHANG, &st.usage)
	if err != nil || got != pid {
		return // a failed spawn has waited for it already
	}
	if ex := r.leaders[pid]; ex != nil {
		delete(r.leaders, pid)
		if ex.nest != nil {
			ex.nest.usage = st.usage
			close(ex.nest.gone)
			return
		}
		ex.exited <- st
		return
	}
	if known {
		r.orphan(info.execGroup(), st)
	}
}

// peek finds a process that can be reaped and leaves it as it is.
func peek(options int) (pid int, err error) {
	// The kernel's siginfo_t: three ints, padding on 64 bits, then the pid.
	var info [128]byte
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)),
		uintptr(unix.WEXITED|unix.WNOWAIT|options), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	offset := 12
	if unsafe.Sizeof(uintptr(0)) == 8 {
		offset = 16
	}
	return int(*(*int32)(unsafe.Pointer(&info[offset]))), nil
}

// childless reports whether no process is left but the agent: all processes of
// the sandbox descend from it, and an orphan becomes its child.
func childless() bool {
	_, err := peek(unix.WNOHANG)
	return errors.Is(err, unix.ECHILD)
}

// awaitEmpty waits until the sandbox has no process but the agent, and reports
// whether it got there before the deadline. It gives up at once where another
// process was spawned after the given count: that one would be waited for too.
func (r *reaper) awaitEmpty(deadline time.Time, spawned uint64) bool {
	timer := time.AfterFunc(time.Until(deadline), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.empty && r.spawned.Load() == spawned && time.Now().Before(deadline) {
		r.changed.Wait()
	}
	return r.empty
}

// groups are those of the execs by the pids of their own processes.
func (r *reaper) groups() map[int]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[int]int, len(r.leaders))
	for pid, ex := range r.leaders {
		all[pid] = ex.group
	}
	return all
}

// signal sends sig to an exec's own process if that has not been reaped.
func (r *reaper) signal(ex *exec, sig unix.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leaders[ex.pid] != ex {
		return unix.ESRCH
	}
	return unix.Kill(ex.pid, sig)
}
