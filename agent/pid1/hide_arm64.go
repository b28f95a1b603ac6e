//go:build linux

package pid1

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sets of registers, as the kernel numbers them: the general ones, and the number of a
// system call.
const (
	regsGeneral = 1     // NT_PRSTATUS
	regsCall    = 0x404 // NT_ARM_SYSTEM_CALL
)

// inPlace has a traced process that enters a system call make another one, and then
// that again.
func inPlace(pid int, nr, arg0, arg1 uint64) error {
	var was unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(pid, regsGeneral, &was); err != nil {
		return err
	}
	regs := was
	regs.Regs[0], regs.Regs[1] = arg0, arg1
	err := unix.PtraceSetRegSetArm64(pid, regsGeneral, &regs)
	if err == nil {
		err = setCall(pid, int32(nr))
	}
	if err == nil {
		err = toCall(pid)
	}
	if err == nil {
		err = unix.PtraceGetRegSetArm64(pid, regsGeneral, &regs)
	}
	if err != nil {
		return err
	}
	const instruction = 4 // bytes of a system call's
	was.Pc -= instruction
	err = unix.PtraceSetRegSetArm64(pid, regsGeneral, &was)
	if regs.Regs[0] != 0 {
		err = errors.Join(unix.Errno(-regs.Regs[0]), err)
	}
	return err
}

// setCall alters the number of the system call that a traced process enters.
func setCall(pid int, nr int32) error {
	at := unix.Iovec{Base: (*byte)(unsafe.Pointer(&nr))}
	at.SetLen(int(unsafe.Sizeof(nr)))
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETREGSET, uintptr(pid), regsCall, uintptr(unsafe.Pointer(&at)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
