package syscalls

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// closed are system calls that no program of a sandbox needs and that reach what
// is the host's: its keyrings, its counters, and parts of its kernel in which
// faults are found again and again. Engines differ in which of them they open.
var closed = []string{
	"add_key", "request_key", "keyctl",
	"bpf", "perf_event_open", "userfaultfd",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
}

// families are the address families of sockets. Those that are left out reach
// past the network namespace (vsock speaks to the machine that the host itself
// runs on) or into the kernel (alg).
var families = []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// Profile is the list in the form that container engines take in place of their
// own default. It is safe for concurrent use.
var Profile = sync.OnceValues(func() (string, error) {
	raw, err := json.Marshal(profile())
	return string(raw), err
})

// profile is the engine's default of a known version, without what it opens for
// capabilities that no sandbox has, without [closed], and with [families] alone.
// So it is the same everywhere.
func profile() *seccomp.Seccomp {
	p := seccomp.DefaultProfile()
	calls := []*seccomp.Syscall{}
	for _, c := range p.Syscalls {
		if c.Includes != nil && len(c.Includes.Caps) > 0 {
			continue
		}
		c.Names = slices.DeleteFunc(c.Names, func(name string) bool {
			return slices.Contains(closed, name) || name == "socket" || name == "socketpair" || name == "socketcall"
		})
		if len(c.Names) > 0 {
			calls = append(calls, c)
		}
	}
	for _, family := range families {
		// The kernel takes the lower half of the register, so the rest is not
		// looked at. A condition that excludes one of two would let all pass.
		calls = append(calls, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
			Names: []string{"socket", "socketpair"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: 0xffffffff, ValueTwo: family, Op: specs.OpMaskedEqual}},
		}})
	}
	// The other way to a socket, of 32-bit programs, hands its arguments over in
	// memory, where no filter sees them. It has to be closed by an error of its
	// own: the filter's compiler opens it along with socket, and leaves out what
	// has the default's.
	nosys := uint(unix.ENOSYS)
	p.Syscalls = append(calls, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"socketcall"}, Action: specs.ActErrno, ErrnoRet: &nosys}})
	return p
}
