//go:build linux

package pid1

import (
	"errors"
	osexec "os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
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

// TestLateJudge has a judge that comes by itself come after its exec ended: it hears what
// was started, and that this is all.
func TestLateJudge(t *testing.T) {
	s := newStarts(&Agent{})
	ex := &exec{req: &wire.Exec{ID: "brief"}, watched: s.of("brief")}
	ex.watched.began = time.Now()
	ex.watched.tell(func() *wire.Start { return &wire.Start{Path: "/bin/true"} })
	s.end(ex, true)
	w := s.of("brief")
	if w != ex.watched {
		t.Fatal("the exec was forgotten before its judge came")
	}
	if all := w.next(); len(all) != 1 || all[0].Path != "/bin/true" {
		t.Errorf("told %v", all)
	}
	if all := w.next(); all != nil {
		t.Errorf("told %v after the end", all)
	}
}
