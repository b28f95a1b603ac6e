package manager_test

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// callsOut tries what reaches past a sandbox, and prints how the kernel answers.
// Besides the calls themselves there are two ways around a filter of sockets: a
// family with bits above those that the kernel reads, and the calls of 32-bit
// programs, one of which hands over its arguments in memory.
const callsOut = `
import ctypes, errno, mmap, struct
libc = ctypes.CDLL(None, use_errno=True)

def tell(name, n):
    print(name, "open" if n >= 0 else errno.errorcode[-n])

def call(name, number, *args):
    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args])
    tell(name, -ctypes.get_errno() if r < 0 else r)

for name, family, kind in ("unix", 1, 1), ("inet", 2, 1), ("inet6", 10, 1), ("netlink", 16, 3), ("vsock", 40, 1), ("alg", 38, 5), ("packet", 17, 3), ("vsock high", 40 | 1 << 32, 1), ("alg high", 38 | 1 << 40, 5):
    call(name, 41, family, kind, 0)
call("pair of alg", 53, 38, 5, 0, 0)
for name, number in ("io_uring_setup", 425), ("io_uring_enter", 426), ("io_uring_register", 427), ("userfaultfd", 323), ("keyctl", 250), ("add_key", 248), ("request_key", 249), ("bpf", 321), ("perf_event_open", 298):
    call(name, number, 0, 0, 0, 0, 0)

low = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, prot=7)
at = ctypes.addressof(ctypes.c_char.from_buffer(low))

def call32(name, number, first, second):
    code = b"\x53\xb8" + struct.pack("<I", number) + b"\xbb" + struct.pack("<I", first) + b"\xb9" + struct.pack("<I", second) + b"\x31\xd2\xcd\x80\x5b\xc3"
    low[0:len(code)] = code
    tell(name, ctypes.CFUNCTYPE(ctypes.c_int)(at)())

low[512:524] = struct.pack("<3I", 40, 1, 0)
call32("socketcall of vsock, 32 bits", 102, 1, at + 512)
call32("vsock, 32 bits", 359, 40, 1)
call32("unix, 32 bits", 359, 1, 1)
call32("keyctl, 32 bits", 288, 0, 0)
`

func TestCallsThatReachOut(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the numbers are those of amd64")
	}
	for _, hardening := range []sandbox.Hardening{sandbox.HardeningOff, sandbox.HardeningStrict} {
		t.Run(string(hardening), func(t *testing.T) {
			b := openBox(t, manager.OpenOptions{Language: "python", Limits: sandbox.Limits{Hardening: hardening}})
			res := b.run(t, sandbox.Run{Command: []string{"python3", "-c", callsOut}})
			if len(res.Stderr) > 0 {
				t.Errorf("it said: %s", res.Stderr)
			}
			want := `unix open
inet open
inet6 open
netlink open
vsock EPERM
alg EPERM
packet EPERM
vsock high EPERM
alg high EPERM
pair of alg EPERM
io_uring_setup EPERM
io_uring_enter EPERM
io_uring_register EPERM
userfaultfd EPERM
keyctl EPERM
add_key EPERM
request_key EPERM
bpf EPERM
perf_event_open EPERM
socketcall of vsock, 32 bits ENOSYS
` + map[sandbox.Hardening]string{
				sandbox.HardeningOff:    "vsock, 32 bits EPERM\nunix, 32 bits open\nkeyctl, 32 bits EPERM\n",
				sandbox.HardeningStrict: "vsock, 32 bits ENOSYS\nunix, 32 bits ENOSYS\nkeyctl, 32 bits ENOSYS\n",
			}[hardening]
			if diff := cmp.Diff(want, string(res.Stdout)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
