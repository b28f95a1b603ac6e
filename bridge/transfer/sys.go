//go:build unix

package transfer

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const oNoFollow = unix.O_NOFOLLOW

// setTime sets an open file's time.
func setTime(f *os.File, mtime time.Time) error {
	at, err := unix.TimeToTimespec(mtime)
	if err != nil {
		return err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var no error
	err = raw.Control(func(fd uintptr) { no = futimens(int(fd), at) })
	return errors.Join(err, no)
}
