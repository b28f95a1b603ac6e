//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// leavable are the folders in which execs can leave something, and the modes that
// they had before any exec.
func leavable() map[string]uint32 {
	modes := map[string]uint32{}
	for _, dir := range slices.Concat([]string{wire.WorkspaceDir, "/dev/shm"}, wire.Beside) {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil {
			modes[dir] = st.Mode & 0o7777
		}
	}
	return modes
}

// callScrub serves wire.OpScrub: the sandbox is then as it was before its first exec,
// or is told not to be.
func (a *Agent) callScrub(s *yamux.Stream) {
	if err := a.scrub(); err != nil {
		fail(s, "conflict", fmt.Errorf("the sandbox is not clean: %w", err))
		return
	}
	reply(s, wire.Reply{})
}

func (a *Agent) scrub() error {
	a.mu.Lock()
	a.sweepLocked()
	busy := false
	for _, ex := range a.execs {
		busy = busy || !ex.settled
	}
	a.mu.Unlock()
	if busy || !a.childless() {
		return errors.New("something of an exec runs")
	}
	a.answers.drop()
	a.sweepIPC(nil)
	if _, _, n := listIPC(); n > 0 {
		return fmt.Errorf("%d objects of inter-process communication are left", n)
	}
	for dir, mode := range a.leavable {
		if err := a.in(dir, "", func(root *os.Root) error { return empty(root, dir, mode) }); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	a.room.stale()
	return a.tracker.Forget()
}

// empty removes all that is in a folder, and what was done to the folder itself.
func empty(root *os.Root, dir string, mode uint32) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if root.RemoveAll(e.Name()) == nil {
			continue
		}
		open(root, e.Name())
		if err := root.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return err
	}
	if st.Mode&0o7777 != mode {
		if err := unix.Chmod(dir, mode); err != nil {
			return err
		}
	}
	if err := forgetAttributes(dir); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, dir, nil, 0)
}

// open lets the calling thread's user remove what is in folders that it has closed to
// itself. What cannot be opened cannot be removed, which is told there.
func open(root *os.Root, name string) {
	_ = fs.WalkDir(root.FS(), name, func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = root.Chmod(at, 0o700)
		}
		return nil
	})
}

// forgetAttributes removes the extended attributes of a folder.
func forgetAttributes(dir string) error {
	var buf [4096]byte
	n, err := unix.Listxattr(dir, buf[:])
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.FieldsFuncSeq(string(buf[:n]), func(r rune) bool { return r == 0 }) {
		if !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl") {
			continue // no user's to set
		}
		if err := unix.Removexattr(dir, name); err != nil {
			return err
		}
	}
	return nil
}
