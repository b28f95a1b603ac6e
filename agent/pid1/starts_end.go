//go:build linux

package pid1

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// mostFollowed is how many starts of an exec are told of once more, when they have
// ended: the first, which a host tells one by one.
const mostFollowed = 256

// started is a process that became what start n says. Its end is the kernel's to tell,
// by a file that stands for the process: its parent is a stranger.
type started struct {
	n    uint64
	fd   int
	file *os.File // the same
	end  wire.StartEnd
	gone bool // it has ended; end says when
	told bool // and how, as far as can be known
}

// follow has the end of start n told, which a process that waits is about to become.
func (w *watched) follow(pid int, n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.showPassedLocked(n)
	if p := w.running[pid]; p != nil {
		if w.lookLocked(pid, p); !p.gone {
			w.endLocked(p.n, &wire.StartEnd{AtUS: time.Since(w.began).Microseconds(), Replaced: true})
			p.n = n
			return
		}
		w.forgetLocked(pid, p) // another one with its number
	}
	if n > mostFollowed || w.done {
		return
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return // how it ends stays unknown
	}
	p := &started{n: n, fd: fd, file: os.NewFile(uintptr(fd), "process")}
	w.running[pid] = p
	go w.await(pid, p)
}

// await waits for the end of a process, and closes the file that stands for it.
func (w *watched) await(pid int, p *started) {
	defer p.file.Close()
	conn, err := p.file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(uintptr) bool { // an error is that nobody waits any more
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lookLocked(pid, p)
		return p.told
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgetLocked(pid, p)
}

// lookLocked looks whether a process has ended, and tells it once it is known how.
func (w *watched) lookLocked(pid int, p *started) {
	if w.running[pid] != p || p.told {
		return
	}
	poll := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, 0); err != nil || n == 0 {
		return
	}
	if !p.gone {
		p.gone, p.end.AtUS = true, time.Since(w.began).Microseconds()
	}
	switch status, err := statusOf(p.fd); {
	case err == nil:
		code, signal := codeOf(status)
		p.end.Code, p.end.Signal = &code, signal
	case errors.Is(err, errNotReaped):
		return // its parent has not asked
	}
	w.tellEndLocked(p)
}

func (w *watched) tellEndLocked(p *started) {
	p.told = true
	w.endLocked(p.n, &p.end)
}

// forgetLocked ends to follow a process. Of one that nobody waited for it is told when
// it ended.
func (w *watched) forgetLocked(pid int, p *started) {
	if w.running[pid] != p {
		return
	}
	if p.gone && !p.told {
		w.tellEndLocked(p)
	}
	delete(w.running, pid)
	_ = p.file.SetReadDeadline(time.Unix(1, 0)) // frees who awaits it
	if isClosed(w.over) {
		w.changed.Broadcast()
	}
}

// finish says that the exec has ended. Where all its processes are dead their parents
// are too, and the agent is about to wait for them: then how they ended is known soon.
func (w *watched) finish(settled bool) {
	w.endOnce.Do(func() { close(w.over) })
	deadline := time.Now()
	if settled {
		deadline = deadline.Add(killPatience)
		defer time.AfterFunc(killPatience, w.wake).Stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for pid, p := range w.running {
			if w.lookLocked(pid, p); p.told || !time.Now().Before(deadline) {
				w.forgetLocked(pid, p)
			}
		}
		if len(w.running) == 0 {
			break
		}
		w.changed.Wait()
	}
	if w.leftOut > 0 && !w.enough {
		w.markLocked()
	}
	w.done, w.shown = true, nil
	w.changed.Broadcast()
}

// wake has all look again who wait for a change.
func (w *watched) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.Broadcast()
}

var errNotReaped = errors.New("nobody has waited for it")

// statusOf asks how a process ended that a file stands for. A kernel before 6.15 does
// not say.
func statusOf(fd int) (unix.WaitStatus, error) {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	err := unix.IoctlPidfdInfo(fd, &info)
	if errors.Is(err, unix.ESRCH) { // its parent waited for it while the kernel looked: now it knows
		info = unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
		err = unix.IoctlPidfdInfo(fd, &info)
	}
	if err != nil {
		return 0, err
	}
	if info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return 0, errNotReaped
	}
	return unix.WaitStatus(info.Exit_code), nil
}
