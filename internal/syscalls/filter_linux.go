package syscalls

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	filter "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/harden"
)

// Filter is [Profile] as the kernel takes it on this machine: a program of the
// packet filter, an array of struct sock_filter. Programs of another architecture
// can call nothing. Besides, nobody types into a terminal in somebody's place
// (TIOCSTI, TIOCLINUX). It is safe for concurrent use; nobody alters the bytes.
var Filter = sync.OnceValues(func() ([]byte, error) {
	here, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("filter system calls of %s: %w", runtime.GOARCH, err)
	}
	program, err := compile(profile(), here)
	if err != nil {
		return nil, fmt.Errorf("make the filter of system calls: %w", err)
	}
	return harden.Assemble(program)
})

// compile makes a filter of a profile. Calls that depend on an argument are decided
// first, one by one, and by instructions of our own: the library's go on from one
// that does not fit with the argument in place of the call's number.
func compile(p *seccomp.Seccomp, here *arch.Info) ([]bpf.Instruction, error) {
	plain := filter.Policy{DefaultAction: filter.ActionErrno, Syscalls: []filter.SyscallGroup{
		{Action: filter.ActionErrno | filter.Action(unix.ENOSYS)}, {Action: filter.ActionAllow},
	}}
	absent, allow := &plain.Syscalls[0].Names, &plain.Syscalls[1].Names
	some := map[int][][]harden.Condition{}
	for _, c := range p.Syscalls {
		if !isFor(c, runtime.GOARCH) {
			continue
		}
		for _, name := range c.Names {
			nr, known := here.SyscallNames[name]
			switch {
			case !known:
			case c.Action == specs.ActErrno:
				*absent = append(*absent, name)
			case c.Action != specs.ActAllow || len(c.Args) > 1:
				return nil, fmt.Errorf("the profile has %s for %s, with %d arguments", c.Action, name, len(c.Args))
			case len(c.Args) == 1:
				one, err := conditionOf(c.Args[0])
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				some[nr] = append(some[nr], []harden.Condition{one})
			case !slices.Contains(*allow, name):
				*allow = append(*allow, name)
			}
		}
	}
	rest, err := plain.Assemble() // it looks at architecture and number anew
	if err != nil {
		return nil, err
	}
	program := harden.Machine(uint32(here.ID), refused)
	for _, nr := range slices.Sorted(maps.Keys(some)) {
		program = append(program, harden.Decide(nr, some[nr], unix.SECCOMP_RET_ALLOW, refused)...)
	}
	program = append(program, harden.Typing()...)
	return append(program, rest...), nil
}

const refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// isFor reports whether an entry is meant for an architecture, for who has no
// capability. Kernels that are older than what entries ask for are not met here.
func isFor(c *seccomp.Syscall, goarch string) bool {
	if c.Includes != nil && (len(c.Includes.Caps) > 0 || len(c.Includes.Arches) > 0 && !slices.Contains(c.Includes.Arches, goarch)) {
		return false
	}
	return c.Excludes == nil || !slices.Contains(c.Excludes.Arches, goarch)
}

func conditionOf(a specs.LinuxSeccompArg) (harden.Condition, error) {
	switch a.Op {
	case specs.OpEqualTo:
		return harden.Condition{Arg: a.Index, Mask: 0xffffffff, Value: uint32(a.Value)}, nil
	case specs.OpMaskedEqual:
		return harden.Condition{Arg: a.Index, Mask: uint32(a.Value), Value: uint32(a.ValueTwo)}, nil
	default:
		return harden.Condition{}, fmt.Errorf("the profile compares an argument by %s", a.Op)
	}
}
