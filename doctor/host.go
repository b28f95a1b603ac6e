package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/internal/harden"
	"github.com/caisson-dev/caisson/sandbox"
)

// Host is how the doctor sees the host. A zero field is the real one.
type Host struct {
	// Proc is where procfs is mounted.
	Proc string
	// UID tells who we are; 0 may do what others may not.
	UID func() int
	// Room tells how much is free in a folder.
	Room func(dir string) (Room, error)
	// Hardens tells why programs cannot be hardened by this kernel, or nil.
	Hardens func() error
}

// Room is what a file system has left.
type Room struct {
	Free         sandbox.Bytes
	Files, Total uint64 // free inodes, of how many; Total is 0 where none are counted
}

func (h Host) withDefaults() Host {
	if h.Proc == "" {
		h.Proc = "/proc"
	}
	if h.UID == nil {
		h.UID = os.Geteuid
	}
	if h.Room == nil {
		h.Room = room
	}
	if h.Hardens == nil {
		h.Hardens = harden.Works
	}
	return h
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

// hardening: the agent holds programs to rules of its own where the kernel has them.
func hardening(_ context.Context, r *round) finding {
	switch err := r.Host.Hardens(); {
	case err != nil:
		return warn("use Linux 5.19 or newer with landlock among CONFIG_LSM or lsm=", "programs have the sandbox alone around them: %v", err)
	case r.Engine != nil && !r.Engine.Local():
		return ok("works on this host; what the engine's kernel can do is not known: --hardening strict finds out")
	case r.facts.DefaultRuntime != "" && r.facts.DefaultRuntime != "runc" && r.facts.DefaultRuntime != "crun":
		return warn("name it instead, by --oci-runtime, or ask for --hardening off",
			"works on this host; the engine's default runtime %s may have a kernel of its own, by which sandboxes then fail", r.facts.DefaultRuntime)
	}
	return ok("strict: programs write in their folders alone, look into no other exec, and make no calls that none needs")
}

// starts: who asks for it has what programs start seen and judged.
func starts(_ context.Context, r *round) finding {
	if err := r.facts.SeesStarts(); err != nil {
		return warn("use Linux 5.19 or newer on x86_64 or aarch64, with runc or crun", "what programs start cannot be seen, and starts: judge has no effect: %v", err)
	}
	return ok("what programs start can be seen and judged (starts: tell or judge)")
}

// enoughSandboxes should be able to watch all the folders that they may.
const enoughSandboxes = 8

// watches: the kernel bounds how many folders, and how many watchers, all
// sandboxes of its host have together.
func watches(_ context.Context, r *round) finding {
	if r.Engine != nil && !r.Engine.Local() {
		return ok("fs.inotify on the engine's host bounds how many folders all sandboxes watch together")
	}
	n, known := r.sysctl("fs/inotify/max_user_watches")
	if !known {
		return warn("use a kernel with CONFIG_INOTIFY_USER=y", "no folder can be watched: workspaces are walked after each exec that may have written")
	}
	if most := r.Watches * enoughSandboxes; n < most {
		return warn("sysctl -w fs.inotify.max_user_watches="+strconv.Itoa(most), "%d folders, of all sandboxes together, each of which watches up to %d: "+
			"the workspaces of the others are walked after each exec, which takes longer", n, r.Watches)
	}
	if n, known := r.sysctl("fs/inotify/max_user_instances"); known && n < enoughSandboxes {
		return warn("sysctl -w fs.inotify.max_user_instances=128", "%d sandboxes at most can watch: the workspaces of the others are walked after each exec, which takes longer", n)
	}
	return ok("%d folders, of all sandboxes together; each watches up to %d, and has its workspace walked beyond that", n, r.Watches)
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
