package mountns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/sandbox"
)

// within calls do in the mount namespace of a process, whose root is the caller's
// meanwhile. do starts no goroutines: it has a thread of its own, which ends with it.
func within(pid int, do func() error) error {
	ns, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns/mnt"))
	if err != nil {
		return fmt.Errorf("open a mount namespace: %w", err)
	}
	defer ns.Close()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked, so that nothing else runs in there
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS)
		}
		if err != nil {
			done <- fmt.Errorf("enter a mount namespace: %w", err)
			return
		}
		done <- do()
	}()
	return <-done
}

// Clone makes a mount of a folder as it is seen here, and of nothing that is mounted
// below it. It is nowhere yet, and goes with its file.
func Clone(dir string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("clone the mount of %s: %w", dir, err)
	}
	f := os.NewFile(uintptr(fd), dir)
	// What is mounted here later is not to follow it, and nothing in it gives rights.
	attr := unix.MountAttr{Propagation: unix.MS_PRIVATE, Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		_ = f.Close() // it holds nothing
		return nil, fmt.Errorf("make a mount private: %w", err)
	}
	return f, nil
}

// Move makes a sandbox that nobody has used that of a user, and mounts a workspace
// into it unless that is nil. private is a folder of the sandbox's that it has at a
// place of its own: where it is not there, the process is none of that sandbox's.
func Move(pid int, at string, private os.FileInfo, workspace *os.File, uid int) error {
	return within(pid, func() error {
		if there, err := os.Stat(at); err != nil || !os.SameFile(private, there) {
			return errors.New("what runs it is not in its sandbox")
		}
		if err := os.Lchown(sandbox.HomeDir, uid, uid); err != nil {
			return err
		}
		if workspace == nil {
			return os.Lchown(sandbox.WorkspaceDir, uid, uid)
		}
		if err := unix.MoveMount(int(workspace.Fd()), "", unix.AT_FDCWD, sandbox.WorkspaceDir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mount a workspace: %w", err)
		}
		return nil
	})
}
