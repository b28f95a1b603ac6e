//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// landlockABI is Linux's alone.
func landlockABI() (int, error) { return 0, unix.ENOSYS }
