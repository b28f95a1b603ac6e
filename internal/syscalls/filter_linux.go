package syscalls

import (
	"bytes"
	"encoding/binary"
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
	var b bytes.Buffer
	err = binary.Write(&b, binary.NativeEndian, program) // RawInstruction is laid out as struct sock_filter
	return b.Bytes(), err
})

// compile makes a filter of a profile. Calls that depend on an argument are decided
// first, one by one, and by instructions of our own: the library's go on from one
// that does not fit with the argument in place of the call's number.
func compile(p *seccomp.Seccomp, here *arch.Info) ([]bpf.RawInstruction, error) {
	plain := filter.Policy{DefaultAction: filter.ActionErrno, Syscalls: []filter.SyscallGroup{
		{Action: filter.ActionErrno | filter.Action(unix.ENOSYS)}, {Action: filter.ActionAllow},
	}}
	absent, allow := &plain.Syscalls[0].Names, &plain.Syscalls[1].Names
	some := map[int][]condition{}
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
				some[nr] = append(some[nr], one)
			case !slices.Contains(*allow, name):
				*allow = append(*allow, name)
			}
		}
	}
	rest, err := plain.Assemble() // it looks at architecture and number anew
	if err != nil {
		return nil, err
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(here.ID), SkipTrue: 1},
		bpf.RetConstant{Val: refused},
	}
	for _, nr := range slices.Sorted(maps.Keys(some)) {
		program = append(program, decide(nr, some[nr], unix.SECCOMP_RET_ALLOW, refused)...)
	}
	typing := []condition{{1, 0xffffffff, unix.TIOCSTI}, {1, 0xffffffff, tioclinux}}
	program = append(program, decide(here.SyscallNames["ioctl"], typing, refused, unix.SECCOMP_RET_ALLOW)...)
	return bpf.Assemble(append(program, rest...))
}

const tioclinux = 0x541c // the selection of a console, which pastes as well

const refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// isFor reports whether an entry is meant for an architecture, for who has no
// capability. Kernels that are older than what entries ask for are not met here.
func isFor(c *seccomp.Syscall, goarch string) bool {
	if c.Includes != nil && (len(c.Includes.Caps) > 0 || len(c.Includes.Arches) > 0 && !slices.Contains(c.Includes.Arches, goarch)) {
		return false
	}
	return c.Excludes == nil || !slices.Contains(c.Excludes.Arches, goarch)
}

// condition is what an argument has to be: its lower half, which is all that the
// kernel takes of those that are looked at here, has value in the bits of mask.
type condition struct {
	arg         uint
	mask, value uint32
}

func conditionOf(a specs.LinuxSeccompArg) (condition, error) {
	switch a.Op {
	case specs.OpEqualTo:
		return condition{a.Index, 0xffffffff, uint32(a.Value)}, nil
	case specs.OpMaskedEqual:
		return condition{a.Index, uint32(a.Value), uint32(a.ValueTwo)}, nil
	default:
		return condition{}, fmt.Errorf("the profile compares an argument by %s", a.Op)
	}
}

// Offsets in struct seccomp_data.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16
)

// low is where the lower half of an argument lies.
func low(arg uint) uint32 {
	at := uint32(offsetArgs + 8*arg)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // the upper half comes first
		at += 4
	}
	return at
}

// decide answers one call: with then where any condition holds, else with other.
func decide(nr int, of []condition, then, other uint32) []bpf.Instruction {
	var body []bpf.Instruction
	for _, c := range of {
		body = append(body, bpf.LoadAbsolute{Off: low(c.arg), Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.value, SkipTrue: 1}, bpf.RetConstant{Val: then})
	}
	body = append(body, bpf.RetConstant{Val: other})
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetNr, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(nr), SkipTrue: uint8(len(body))},
	}, body...)
}
