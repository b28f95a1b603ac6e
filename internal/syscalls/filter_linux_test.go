package syscalls

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/elastic/go-seccomp-bpf/arch"
)

// What the kernel is handed lets through what the profile does, and no more.
func TestFilter(t *testing.T) {
	t.Parallel()
	here, err := arch.GetInfo("")
	if err != nil {
		t.Skip(err)
	}
	text, err := Filter()
	if err != nil {
		t.Fatal(err)
	}
	program := make([]bpf.RawInstruction, len(text)/8)
	if err := binary.Read(bytes.NewReader(text), binary.NativeEndian, program); err != nil {
		t.Fatal(err)
	}
	list, ok := bpf.Disassemble(program)
	if !ok {
		t.Fatal("the program cannot be read back")
	}
	vm, err := bpf.NewVM(list)
	if err != nil {
		t.Fatal(err)
	}
	const allow = unix.SECCOMP_RET_ALLOW & 0xffffffff
	no := func(e unix.Errno) int { return unix.SECCOMP_RET_ERRNO | int(e) }
	ask := func(machine uint32, nr int, args ...uint64) int {
		// Words as the machine has them: the lower half of an argument first.
		words := []uint32{uint32(nr), machine, 0, 0}
		for _, a := range append(args, make([]uint64, 6-len(args))...) {
			words = append(words, uint32(a), uint32(a>>32))
		}
		var data bytes.Buffer
		if err := binary.Write(&data, binary.BigEndian, words); err != nil { // which the test's machine reads
			t.Fatal(err)
		}
		got, err := vm.Run(data.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, tt := range []struct {
		name string
		args []uint64
		want int
	}{
		{"read", nil, allow}, {"execve", nil, allow}, {"setgroups", nil, allow}, {"ptrace", nil, allow},
		{"mount", nil, no(unix.EPERM)}, {"unshare", nil, no(unix.EPERM)}, {"setns", nil, no(unix.EPERM)}, {"bpf", nil, no(unix.EPERM)},
		{"keyctl", nil, no(unix.EPERM)}, {"io_uring_setup", nil, no(unix.EPERM)}, {"clone3", nil, no(unix.ENOSYS)},
		{"clone", []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allow}, {"clone", []uint64{unix.CLONE_NEWUSER}, no(unix.EPERM)},
		{"clone", []uint64{unix.CLONE_NEWNET | uint64(unix.SIGCHLD)}, no(unix.EPERM)},
		{"socket", []uint64{unix.AF_INET}, allow}, {"socket", []uint64{unix.AF_VSOCK}, no(unix.EPERM)}, {"socket", []uint64{unix.AF_ALG}, no(unix.EPERM)},
		{"personality", []uint64{0}, allow}, {"personality", []uint64{0x0040000}, no(unix.EPERM)},
		{"ioctl", []uint64{0, unix.TCGETS}, allow}, {"ioctl", []uint64{0, unix.TIOCSTI}, no(unix.EPERM)},
		{"ioctl", []uint64{0, unix.TIOCSTI | 1<<40}, no(unix.EPERM)}, {"ioctl", []uint64{0, 0x541c}, no(unix.EPERM)},
	} {
		if got := ask(uint32(here.ID), here.SyscallNames[tt.name], tt.args...); got != tt.want {
			t.Errorf("%s%v: %#x, want %#x", tt.name, tt.args, got, tt.want)
		}
	}
	if got := ask(0x40000003, 3); got != no(unix.EPERM) { // read, of a 32-bit program
		t.Errorf("another architecture: %#x", got)
	}
}
