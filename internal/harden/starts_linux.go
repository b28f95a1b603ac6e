package harden

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// StartsFlags are how the kernel is asked to tell of starts. A process that waits for
// an answer can be killed meanwhile and is not woken by other signals: else one whose
// timer goes off again and again would never get its answer.
const StartsFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// SeesStarts reports why the kernel tells no agent of the calling process's kind what
// programs start, or nil. It changes nothing. An agent that is one user with what it
// runs hears nothing either way: it could be written into.
func SeesStarts() error {
	if _, known := machines[runtime.GOARCH]; !known {
		return fmt.Errorf("not known on %s", runtime.GOARCH)
	}
	// A filter that cannot be read is looked at after the flags.
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, StartsFlags, 0)
	if errno != unix.EFAULT {
		return fmt.Errorf("the kernel does not tell what is started, as Linux 5.19 and newer do: %w", errno)
	}
	return nil
}
