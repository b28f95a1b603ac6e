package images

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// diskError classes an error of the local file system.
func diskError(err error, doing string) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return full(err, doing)
	case errors.Is(err, os.ErrPermission):
		return sandbox.Errorf(sandbox.Denied, "%s: %w", doing, err).
			WithHint("set CAISSON_STATE_DIR to a folder that you may write")
	}
	return sandbox.Errorf(sandbox.Internal, "%s: %w", doing, err)
}

// needed is the room in the state folder that an assembly is begun with. Node,
// the largest, takes 400 MiB of it.
const needed = 512 * sandbox.MiB

// checkSpace refuses to begin what will not fit.
func checkSpace(dir string, need sandbox.Bytes) error {
	free, err := freeSpace(dir)
	if err != nil || free >= need {
		return nil // where it cannot be told, the assembly itself will
	}
	return full(errors.New(free.Human()+" are free in "+dir), "assemble: "+need.Human()+" are needed")
}

func freeSpace(dir string) (sandbox.Bytes, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return sandbox.Bytes(st.Bavail) * sandbox.Bytes(st.Bsize), nil
}

// spaceWatch looks whether a disk runs full while a tool works on it: apt does
// not say so, and cleans up before anybody could look.
type spaceWatch struct {
	ended chan struct{}
	wg    sync.WaitGroup
	least sandbox.Bytes // read after wg
}

// almostFull is the free space that counts as none where a tool failed. It is
// more than a file of apt's: between two looks apt fills the rest, fails and
// cleans up.
const almostFull = 64 * sandbox.MiB

func watchSpace(dir string) *spaceWatch {
	w := &spaceWatch{ended: make(chan struct{}), least: sandbox.TiB}
	w.wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if free, err := freeSpace(dir); err == nil {
				w.least = min(w.least, free)
			}
			select {
			case <-w.ended:
				return
			case <-tick.C:
			}
		}
	})
	return w
}

// stop ends the watch, and reports whether the disk was full at some time.
func (w *spaceWatch) stop() bool {
	close(w.ended)
	w.wg.Wait()
	return w.least < almostFull
}

// full is the error of a full disk on this side of the engine.
func full(err error, doing string) error {
	return sandbox.Errorf(sandbox.Exhausted, "%s: %w", doing, err).
		WithHint("assembling needs about 1g in the state folder: free some, or set CAISSON_STATE_DIR to a folder with room")
}
