package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/sandbox"
)

// Host is how the doctor sees the host. A zero field is the real one.
type Host struct {
	// LandlockABI tells the version of the kernel's Landlock. Its errors are
	// ENOSYS where the kernel has none, and EOPNOTSUPP where it is off.
	LandlockABI func() (int, error)
	// Proc is where procfs is mounted.
	Proc string
	// UID tells who we are; 0 may do what others may not.
	UID func() int
	// Room tells how much is free in a folder.
	Room func(dir string) (Room, error)
}

// Room is what a file system has left.
type Room struct {
	Free         sandbox.Bytes
	Files, Total uint64 // free inodes, of how many; Total is 0 where none are counted
}

func (h Host) withDefaults() Host {
	if h.LandlockABI == nil {
		h.LandlockABI = landlockABI
	}
	if h.Proc == "" {
		h.Proc = "/proc"
	}
	if h.UID == nil {
		h.UID = os.Geteuid
	}
	if h.Room == nil {
		h.Room = room
	}
	return h
}

// landlock: what the scanner of hostile text locks itself in with.
func landlock(_ context.Context, r *round) finding {
	abi, err := r.Host.LandlockABI()
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return warn("add landlock to the list behind lsm= on the kernel's command line and boot again", "the kernel has Landlock, but it is off")
	case err != nil:
		return warn("run Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK=y", "the kernel has no Landlock: %v", err)
	}
	return ok("ABI %d", abi)
}

// userNamespaces: jails need them where caisson is not root, and so do mounts
// that map owners.
func userNamespaces(_ context.Context, r *round) finding {
	if n, known := r.sysctl("user/max_user_namespaces"); !known || n == 0 {
		return warn("sysctl -w user.max_user_namespaces=15000", "no user namespace can be made")
	}
	who := ""
	if _, rootless := r.facts.HasSecurity("rootless"); rootless {
		who = "; the engine is rootless"
	} else if _, remaps := r.facts.HasSecurity("userns"); remaps {
		who = "; the engine maps its containers' users"
	}
	if r.Host.UID() != 0 {
		for _, s := range []struct {
			name string
			good int
		}{{"kernel/unprivileged_userns_clone", 1}, {"kernel/apparmor_restrict_unprivileged_userns", 0}} {
			if n, known := r.sysctl(s.name); known && n != s.good {
				name := strings.ReplaceAll(s.name, "/", ".")
				return warn("sysctl -w "+name+"="+strconv.Itoa(s.good), "%s=%d keeps them from everybody but root%s", name, n, who)
			}
		}
	}
	return ok("can be made%s", who)
}

// sysctl reads a number of the kernel's, and whether it is there.
func (r *round) sysctl(name string) (n int, known bool) {
	b, err := os.ReadFile(filepath.Join(r.Host.Proc, "sys", name))
	if err != nil {
		return 0, false
	}
	n, err = strconv.Atoi(strings.TrimSpace(string(b)))
	return n, err == nil
}
