//go:build linux

package pid1

import "golang.org/x/sys/unix"

// machine is the kernel's number of the architecture.
const machine = unix.AUDIT_ARCH_X86_64

// The system call by which a program's C library, or Go's runtime, gets its first
// thread its own data: arch_prctl(ARCH_SET_FS, …).
const (
	sysFirst  = unix.SYS_ARCH_PRCTL
	firstCond = unix.BPF_JEQ
	firstArg  = 0x1002
)
