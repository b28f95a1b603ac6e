//go:build linux

package pid1

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pump moves one output of an exec from its pipe to the outputs.
type pump struct {
	file    *os.File // the pipe's read end, not blocking
	index   int
	out     *outputs
	max     int64  // 0 is no cap
	onLimit func() // called once, when max was passed
	total   int64
	wide    bool // the pipe is as large as it gets

	terminal bool // it is a terminal's end, and no pipe

	settle  atomic.Bool   // the process is gone: take what is there and stop
	drained chan struct{} // closed once everything from before that is in out
	eof     bool          // after drained: nobody holds the pipe any more
	over    bool          // max was passed
}

// pumpBuffer is what is read at once, at most.
const pumpBuffer = 64 << 10

// pumpBuffers are borrowed while there is something to read, so that an exec
// that prints nothing costs none.
var pumpBuffers = sync.Pool{New: func() any { b := make([]byte, pumpBuffer); return &b }}

// run reads until the pipe's end, or until [pump.finish] was called and what
// was in the pipe then is out.
func (p *pump) run() {
	defer close(p.drained)
	raw, err := p.file.SyscallConn()
	if err != nil {
		return
	}
	// An error is the deadline that finish sets, and settled below.
	_ = raw.Read(func(fd uintptr) bool { return p.read(int(fd), -1) })
	if p.eof || p.over {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		waiting, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		if p.terminal {
			waiting, err = terminalHolds, nil // what is on its way to us counts only once it is read
		}
		if err == nil && waiting > 0 {
			p.read(int(fd), waiting)
		}
	})
}

// read takes what is there, at most limit bytes where that is not negative,
// and reports whether to stop. Once settled it stops after one read: somebody
// else who holds the pipe could keep it from ever being empty.
func (p *pump) read(fd, limit int) bool {
	buf := pumpBuffers.Get().(*[]byte)
	defer pumpBuffers.Put(buf)
	for limit != 0 {
		part := *buf
		if limit > 0 {
			part = part[:min(limit, len(part))]
		}
		n, err := syscall.Read(fd, part)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return p.settle.Load()
		case err != nil || n == 0:
			p.eof = true
			return true
		}
		p.widen(fd, n)
		if limit > 0 {
			limit -= n
		}
		if p.keep(part[:n]) || limit < 0 && p.settle.Load() {
			return true
		}
	}
	return true
}

// widePipe is the size of a pipe that much comes through: its writer and the
// agent take longer turns then.
const widePipe = 256 << 10

// widen enlarges the pipe once a read has filled its buffer. The kernel may
// refuse, since it bounds the pages of a user's pipes; then the pipe stays.
func (p *pump) widen(fd, n int) {
	if p.wide || n < pumpBuffer {
		return
	}
	p.wide = true
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, widePipe)
}

// keep stores b up to the cap and reports whether that was passed.
func (p *pump) keep(b []byte) bool {
	if p.max > 0 && p.total+int64(len(b)) > p.max {
		b = b[:p.max-p.total]
		p.over = true
	}
	p.total += int64(len(b))
	if len(b) > 0 {
		p.out.write(p.index, b)
	}
	if p.over {
		p.onLimit()
	}
	return p.over
}

// finish makes run return once it has what is in the pipe now.
func (p *pump) finish() {
	p.settle.Store(true)
	_ = p.file.SetReadDeadline(time.Now()) // a pipe that is closed already needs no deadline
}

// trail keeps reading for those that outlived the exec's process, so that they
// neither stall at a full pipe nor die of a closed one. What they write goes
// nowhere, and counts for no cap.
func (p *pump) trail() {
	defer p.file.Close()
	if p.eof || p.file.SetReadDeadline(time.Time{}) != nil {
		return
	}
	raw, err := p.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool { return discard(int(fd)) })
}

// discard reads what is there, and reports whether the pipe has ended.
func discard(fd int) bool {
	buf := pumpBuffers.Get().(*[]byte)
	defer pumpBuffers.Put(buf)
	for {
		n, err := syscall.Read(fd, *buf)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return false
		case err != nil || n == 0:
			return true
		}
	}
}
