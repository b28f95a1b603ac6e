//go:build linux

package pid1

import (
	"errors"

	"golang.org/x/sys/unix"
)

// inPlace has a traced process that enters a system call make another one, and then
// that again.
func inPlace(pid int, nr, arg0, arg1 uint64) error {
	var was unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &was); err != nil {
		return err
	}
	regs := was
	regs.Orig_rax, regs.Rdi, regs.Rsi = nr, arg0, arg1
	err := unix.PtraceSetRegs(pid, &regs)
	if err == nil {
		err = toCall(pid)
	}
	if err == nil {
		err = unix.PtraceGetRegs(pid, &regs)
	}
	if err != nil {
		return err
	}
	const instruction = 2 // bytes of a system call's
	was.Rip, was.Rax = was.Rip-instruction, was.Orig_rax
	err = unix.PtraceSetRegs(pid, &was)
	if regs.Rax != 0 {
		err = errors.Join(unix.Errno(-regs.Rax), err)
	}
	return err
}
