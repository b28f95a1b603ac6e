package harden

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Condition is what an argument of a system call has to be: its lower half, which is
// all that the kernel takes of those that are looked at here, has Value in the bits
// of Mask.
type Condition struct {
	Arg         uint
	Mask, Value uint32
}

// Offsets in struct seccomp_data.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16
)

// Answers of a filter.
const (
	allowed = unix.SECCOMP_RET_ALLOW
	refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// typing are the ways to type into a terminal in somebody's place.
var typing = [][]Condition{{{1, all, unix.TIOCSTI}}, {{1, all, tioclinux}}}

const (
	all       = 0xffffffff
	tioclinux = 0x541c // the selection of a console, which pastes as well
)

// Typing refuses to type into a terminal in somebody's place, and allows every other
// use of ioctl.
func Typing() []bpf.Instruction { return Decide(unix.SYS_IOCTL, typing, refused, allowed) }

// Machine goes on with the calls of one architecture, as the kernel numbers them, and
// gives all others an answer.
func Machine(arch, other uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1}, bpf.RetConstant{Val: other},
	}
}

// Decide answers one call: with then where all conditions of any list hold, else with
// other.
func Decide(nr int, of [][]Condition, then, other uint32) []bpf.Instruction {
	var body []bpf.Instruction
	for _, list := range of {
		const each = 3 // instructions
		for i, c := range list {
			past := each*(len(list)-i-1) + 1 // the rest of the list, and its answer
			body = append(body, bpf.LoadAbsolute{Off: low(c.Arg), Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.Mask},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.Value, SkipTrue: uint8(past)})
		}
		body = append(body, bpf.RetConstant{Val: then})
	}
	body = append(body, bpf.RetConstant{Val: other})
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetNr, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(nr), SkipTrue: uint8(len(body))},
	}, body...)
}

// low is where the lower half of an argument lies.
func low(arg uint) uint32 {
	at := uint32(offsetArgs + 8*arg)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // the upper half comes first
		at += 4
	}
	return at
}

// never are calls that no program of a sandbox needs: they reach the host's keyrings,
// its counters, other processes' memory, or parts of the kernel in which faults are
// found again and again. A debugger reads memory by ptrace where it cannot by a call
// of its own, and Landlock holds that to the exec.
var never = map[uint32][]int{
	refused: {
		unix.SYS_SETNS, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_PIDFD_GETFD,
	},
	// Programs go on by other calls where these are not there. What clone3 is asked for
	// lies in memory, where no filter sees it.
	absent: {unix.SYS_CLONE3, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV},
}

// namespaces are the flags of new ones. That of time is for unshare alone: clone has
// the signal of a child's end in its place.
var namespaces = []uint32{unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET}

// sockets are those that may be made: of Unix and of netlink, and the usual kinds of
// the internet's. A raw one sees and forges what is not its own.
func sockets() [][]Condition {
	list := [][]Condition{{{0, all, unix.AF_UNIX}}, {{0, all, unix.AF_NETLINK}}}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
			list = append(list, []Condition{{0, all, family}, {1, 0xf, kind}})
		}
	}
	return list
}

// x32 is the first number of another way to call a kernel of amd64.
const x32 = 0x40000000

// machines are the architectures that filters are made for, as the kernel numbers them.
var machines = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Filter is the program that refuses, as the kernel takes it: an array of struct
// sock_filter. It refuses new namespaces, raw sockets and those that lead past a
// network namespace, and what else is named above; programs of another architecture
// find no system calls. It is safe for concurrent use; nobody alters the bytes.
var Filter = sync.OnceValues(func() ([]byte, error) {
	machine, known := machines[runtime.GOARCH]
	if !known {
		return nil, fmt.Errorf("there is no filter of system calls for %s", runtime.GOARCH)
	}
	program := Machine(machine, absent)
	program = append(program, bpf.LoadAbsolute{Off: offsetNr, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1}, bpf.RetConstant{Val: absent})
	for _, answer := range []uint32{refused, absent} {
		for _, nr := range never[answer] {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(nr), SkipTrue: 1}, bpf.RetConstant{Val: answer})
		}
	}
	var clone [][]Condition
	for _, flag := range namespaces {
		clone = append(clone, []Condition{{0, flag, flag}})
	}
	unshare := append(slices.Clone(clone), []Condition{{0, unix.CLONE_NEWTIME, unix.CLONE_NEWTIME}})
	for _, part := range [][]bpf.Instruction{
		Decide(unix.SYS_CLONE, clone, refused, allowed), Decide(unix.SYS_UNSHARE, unshare, refused, allowed),
		Decide(unix.SYS_SOCKET, sockets(), allowed, refused), Decide(unix.SYS_SOCKETPAIR, sockets(), allowed, refused),
		Typing(), {bpf.RetConstant{Val: allowed}},
	} {
		program = append(program, part...)
	}
	return Assemble(program)
})

// Assemble makes bytes of a program, as the kernel takes it.
func Assemble(program []bpf.Instruction) ([]byte, error) {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("make a filter of system calls: %w", err)
	}
	var b bytes.Buffer
	err = binary.Write(&b, binary.NativeEndian, raw) // RawInstruction is laid out as struct sock_filter
	return b.Bytes(), err
}

// SetFilter filters the system calls of the calling thread, and of what it starts. The
// thread gains no privileges any more.
func SetFilter(program []byte) error { return setFilter(program, 0) }

// SetFilterOfAll filters the system calls of every thread of the process.
func SetFilterOfAll(program []byte) error { return setFilter(program, unix.SECCOMP_FILTER_FLAG_TSYNC) }

func setFilter(program []byte, flags uintptr) error {
	const size = 8 // of an instruction
	if len(program) == 0 || len(program)%size != 0 {
		return errors.New("the filter of system calls is broken")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("gain no privileges: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(program) / size), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	r, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 || r != 0 {
		return fmt.Errorf("filter system calls: %w (thread %d)", errno, r)
	}
	return nil
}
