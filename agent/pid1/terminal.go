//go:build linux

package pid1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// terminalHolds is more than a terminal holds of what nobody has read.
const terminalHolds = 256 << 10

// makeTerminal opens a terminal of the sandbox. The process has one end of it as its
// three streams; ours is read as its standard output, and written as its input.
func (a *Agent) makeTerminal(ex *exec) (_ *pipeSet, err error) {
	p := &pipeSet{}
	defer func() {
		if err != nil {
			p.closeChild()
			p.closeParent()
		}
	}()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	if p.out[0], err = parentEnd(fd, "terminal"); err != nil {
		return nil, err
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock a terminal: %w", err)
	}
	if err := setSize(fd, *ex.req.Terminal); err != nil {
		return nil, err
	}
	// By its number it could be another's: what /dev/pts shows is not ours to trust.
	theirs, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, fmt.Errorf("open a terminal's other end: %w", errno)
	}
	p.fds = append(p.fds, int(theirs))
	p.child = [3]uintptr{theirs, theirs, theirs}
	// What is written has a descriptor of its own, as with pipes: each closes its own.
	typed, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if p.stdin, err = parentEnd(typed, "terminal"); err != nil {
		return nil, err
	}
	return p, p.noStderr()
}

// noStderr has a standard error that ends at once.
func (p *pipeSet) noStderr() error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	p.fds = append(p.fds, fds[1])
	var err error
	p.out[1], err = parentEnd(fds[0], "stderr")
	return err
}

// The size of a terminal that nobody has told.
const (
	defaultRows = 24
	defaultCols = 80
)

func setSize(fd int, s wire.Size) error {
	w := unix.Winsize{Row: s.Rows, Col: s.Cols}
	if w.Row == 0 {
		w.Row = defaultRows
	}
	if w.Col == 0 {
		w.Col = defaultCols
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &w); err != nil {
		return fmt.Errorf("set a terminal's size: %w", err)
	}
	return nil
}

// callResize sets the size of an exec's terminal; who is in its foreground hears of it.
func (a *Agent) callResize(w io.Writer, req *wire.Resize) {
	ex := a.find(req.ID)
	switch {
	case ex == nil:
		fail(w, "not_found", fmt.Errorf("no exec %s", req.ID))
		return
	case ex.req.Terminal == nil:
		fail(w, "conflict", fmt.Errorf("exec %s has no terminal", req.ID))
		return
	}
	err := ex.resize(req.Size)
	if errors.Is(err, os.ErrClosed) {
		fail(w, "conflict", fmt.Errorf("exec %s has ended", req.ID))
		return
	}
	if err != nil {
		fail(w, "internal", err)
		return
	}
	reply(w, wire.Reply{})
}

func (ex *exec) resize(s wire.Size) error {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.stdin == nil {
		return os.ErrClosed
	}
	raw, err := ex.stdin.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	return errors.Join(raw.Control(func(fd uintptr) { failed = setSize(int(fd), s) }), failed)
}

func errTyping(id string) error {
	return fmt.Errorf("somebody else types into the terminal of exec %s", id)
}

// typedAhead is how many pieces wait for a program that does not read. Behind them
// its client waits.
const typedAhead = 256

// callType takes what one client types into an exec's terminal, until it leaves.
func (a *Agent) callType(s *yamux.Stream, r *wire.Reader, ex *exec) {
	if !ex.typing.TryLock() {
		fail(s, "conflict", errTyping(ex.req.ID))
		return
	}
	defer ex.typing.Unlock()
	reply(s, wire.Reply{})
	pieces, gone := make(chan []byte, typedAhead), make(chan struct{})
	go func() { // it ends with the stream
		defer close(pieces)
		defer close(gone)
		for {
			f, err := r.Next()
			if err != nil || f.Type != wire.TypeStdin {
				return
			}
			select {
			case pieces <- bytes.Clone(f.Payload):
			case <-ex.done:
				return
			}
		}
	}()
	for b := range pieces {
		if !ex.typeAll(b, gone) {
			return
		}
	}
}

// typeAll writes b to the exec's terminal. It is false where that is closed, and where
// the program does not read it and nobody is there any more who typed it.
func (ex *exec) typeAll(b []byte, gone <-chan struct{}) bool {
	for len(b) > 0 {
		n, err := ex.input(b)
		if err != nil {
			return false
		}
		if b = b[n:]; n > 0 {
			continue
		}
		select {
		case <-gone:
			return false
		default:
		}
	}
	return true
}
