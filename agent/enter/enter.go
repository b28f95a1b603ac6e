//go:build linux

package enter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Order is what a runtime writes to the standard input of "caisson-agent enter",
// once it has written down who that process is.
type Order struct {
	Root  string   `json:"root"`  // an empty folder of the host's, for the new root
	Tmpfs []Tmpfs  `json:"tmpfs"` // parents first
	Binds []Bind   `json:"binds"` // of the host's, seen elsewhere as well
	Keep  []int    `json:"keep"`  // capabilities of the agent, for who is root; an ordinary user's are ambient
	Argv  []string `json:"argv"`  // the agent's, its path at first
}

// Tmpfs is a file system in memory.
type Tmpfs struct {
	Target string `json:"target"`
	Size   int64  `json:"size_bytes"`
	Mode   string `json:"mode"` // in octal
	UID    int    `json:"uid"`
	NoExec bool   `json:"no_exec"`
}

// Bind is a file or folder of the host's, seen at Target.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Run reads an order and becomes the agent. It returns only where it fails.
func Run(from io.Reader) error {
	var o Order
	if err := json.NewDecoder(from).Decode(&o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if os.Getpid() != 1 || len(o.Argv) == 0 {
		return errors.New("it is not the first process of its namespace, or has nobody to become")
	}
	unix.Umask(0)
	if err := o.build(); err != nil {
		return err
	}
	if err := pivot(o.Root); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := keepOnly(o.Keep); err != nil {
			return err
		}
	}
	return fmt.Errorf("become the agent: %w", unix.Exec(o.Argv[0], o.Argv, []string{}))
}

// build makes the new root.
func (o *Order) build() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("leave the host's mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", o.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("make a root: %w", err)
	}
	var made []string // what is not the host's, and has a place in the root
	for _, t := range o.Tmpfs {
		made = append(made, t.Target)
	}
	for _, b := range o.Binds {
		made = append(made, b.Target)
	}
	if err := o.fill("/", made); err != nil {
		return err
	}
	for _, t := range o.Tmpfs {
		if err := t.mount(o.Root); err != nil {
			return err
		}
	}
	for _, b := range o.Binds {
		if err := bind(b.Source, o.Root+b.Target); err != nil {
			return err
		}
	}
	if err := o.private("mqueue", "/dev/mqueue"); err != nil { // its agent sweeps it
		return err
	}
	if err := os.MkdirAll(o.Root+"/proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", o.Root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// fill shows a folder of the host's in the new root: whole, or entry by entry where
// a place is to be made in it that the host does not have.
func (o *Order) fill(dir string, made []string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the host's root: %w", err)
	}
	for _, e := range list {
		name := filepath.Join(dir, e.Name())
		switch {
		case name == "/proc", slices.ContainsFunc(o.Tmpfs, func(t Tmpfs) bool { return t.Target == name }):
			continue // it comes later
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err == nil {
				err = os.Symlink(to, o.Root+name)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		case e.IsDir() && missing(name, made):
			if err := os.Mkdir(o.Root+name, 0o755); err != nil {
				return err
			}
			if err := o.fill(name, made); err != nil {
				return err
			}
			continue
		}
		if err := bind(name, o.Root+name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // what went meanwhile is not shown
		}
	}
	return nil
}

// missing reports whether a place is to be made below dir that the host has not.
func missing(dir string, made []string) bool {
	return slices.ContainsFunc(made, func(m string) bool {
		if !strings.HasPrefix(m, dir+"/") {
			return false
		}
		_, err := os.Lstat(m)
		return err != nil
	})
}

// bind shows source, and what is mounted below it, at a place that is made for it.
func bind(source, at string) error {
	st, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("show %s: %w", source, err)
	}
	if err := place(at, st.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(source, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", source, err)
	}
	return nil
}

// place makes a folder or a file to mount something at, where there is none.
func place(at string, dir bool) error {
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func (t Tmpfs) mount(root string) error {
	if err := place(root+t.Target, true); err != nil {
		return err
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if t.NoExec {
		flags |= unix.MS_NOEXEC
	}
	options := fmt.Sprintf("size=%d,mode=%s,uid=%d,gid=%d", t.Size, t.Mode, t.UID, t.UID)
	if err := unix.Mount("tmpfs", root+t.Target, "tmpfs", flags, options); err != nil {
		return fmt.Errorf("make %s: %w", t.Target, err)
	}
	return nil
}

// private mounts a file system of the namespace's own over the host's, where the
// host has one.
func (o *Order) private(kind, at string) error {
	if _, err := os.Lstat(o.Root + at); err != nil {
		return nil //nolint:nilerr // a host without
	}
	if err := unix.Mount(kind, o.Root+at, kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", at, err)
	}
	return nil
}

// pivot makes root the root, and lets go of the old one.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	return os.Chdir("/")
}

// keepOnly gives up every capability but some, for good: what root starts next has
// no others.
func keepOnly(keep []int) error {
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if slices.Contains(keep, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // an older kernel has fewer
			return fmt.Errorf("give up capabilities: %w", err)
		}
	}
	return nil
}
