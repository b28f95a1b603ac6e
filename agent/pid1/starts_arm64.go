//go:build linux

package pid1

import "golang.org/x/sys/unix"

// machine is the kernel's number of the architecture.
const machine = unix.AUDIT_ARCH_AARCH64

// The system call that a program's C library (glibc since 2.34, musl) makes for its
// first thread, with any argument. A thread's own data needs none here, and Go's runtime
// makes none that it does not make often: Go's programs are not looked at again.
const (
	sysFirst  = unix.SYS_SET_TID_ADDRESS
	firstCond = unix.BPF_JGE
	firstArg  = 0
)
