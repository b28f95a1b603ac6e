//go:build unix

package transfer

import (
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
	return futimens(int(f.Fd()), at)
}
