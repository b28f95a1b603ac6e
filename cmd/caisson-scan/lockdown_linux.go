package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/policy/scanner"
)

const (
	memory  = 768 << 20 // bytes of data
	virtual = 8 << 30   // address space: Go reserves much more than it uses
	cpu     = 120       // seconds over the life of a process
	nobody  = 65534
)

// lockdown takes everything away that parsing does not need. Each step says
// whether it was reached; the level is the highest whose steps all were.
func lockdown(h scanner.Hello) scanner.Ready {
	var r scanner.Ready
	step := func(name string, err error) bool {
		if err != nil {
			name += ": " + err.Error()
		}
		r.Steps = append(r.Steps, name)
		return err == nil
	}
	debug.SetMemoryLimit(memory / 2)
	debug.SetGCPercent(200) // a little memory for a twentieth of the time
	limited := step("closed inherited descriptors", closeInherited())
	step("empty root", emptyRoot())
	limited = step("limits", limits()) && limited
	limited = step("not dumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)) && limited
	limited = step("unprivileged user", unprivileged()) && limited
	limited = step("no new privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) && limited
	r.Lockdown = scanner.Open
	if !limited {
		return r
	}
	r.Lockdown = scanner.Limited
	if !step("system call filter", filter()) {
		return r
	}
	r.Lockdown = scanner.Filtered
	if h.Namespaces {
		r.Steps = append(r.Steps, "own network, ipc and uts namespaces")
		r.Lockdown = scanner.Isolated
	}
	return r
}

// closeInherited closes what was open before this program began, but for its
// standard streams. That is all that would stay open over another exec: what the
// runtime opens for itself would not.
func closeInherited() error {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil {
			return err
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if fd < 3 || err != nil || flags&unix.FD_CLOEXEC != 0 { // err: it was that of the list
			continue
		}
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// emptyRoot moves to a root without files, where that is permitted: the
// directory of a descriptor table, which nobody can write.
func emptyRoot() error {
	if err := unix.Chroot("/proc/self/fdinfo"); err != nil {
		return err
	}
	return unix.Chdir("/")
}

func limits() error {
	for _, l := range []struct {
		what int
		n    uint64
	}{
		{unix.RLIMIT_AS, virtual}, {unix.RLIMIT_DATA, memory}, {unix.RLIMIT_CPU, cpu}, {unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_NOFILE, 64}, {unix.RLIMIT_MEMLOCK, 0}, {unix.RLIMIT_MSGQUEUE, 0},
	} {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.n, Max: l.n}); err != nil {
			return fmt.Errorf("limit %d: %w", l.what, err)
		}
	}
	return nil
}

// unprivileged gives up root for good. Another user has nothing to give up but
// the capabilities of a user namespace, which no system call that the filter
// lets through can use.
func unprivileged() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := unix.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := unix.Setresgid(nobody, nobody, nobody); err != nil {
		return fmt.Errorf("setresgid: %w", err)
	}
	if err := unix.Setresuid(nobody, nobody, nobody); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	return nil
}

// filter allows the system calls that the Go runtime and malloc need and
// refuses all others with EPERM; those that only an attack would make end the
// process. It holds for all threads.
func filter() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	prog := program(uint32(os.Getpid()))
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return errno
	}
	return nil
}
