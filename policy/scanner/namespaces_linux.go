package scanner

import (
	"os"
	"syscall"
)

// attempts are the ways to start a scanner, strictest first: in namespaces of
// its own (as root directly, else within a user namespace), or without.
func attempts() []*syscall.SysProcAttr {
	const flags = syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	isolated := &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		isolated.Cloneflags |= syscall.CLONE_NEWUSER
		isolated.UidMappings = []syscall.SysProcIDMap{{ContainerID: 65534, HostID: os.Geteuid(), Size: 1}}
		isolated.GidMappings = []syscall.SysProcIDMap{{ContainerID: 65534, HostID: os.Getegid(), Size: 1}}
	}
	return []*syscall.SysProcAttr{isolated, {}}
}

// separate reports whether an attempt takes namespaces.
func separate(attr *syscall.SysProcAttr) bool { return attr != nil && attr.Cloneflags != 0 }
