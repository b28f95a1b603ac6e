package transfer

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// futimens sets the times of an open file itself: no name, no link in between.
func futimens(fd int, at unix.Timespec) error {
	times := [2]unix.Timespec{at, at}
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
