//go:build linux

package bubblewrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/runtimes/local"
	"github.com/caisson-dev/caisson/sandbox"
)

// staged is what was mounted before bwrap is started, in the mount namespace that it gets.
// The zero value is nothing: bwrap mounts all of it.
type staged struct {
	// root is a folder with all that is mounted in the sandbox but what bwrap alone can
	// make: /proc, /dev and what is below them. It binds that at once. One by one costs
	// more: it reads the table of all mounts again for each. "" is none.
	root string
	// tmpfs are the places of the file systems in memory, in their order; "" of one that
	// is in root.
	tmpfs []string
}

// rootSize bounds root itself, which holds folders and copies of settings.
const rootSize = 16 * sandbox.MiB

// stages reports whether a sandbox's root can be put together beforehand: where the
// kernel can close a whole tree (since 5.12), and not of an image, whose links could
// lead out of it.
func (m *making) stages() bool {
	return m.Spec.Image.Ref == local.HostImage && !errors.Is(unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}), unix.ENOSYS)
}

// stage mounts what is staged. The calling thread has a mount namespace and a mask of
// its own.
func (m *making) stage() (s staged, err error) {
	defer unix.Umask(unix.Umask(0))
	whole := m.stages()
	if whole {
		s.root = filepath.Join(m.Dir, "root")
		if err := inMemory(local.Tmpfs{Size: rootSize, Mode: "0755"}, s.root); err != nil {
			return s, err
		}
		binds := m.readOnly()
		for _, dir := range m.parents(binds) {
			if err := os.Mkdir(filepath.Join(s.root, dir), 0o755); err != nil {
				return s, fmt.Errorf("make a sandbox's root: %w", err)
			}
		}
		for _, b := range binds {
			if err := s.bind(b, true); err != nil {
				return s, err
			}
		}
	}
	for i, t := range m.req.Tmpfs {
		at := filepath.Join(m.Dir, "m"+strconv.Itoa(i))
		if whole && !strings.HasPrefix(t.Target, "/dev/") {
			at = filepath.Join(s.root, t.Target)
			s.tmpfs = append(s.tmpfs, "")
		} else {
			s.tmpfs = append(s.tmpfs, at)
		}
		if err := inMemory(t, at); err != nil {
			return s, err
		}
	}
	if !whole {
		return s, nil
	}
	if m.Volume != "" {
		err = s.bind(local.Bind{Source: m.Volume, Target: sandbox.WorkspaceDir}, false)
	}
	return s, errors.Join(err, s.bind(local.Bind{Source: m.IO(), Target: local.IODir}, false), s.bind(local.Bind{Source: m.agent, Target: local.AgentPath}, true))
}

// inMemory mounts a file system in memory, and makes the folder for it.
func inMemory(t local.Tmpfs, at string) error {
	if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a file system in memory: %w", err)
	}
	return t.Mount(at)
}

// bind mounts a folder or file of the host below the root, with what is mounted below
// it.
func (s staged) bind(b local.Bind, readOnly bool) error {
	at := filepath.Join(s.root, b.Target)
	st, err := os.Stat(b.Source)
	if err != nil {
		return fmt.Errorf("bind a folder of this host: %w", err)
	}
	if st.IsDir() {
		err = os.Mkdir(at, 0o755)
	} else {
		err = os.WriteFile(at, nil, 0o444)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("bind %s: %w", b.Source, err)
	}
	if err := unix.Mount(b.Source, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", b.Source, err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("close %s: %w", b.Source, err)
	}
	return nil
}
