package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram takes the pages of the program's file out of this process. They are
// found again where they are, in the system's cache of files, when they are next used;
// until then that is all who holds them, and may drop them at no cost. What was written
// to, as relocations are, is no page of the file any more, and stays.
func unmapProgram() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer f.Close()
	var errs []error
	var from, to uintptr
	ours := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		switch fields := strings.Fields(line); {
		case strings.Contains(fields[0], "-"): // a mapping's first line
			ours = false
			if len(fields) == 6 && fields[5] == self && (fields[1] == "r-xp" || fields[1] == "r--p") {
				n, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to)
				ours = n == 2 && err == nil
			}
		case ours && fields[0] == "Anonymous:" && fields[1] == "0":
			if _, _, no := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); no != 0 {
				errs = append(errs, no)
			}
		}
	}
	return errors.Join(errs...)
}
