//go:build linux

package pid1

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hide closes a process to all others of its user: they may not trace it, nor reach its
// memory or what it has open. That a process asks for itself, and no program begins so:
// it is made to ask in place of its next system call, which it makes then. The calling
// thread is locked, and nobody else waits for the process. One that has ended is hidden,
// and so is one that even its parent may not trace, as where Yama forbids that to all.
func hide(pid int) error {
	err := unix.PtraceSeize(pid)
	if errors.Is(err, unix.EPERM) {
		return nil
	}
	if err == nil {
		err = ask(pid)
		_ = unix.PtraceDetach(pid) // it has ended, or stands still
	}
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ECHILD) {
		return nil
	}
	return err
}

func ask(pid int) error {
	err := unix.PtraceInterrupt(pid)
	if err == nil {
		_, err = stopped(pid)
	}
	if err == nil {
		err = unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD)
	}
	if err == nil {
		err = toCall(pid)
	}
	if err != nil {
		return err
	}
	return inPlace(pid, unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
}

// toCall has a traced process go on until it enters or leaves a system call.
func toCall(pid int) error {
	const call = unix.SIGTRAP | 0x80
	for why := unix.SIGTRAP; why != call; {
		signal := 0
		if why&0xff != unix.SIGTRAP {
			signal = int(why) // it came meanwhile, and is the process's
		}
		err := unix.PtraceSyscall(pid, signal)
		if err == nil {
			why, err = stopped(pid)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stopped waits until a traced process stands still, and says why. How one has ended it
// leaves for others.
func stopped(pid int) (why unix.Signal, err error) {
	var info [128]byte // the kernel's siginfo_t: of a child, its status is the seventh int
	errno := unix.EINTR
	for errno == unix.EINTR {
		_, _, errno = unix.Syscall6(unix.SYS_WAITID, unix.P_PID, uintptr(pid), uintptr(unsafe.Pointer(&info)), unix.WSTOPPED|unix.WALL, 0, 0)
	}
	if errno != 0 {
		return 0, errno
	}
	return unix.Signal(*(*int32)(unsafe.Pointer(&info[24]))), nil
}
