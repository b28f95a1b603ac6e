//go:build linux

package pid1

import (
	"errors"
	osexec "os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// How a process ended is known whenever it is asked for, also in the moment in which
// its parent waits for it.
func TestStatusOf(t *testing.T) {
	for range 1000 {
		cmd := osexec.Command("sh", "-c", "exit 3")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			_ = cmd.Wait() // its code is looked at below
		}()
		status, err := statusOf(fd)
		for errors.Is(err, errNotReaped) {
			status, err = statusOf(fd)
		}
		<-waited
		_ = unix.Close(fd)
		if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
			t.Skip("this kernel does not say how a process ended")
		}
		if err != nil || status.ExitStatus() != 3 {
			t.Fatalf("%v, %d", err, status.ExitStatus())
		}
	}
}
