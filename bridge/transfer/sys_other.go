//go:build unix && !linux

package transfer

import "golang.org/x/sys/unix"

// futimens sets the times of an open file itself, to the microsecond.
func futimens(fd int, at unix.Timespec) error {
	tv := unix.NsecToTimeval(at.Nano())
	return unix.Futimes(fd, []unix.Timeval{tv, tv})
}
