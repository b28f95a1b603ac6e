//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// Host is where it is looked why this host makes no namespaces. The zero value is
// the host itself.
type Host struct {
	Root string // in place of /
	User bool   // who asks is not root
}

// NoNamespaces is the error for who could make no namespaces, which names the cause
// and the command that mends it; said is what was heard of it. It is Unavailable:
// nothing is run in less than was asked for.
func NoNamespaces(who, said string, h Host) error {
	cause, mend := h.cause(said)
	return sandbox.Errorf(sandbox.Unavailable, "%s makes no sandbox here: %s (%s)", who, cause, said).WithHint("%s", mend)
}

// appArmor lets bwrap make user namespaces where AppArmor keeps them from all that
// has no profile; one that Debian and Ubuntu have for bwrap takes the agent's rights
// in them.
const appArmor = `printf 'abi <abi/4.0>,\nprofile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }\n' | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap`

// cause finds out why. What the kernel's settings say comes first: it needs no guess.
func (h Host) cause(said string) (cause, mend string) {
	inside := h.has(".dockerenv") || h.has("run/.containerenv")
	switch {
	case h.User && h.setting("kernel/unprivileged_userns_clone") == "0":
		return "the kernel keeps user namespaces to root (kernel.unprivileged_userns_clone is 0)", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case h.User && h.setting("user/max_user_namespaces") == "0":
		return "the kernel makes no user namespaces (user.max_user_namespaces is 0)", "sudo sysctl -w user.max_user_namespaces=15000"
	case h.User && h.setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor keeps user namespaces from programs without a profile", appArmor
	case inside && strings.Contains(said, "proc"):
		return "this is a container, and its engine covers parts of /proc", "start the container with --security-opt systempaths=unconfined, or use the docker runtime"
	case inside && h.User:
		return "this is a container, and its engine's filter of system calls allows no namespaces", "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
	case inside:
		return "this is a container that may make no namespaces", "start the container with --privileged, or use the docker runtime"
	case h.filtered():
		return "a filter of system calls is on this process, which may allow no namespaces", "start it outside of what filters it (a container, a service with RestrictNamespaces=), or use the docker runtime"
	}
	return "the kernel does not say why", "see: sudo dmesg | grep -i -e apparmor -e audit"
}

func (h Host) has(name string) bool {
	_, err := os.Lstat(filepath.Join("/", h.Root, name))
	return err == nil
}

// setting reads one of the kernel's; "" where this kernel has it not.
func (h Host) setting(name string) string {
	b, _ := os.ReadFile(filepath.Join("/", h.Root, "proc/sys", name)) // as above
	return strings.TrimSpace(string(b))
}

// filtered reports whether system calls of this process are filtered.
func (h Host) filtered() bool {
	b, _ := os.ReadFile(filepath.Join("/", h.Root, "proc/self/status")) // without it nothing is known
	return strings.Contains(string(b), "\nSeccomp:\t2")
}
