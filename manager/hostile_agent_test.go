package manager_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// What user code tries against the agent. It prints a line for each thing that
// worked; it must print none.
const attack = `
import ctypes, errno, glob, os, socket, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
def worked(what): print(what)

PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
for name, request in (("ptrace attach", PTRACE_ATTACH), ("ptrace seize", PTRACE_SEIZE)):
    if libc.ptrace(request, 1, 0, 0) == 0: worked(name)

for f in "mem environ auxv maps smaps stack syscall pagemap io wchan personality root exe cwd timers".split():
    try:
        with open("/proc/1/" + f, "rb") as h:
            got = h.read(64)
        if f != "wchan" or got.strip(b"0\0"): worked("read /proc/1/%s: %r" % (f, got))
    except OSError: pass
for f in "mem oom_score_adj comm clear_refs coredump_filter autogroup".split():
    try:
        with open("/proc/1/" + f, "r+b", buffering=0) as h: h.write(b"0")
        worked("write /proc/1/" + f)
    except OSError: pass
for d in ("fd", "fdinfo", "map_files", "ns", "cwd", "root", "task/1/fd"):
    try: worked("list /proc/1/%s: %r" % (d, os.listdir("/proc/1/" + d))) if d not in ("ns",) else [os.readlink("/proc/1/ns/" + n) for n in os.listdir("/proc/1/ns")] and worked("read /proc/1/ns")
    except OSError: pass
for n in range(0, 64):
    try:
        os.open("/proc/1/fd/%d" % n, os.O_RDWR); worked("open /proc/1/fd/%d" % n)
    except OSError: pass

class iovec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
buf = ctypes.create_string_buffer(8)
local = iovec(ctypes.addressof(buf), 8); remote = iovec(0x400000, 8)
if libc.process_vm_readv(1, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0: worked("process_vm_readv")
try:
    fd = os.pidfd_open(1)
    if libc.syscall(438, fd, 3, 0) >= 0: worked("pidfd_getfd")
    if libc.syscall(424, fd, 9, 0, 0) == 0: worked("pidfd_send_signal")
except OSError: pass
for s in range(1, 65):
    try: os.kill(1, s); worked("kill -%d 1" % s)
    except OSError: pass
try: os.setpriority(os.PRIO_PROCESS, 1, 19); worked("renice the agent")
except OSError: pass
try: os.setpriority(os.PRIO_PROCESS, 0, 0); worked("renice itself")
except OSError: pass
try: os.sched_setaffinity(1, {0}); worked("pin the agent")
except OSError: pass
for r in range(16):
    if libc.prlimit(1, r, ctypes.create_string_buffer(b"\0" * 16), None) == 0: worked("prlimit %d" % r)

# The socket.
private = "/run/caisson/private"
for p in (private, private + "/io", "/run/caisson", "/run/caisson/exec"):
    try: worked("list %s: %r" % (p, os.listdir(p)))
    except OSError: pass
for p in (private + "/io/agent.sock", private + "/io/ready.sock"):
    for act in (os.stat, lambda q: os.open(q, os.O_RDONLY), os.unlink):
        try: act(p); worked("%s %s" % (act, p))
        except OSError: pass
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(p); worked("connect " + p)
    except OSError: pass
names = set()
for line in open("/proc/net/unix").read().splitlines()[1:]:
    parts = line.split(None, 7)
    if len(parts) > 7: names.add(parts[7])
for n in names:
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(("\0" + n[1:]) if n.startswith("@") else n); worked("connect " + n)
    except OSError: pass

# Everything that looks like a socket, wherever it may be reached from here.
def walk(top):
    seen = 0
    for d, dirs, files in os.walk(top, onerror=lambda e: None):
        dirs[:] = [x for x in dirs if os.path.join(d, x) not in ("/proc", "/sys")]
        for f in files:
            seen += 1
            p = os.path.join(d, f)
            try: st = os.lstat(p)
            except OSError: continue
            if stat.S_ISSOCK(st.st_mode): worked("socket " + p)
            if st.st_uid != os.getuid() and os.access(p, os.W_OK) and stat.S_ISREG(st.st_mode): worked("writable " + p)
    return seen
print("files seen: %d" % walk("/"), file=sys.stderr)

# Files of others below /proc.
for p in glob.glob("/proc/[0-9]*"):
    pid = p.split("/")[2]
    if pid in (str(os.getpid()), str(os.getppid())): continue
    for f in ("environ", "mem"):
        try: worked("read %s/%s: %r" % (p, f, open(p + "/" + f, "rb").read(32)))
        except OSError: pass

# Ways to become somebody else.
for f, args in (("setuid", (0,)), ("setgid", (0,)), ("setgroups", (0, None)), ("chroot", (b"/tmp",)), ("unshare", (0x10000000,)),
                ("unshare", (0x00020000,)), ("mount", (b"none", b"/tmp", b"tmpfs", 0, None)), ("umount2", (b"/workspace", 2)), ("setns", (3, 0))):
    if getattr(libc, f)(*args) == 0: worked(f)
try: os.mknod("/tmp/dev", stat.S_IFBLK | 0o666, os.makedev(8, 0)); worked("mknod")
except OSError: pass
for p in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/fuse", "/dev/kvm", "/proc/kcore", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/sys/fs/cgroup/cgroup.procs", "/var/run/docker.sock", "/run/docker.sock"):
    for mode in (os.O_RDONLY, os.O_WRONLY):
        try:
            fd = os.open(p, mode)
            if mode == os.O_RDONLY and (p.startswith("/proc/sys/") or p.startswith("/sys/") or not os.read(fd, 1)): continue
            worked("open %s" % p)
        except OSError: pass
try:
    cmd = open("/proc/1/cmdline", "rb").read()
    if cmd != b"/run/caisson/agent\0": worked("cmdline %r" % cmd)
except OSError: pass
`

