//go:build linux

package pid1

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/harden"
)

// canSeeStarts reports whether the kernel can tell an agent that is not alone what is
// started. It changes nothing.
func canSeeStarts(alone bool) bool { return !alone && harden.SeesStarts() == nil }

// Offsets in the kernel's struct seccomp_data, and the bit of the system calls of the
// x32 kind.
const (
	dataNr   = 0
	dataArch = 4
	dataArgs = 16
	x32Bit   = 0x40000000
)

// startsFilter is a program of the packet filter that has every start told, but for
// that of who has the key in the registers that execve does not use; and what a
// program's C library does before anything of the program runs, so that it can be
// looked at again. System calls of other architectures, which have
// numbers of their own, do not exist.
func startsFilter(key [3]uint64) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(cond uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | cond | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	absent := answer(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
	f := []unix.SockFilter{
		load(dataArch), jump(unix.BPF_JEQ, machine, 1, 0), absent,
		load(dataNr), jump(unix.BPF_JGE, x32Bit, 0, 1), absent,
		jump(unix.BPF_JEQ, unix.SYS_EXECVE, 6, 0), jump(unix.BPF_JEQ, unix.SYS_EXECVEAT, 3, 0),
		jump(unix.BPF_JEQ, sysFirst, 0, 3), load(dataArgs), jump(firstCond, firstArg, 0, 1),
		answer(unix.SECCOMP_RET_USER_NOTIF), answer(unix.SECCOMP_RET_ALLOW),
	}
	for i, word := range []uint32{uint32(key[0]), uint32(key[0] >> 32), uint32(key[1]), uint32(key[1] >> 32), uint32(key[2]), uint32(key[2] >> 32)} {
		f = append(f, load(dataArgs+8*3+4*uint32(i)), jump(unix.BPF_JEQ, word, 1, 0), answer(unix.SECCOMP_RET_USER_NOTIF))
	}
	return append(f, answer(unix.SECCOMP_RET_ALLOW))
}

// installStarts has the starts of all that the calling thread makes from now on told
// by the file that it returns. It cannot be taken back.
func installStarts(key [3]uint64) (*os.File, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("give up new privileges: %w", err)
	}
	f := startsFilter(key)
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, harden.StartsFlags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(f)
	if errno != 0 {
		return nil, fmt.Errorf("see what is started: %w", errno)
	}
	// Who waits and who answers take turns: the one may run where the other did. A
	// kernel that does not know that is slower.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return os.NewFile(fd, "starts"), nil
}

// notice is the kernel's struct seccomp_notif.
type notice struct {
	ID    uint64
	PID   uint32 // a thread's
	Flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// response is the kernel's struct seccomp_notif_resp.
type response struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// receive waits for the next notice.
func receive(fd uintptr) (*notice, error) {
	for {
		n := &notice{} // the kernel takes no other
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(n)))
		switch errno {
		case 0:
			return n, nil
		case unix.EINTR, unix.ENOENT: // the process was killed meanwhile
		default:
			return nil, errno
		}
	}
}

// waits reports whether a notice's process still waits for its answer, and so that
// what was read of it was not another's with the same number.
func (n *notice) waits(fd uintptr) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&n.ID)))
	return errno == 0
}

// answer lets a start pass, or has it fail; an errno of 0 is that it may not be run. A
// process that is gone needs none.
func (n *notice) answer(fd uintptr, errno unix.Errno, allow bool) {
	r := response{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if !allow {
		r = response{ID: n.ID, Error: -int32(cmp.Or(errno, unix.EACCES))}
	}
	_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
}
