package main

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/caisson-dev/caisson/sandbox"
)

// whileHeld is done, beside ctx, once no process has the FIFO at path open for
// writing any more: the kernel closes it for those that die. Nothing is read from
// it. stop has to be called. Errors: Invalid where path is no FIFO.
func whileHeld(ctx context.Context, path string) (_ context.Context, stop func(), err error) {
	// Without O_NONBLOCK this would wait for a first user who may be dead already.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, sandbox.Errorf(sandbox.Invalid, "open the lease: %w", err).WithHint("make it with mkfifo, and hold it open for writing")
	}
	st, err := f.Stat()
	if err == nil && st.Mode()&os.ModeNamedPipe == 0 {
		err = sandbox.Errorf(sandbox.Invalid, "the lease %s is no FIFO", path).WithHint("make it with mkfifo, and hold it open for writing")
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, f) // a lease that cannot be read is held by nobody
	})
	return ctx, func() { cancel(); _ = f.Close(); watching.Wait() }, nil
}
