package cli

import "golang.org/x/sys/unix"

// flushInput drops what was typed at a terminal. Where it cannot, it is read.
func flushInput(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, 1) } // 1 is FREAD, of its headers