func TestAgentIsOutOfReach(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python"})
	// Another exec runs beside it: its processes are of the same user, and fair
	// game; the agent's secret must not be in them either.
	res := b.py(t, attack, 60*time.Second)
	if res.Code != 0 || len(res.Stdout) > 0 {
		t.Errorf("code %d (%s): it could\n%s\nstderr %s", res.Code, res.Reason, res.Stdout, res.Stderr)
	}
	if !strings.Contains(string(res.Stderr), "files seen: ") || strings.Contains(string(res.Stderr), "files seen: 0") {
		t.Errorf("the search saw nothing: %q", res.Stderr)
	}
	if b.usable(t).Replaced {
		t.Error("the agent was hurt")
	}
}

// Roles are kept apart: the user can do nothing to the runner's processes and
// files.
func TestRunnerIsOutOfReach(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	stdin, end := io.Pipe()
	begun, done := make(chan struct{}, 2), make(chan sandbox.Result, 1)
	go func() {
		w := &signalWriter{first: func() { begun <- struct{}{} }} // written to twice
		res, err := b.Exec(t.Context(), sandbox.Run{
			Role: sandbox.RoleRunner, Dir: "/tmp", Env: []string{"SECRET=x"},
			Command: []string{"sh", "-c", "umask 077; echo secret > /tmp/mine; echo begun; read x; cat /tmp/mine; exit 9"},
		}, sandbox.Streams{Stdin: stdin, Stdout: w})
		if err != nil {
			t.Errorf("runner: %v", err)
		}
		done <- res
	}()
	await(t, begun)
	res := b.sh(t, `kill -9 -1; for p in /proc/[0-9]*; do [ "$p" = /proc/$$ ] || cat $p/environ; done 2>/dev/null | tr '\0' '\n' | grep SECRET; cat /tmp/mine; rm -f /tmp/mine; echo y > /tmp/mine`, time.Minute)
	if strings.Contains(string(res.Stdout), "SECRET") || strings.Contains(string(res.Stdout), "secret") {
		t.Errorf("the user could read what is the runner's: %q", res.Stdout)
	}
	_ = end.Close()
	if got := <-done; got.Code != 9 || string(got.Stdout) != "begun\nsecret\n" {
		t.Errorf("the runner ended with %s, code %d, stdout %q, stderr %q", got.Reason, got.Code, got.Stdout, got.Stderr)
	}
	b.usable(t)
}

// Whoever gets to the socket needs the secret, and cannot claim again.
func TestAgentAsksForTheSecret(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	rt := b.kit.Runtime(t)
	handles, err := rt.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range handles {
		if h.ID != b.ID() {
			continue
		}
		inst, err := rt.Attach(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			cfg  client.Config
			want sandbox.Kind
		}{
			"no secret":    {client.Config{}, sandbox.Denied},
			"wrong secret": {client.Config{Secret: make([]byte, 32)}, sandbox.Denied},
			"second claim": {client.Config{Secret: make([]byte, 32), Claim: &client.Claim{Identity: sandbox.Identity{UID: 20000, RunnerUID: 20001}}}, sandbox.Conflict},
		} {
			conn, err := inst.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.New(t.Context(), conn, tt.cfg); sandbox.KindOf(err) != tt.want {
				t.Errorf("%s: %v, not %s", name, err, tt.want)
			}
		}
		b.usable(t)
		return
	}
	t.Fatal("the sandbox is not listed")
}

// The secret appears nowhere: neither in the container's description nor where
// user code may look.
func TestNothingIsToldByInspect(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	_, raw, err := b.kit.API.ContainerInspectWithRaw(t.Context(), "caisson-"+string(b.ID()), false)
	if err != nil {
		t.Fatal(err)
	}
	told := strings.ReplaceAll(string(raw), "memfd_secret", "") // a system call, of the seccomp profile
	for _, word := range []string{"secret", "Secret"} {
		if strings.Contains(told, word) {
			t.Errorf("inspect has the word %q", word)
		}
	}
	res := b.sh(t, "env; cat /proc/self/environ", 0)
	if strings.Contains(strings.ToLower(string(res.Stdout)), "secret") {
		t.Errorf("environment: %q", res.Stdout)
	}
}
