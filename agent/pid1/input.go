//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// inputWait is how long a call waits for a process to read. Its client calls
// again for what was not taken, so that nothing waits here for one that is gone.
const inputWait = time.Second

// callInput writes to the standard input of an exec in the background.
func (a *Agent) callInput(w io.Writer, req *wire.Input) {
	ex := a.find(req.ID)
	switch {
	case ex == nil:
		fail(w, "not_found", fmt.Errorf("no exec %s", req.ID))
		return
	case !ex.req.Stdin || !ex.req.Drop:
		fail(w, "conflict", fmt.Errorf("exec %s was not started with an input to be written to later", req.ID))
		return
	case len(req.Data) > wire.MaxChunk:
		fail(w, "invalid", fmt.Errorf("%d bytes at once, at most %d", len(req.Data), wire.MaxChunk))
		return
	}
	if ex.req.Terminal != nil {
		if !ex.typing.TryLock() {
			fail(w, "conflict", errTyping(req.ID))
			return
		}
		defer ex.typing.Unlock()
	}
	n, err := ex.input(req.Data)
	if err != nil {
		fail(w, "conflict", fmt.Errorf("the standard input of exec %s is closed", req.ID))
		return
	}
	if req.Close && n == len(req.Data) {
		ex.closeStdin()
	}
	reply(w, wire.Reply{Bytes: int64(n)})
}

// input writes what the process reads within [inputWait]. What it is given of
// one call is not mixed with another's. Its error says that nothing can be
// written any more.
func (ex *exec) input(b []byte) (int, error) {
	ex.feeding.Lock()
	defer ex.feeding.Unlock()
	ex.mu.Lock()
	f := ex.stdin
	ex.mu.Unlock()
	if f == nil {
		return 0, os.ErrClosed
	}
	if len(b) == 0 {
		return 0, nil
	}
	if err := f.SetWriteDeadline(time.Now().Add(inputWait)); err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

// inputTaken reports whether all that was written to a shell's own input was read.
func (ex *exec) inputTaken() bool {
	ex.mu.Lock()
	f := ex.stdin
	ex.mu.Unlock()
	if f == nil {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	left := -1
	_ = raw.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && left == 0
}
