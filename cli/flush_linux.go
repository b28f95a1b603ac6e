package cli

import "golang.org/x/sys/unix"

// flushInput drops what was typed at a terminal. Where it cannot, it is read.
func flushInput(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
