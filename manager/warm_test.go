package manager_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// warmly runs Python in a warm interpreter, in a session, or in a cleaned sandbox.
func warmly(t testing.TB, p *place, run sandbox.Run) sandbox.Result {
	t.Helper()
	run.Warm = true
	var res sandbox.Result
	var err error
	if run.Session != "" {
		res, err = p.ExecIn(t.Context(), run.Session, run, sandbox.Streams{})
	} else {
		run.Language = "python"
		res, err = p.Run(t.Context(), run, sandbox.Streams{})
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, res.Stderr)
	}
	return res
}

// said is what a warm run put out, which has to have been forked and to have gone well.
func said(t testing.TB, res sandbox.Result) string {
	t.Helper()
	if !res.Warm || res.Code != 0 {
		t.Errorf("warm %t, %+v: %s", res.Warm, res.Exit, res.Stderr)
	}
	return string(res.Stdout)
}

// TestWarmIsTheSame compares what programs see and how they end with the usual start.
func TestWarmIsTheSame(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	for name, run := range map[string]sandbox.Run{
		"who":       {Code: "import os; print(os.getuid(), os.getgid(), len(os.getgroups()), os.getcwd(), os.umask(0), os.nice(0), os.getsid(0) == os.getpid(), os.getppid())"},
		"rights":    {Code: "print([l for l in open('/proc/self/status') if l.startswith(('Cap', 'NoNew', 'Seccomp', 'Uid', 'Gid'))])"},
		"files":     {Code: "import os; print(sorted(os.listdir('/proc/self/fd')))"},
		"variables": {Code: "import os; print(sorted(os.environ.items()))", Env: []string{"A=ä b=c", "PYTHONPATH=/workspace:lib"}},
		"main":      {Code: "import sys; print(sys.argv[1:], __name__, sys.path[1:], sys.flags, sorted(k for k in globals() if k not in ('sys',)))", Args: []string{"-x", "y z"}},
		"inline":    {Command: []string{"python3", "-c", "import sys; print(sys.argv, sys.path, globals().get('__file__')); 1/0", "a"}},
		"file":      {Files: []sandbox.File{{Path: "d/x.py", Data: []byte("import sys, m\nprint(sys.argv, sys.path, __file__, m.x)\n")}, {Path: "d/m.py", Data: []byte("x = 5\n")}}, File: "d/x.py", Args: []string{"1"}},
		"no file":   {Command: []string{"python3", "no.py"}},
		"a folder":  {Code: "import os; print(os.getcwd())", Dir: "/tmp"},
		"no folder": {Code: "print(1)", Dir: "no"},
		"traceback": {Code: "def f():\n    g()\ndef g():\n    raise KeyError('x')\nf()"},
		"syntax":    {Code: "x = = 1"},
		"exit":      {Code: "import sys, atexit\natexit.register(print, 'over')\nsys.exit(7)"},
		"exit text": {Code: "import sys\nsys.exit('so')"},
		"large":     {Code: "import sys\nsys.exit(513)"},
		"hook":      {Code: "import sys\nsys.excepthook = lambda *a: print('hooked', a[0])\n1/0"},
		"interrupt": {Code: "raise KeyboardInterrupt"},
		"closed":    {Code: "import sys\nprint('x')\nsys.stdout.close()"},
		"last word": {Code: "class C:\n    def __del__(self): print('gone')\nc = C()\nd = [C()]\nd.append(d)"},
		"signal":    {Code: "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"},
		"threads":   {Code: "import threading\nfirst = threading.Event()\nthreading.Thread(target=lambda: (first.wait(), print('late'))).start()\nprint('first')\nfirst.set()"},
		"children":  {Code: "import subprocess, multiprocessing as m\nprint(subprocess.run(['echo', 'x'], capture_output=True).stdout)\np = m.get_context('fork').Process(target=print, args=('child',))\np.start(); p.join(); print(p.exitcode)"},
		"output":    {Code: "import sys\nsys.stdout.reconfigure(encoding='latin-1')\nprint('ä', sys.stdout.seekable(), sys.stdin.seekable(), sys.stdin.read(), sys.stdin, sys.stderr)"},
		"loop":      {Code: "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 4\nprint(asyncio.run(f()))"},
	} {
		t.Run(name, func(t *testing.T) {
			run.Session, run.Reap = "work", true
			plain, err := p.ExecIn(t.Context(), "work", run, sandbox.Streams{})
			if err != nil {
				t.Fatal(err)
			}
			warm := warmly(t, p, run)
			if wantWarm := name != "no folder"; warm.Warm != wantWarm {
				t.Errorf("warm: %t", warm.Warm)
			}
			steady := func(r sandbox.Result) string {
				text := strings.ReplaceAll(fmt.Sprintf("%q %q %+v", r.Stdout, r.Stderr, r.Exit), string(r.ExecID), "ID")
				return text
			}
			if got, want := steady(warm), steady(plain); got != want {
				t.Errorf("forked:  %s\nstarted: %s", got, want)
			}
		})
	}
}

// TestWarmFlushes has files that a program leaves open hold what it wrote.
func TestWarmFlushes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	said(t, warmly(t, p, sandbox.Run{
		Session: "work", Command: []string{"python3", "-c", "import m\nf = open('f', 'w')\nf.write('a')"},
		Files: []sandbox.File{{Path: "m.py", Data: []byte("g = open('g', 'w')\ng.write('b')\ng.me = g\n")}},
	}))
	res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"cat", "f", "g"}, Language: "python"}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "ab" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
}

// leave leaves traces of every kind that a program can, and trace prints those that it
// finds.
const leave = `
import atexit, builtins, ctypes, json, os, random, resource, signal, socket, subprocess, sys, threading, time
for d in ("/workspace", "/tmp", "/var/tmp", "/home/sandbox", "/dev/shm"):
    os.makedirs(d + "/deep/er")
    open(d + "/deep/file", "w").write("x")
    open(d + "/.hidden", "w").write("x")
    os.symlink("/etc", d + "/link")
    os.mkfifo(d + "/fifo")
    socket.socket(socket.AF_UNIX).bind(d + "/socket")
    os.chmod(d + "/deep/er", 0)
    os.chmod(d + "/deep", 0)
    if os.stat(d).st_uid == os.getuid():
        os.chmod(d, 0o1700)
        os.utime(d, (5, 5))
        try:
            os.setxattr(d, "user.trace", b"x")
        except OSError:
            pass  # a kernel whose tmpfs has none
os.umask(0o777); os.nice(3); signal.signal(signal.SIGTERM, signal.SIG_IGN); os.environ["TRACE"] = "1"; os.chdir("/tmp")
resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30)); sys.path.insert(0, "/tmp"); sys.argv.append("trace"); sys.setrecursionlimit(77)
builtins.trace = json.trace = 1; json.dumps = None; sys.modules["trace_of"] = json; random.seed(1); sys.stdout.reconfigure(encoding="ascii")
c = ctypes.CDLL(None)
assert c.shmget(5, 1 << 20, 0o1666) >= 0 and c.semget(5, 1, 0o1666) >= 0 and c.msgget(5, 0o1666) >= 0
assert c.mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0
subprocess.Popen(["sh", "-c", "trap '' TERM HUP; setsid sleep 1000 & sleep 1000"], stdin=-3, stdout=-3, stderr=-3)
server = socket.socket(); server.bind(("127.0.0.1", 4321)); server.listen()
if os.fork() == 0:
    os.setsid()
    time.sleep(1000)
print(json.__name__)
sys.stdout.flush()
os._exit(0)
`

const trace = `
import builtins, json, os, random, resource, signal, socket, stat, subprocess, sys
found = []
for d, mode in (("/workspace", None), ("/tmp", 0o1777), ("/var/tmp", 0o1777), ("/home/sandbox", None), ("/dev/shm", 0o1777)):
    st = os.stat(d)
    found += [d + "/" + n for n in os.listdir(d)] + [d for m in [stat.S_IMODE(st.st_mode)] if m == 0o1700 or mode and m != mode]
    found += [d + " of old"] * (st.st_mtime < 10) + [d + " " + n for n in os.listxattr(d) if n.startswith("user.")]
found += ["environ"] * ("TRACE" in os.environ) + ["argv"] * ("trace" in sys.argv) + ["path"] * ("/tmp" in sys.path)
found += ["builtins"] * hasattr(builtins, "trace") + ["modules"] * ("trace_of" in sys.modules or hasattr(json, "trace") or json.dumps is None)
found += ["handler"] * (signal.getsignal(signal.SIGTERM) == signal.SIG_IGN) + ["limit"] * (resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 30)
found += ["umask"] * (os.umask(0o22) != 0o22) + ["nice"] * (os.nice(0) != 10) + ["folder"] * (os.getcwd() != "/workspace") + ["recursion"] * (sys.getrecursionlimit() == 77)
random_state = random.random()
found += ["random"] * (random_state == random.Random(1).random()) + ["stdout"] * (sys.stdout.encoding != "utf-8")
found += [line.split()[0] for f in ("shm", "sem", "msg") for line in open("/proc/sysvipc/" + f).readlines()[1:]] + os.listdir("/dev/mqueue")
found += ["port"] * (socket.socket().connect_ex(("127.0.0.1", 4321)) == 0)
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        mine = os.stat("/proc/" + pid).st_uid == os.getuid() and int(pid) != os.getpid()
        found += [open("/proc/" + pid + "/cmdline").read()] if mine else []
    except (FileNotFoundError, ProcessLookupError):
        pass
print(found)
`

// TestWarmLeavesNothing has one run leave traces of every kind, and the next one in the
// same sandbox find none, nor change what it is forked from.
func TestWarmLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	first := warmly(t, p, sandbox.Run{Code: trace})
	if got := said(t, first); got != "[]\n" {
		t.Fatalf("a new sandbox: %s", got)
	}
	for range 2 {
		left := warmly(t, p, sandbox.Run{Code: leave})
		if said(t, left); left.Sandbox != first.Sandbox {
			t.Error("it ran in another sandbox")
		}
		// What was left running was ended with all there was, the warm interpreter too.
		found := warmly(t, p, sandbox.Run{Code: trace})
		if got := said(t, found); got != "[]\n" || found.Sandbox != first.Sandbox {
			t.Errorf("%s in %s, left in %s", got, found.Sandbox, first.Sandbox)
		}
	}
}

// TestWarmForWhom has what differs, or ended otherwise, not share a sandbox.
func TestWarmForWhom(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	ran := func(run sandbox.Run) sandbox.ID { return warmly(t, p, run).Sandbox }
	plain := sandbox.Run{Code: "print(1)"}
	first := ran(plain)
	if again := ran(plain); again != first {
		t.Errorf("the same again: %s, not %s", again, first)
	}
	other := plain
	other.Limits.Memory = 256 * sandbox.MiB
	labelled := plain
	labelled.Labels = sandbox.Labels{"a": "b"}
	for name, run := range map[string]sandbox.Run{"memory": other, "labels": labelled} {
		if got := ran(run); got == first {
			t.Errorf("%s: the same sandbox", name)
		}
	}
	mine, err := p.Run(sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "another"}), sandbox.Run{Code: "print(1)", Language: "python", Warm: true}, sandbox.Streams{})
	if err != nil || mine.Sandbox == first {
		t.Errorf("of another owner: %s, %v", mine.Sandbox, err)
	}
	writes := plain
	writes.Code = "open('x', 'w').write('1')"
	for range 2 { // what was there before it is gone, and so is what was known of it
		if res := warmly(t, p, writes); len(res.Changes) != 1 || res.Changes[0].Op != sandbox.OpCreated || res.Sandbox != first {
			t.Errorf("%+v in %s", res.Changes, res.Sandbox)
		}
	}
	bad := plain
	bad.Code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
	if got := ran(bad); got != first {
		t.Errorf("before: %s", got)
	}
	if got := ran(plain); got == first {
		t.Error("after a run that was killed: the same sandbox")
	}
	if _, err := p.Run(t.Context(), sandbox.Run{Command: []string{"true"}, Language: "shell", Warm: true}, sandbox.Streams{}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a warm shell: %v", err)
	}
}

// TestWarmAtOnce has many runs begin together: few sandboxes are made for them.
func TestWarmAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	const n = 30
	boxes := make(chan sandbox.ID, n)
	for range n {
		go func() {
			res, err := p.Run(t.Context(), sandbox.Run{Code: "print(1)", Language: "python", Warm: true}, sandbox.Streams{})
			if err != nil || string(res.Stdout) != "1\n" {
				t.Errorf("%q, %v", res.Stdout, err)
			}
			boxes <- res.Sandbox
		}()
	}
	all := map[sandbox.ID]bool{}
	for range n {
		all[<-boxes] = true
	}
	if len(all) == n { // how many depends on how fast each is
		t.Errorf("each of %d runs had a sandbox of its own", n)
	}
}

// TestWarmServerIsSafe has a program try what would harm the server that it was forked
// from, and those that are forked after it.
func TestWarmServerIsSafe(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	got := said(t, warmly(t, p, sandbox.Run{Session: "work", Code: `
import ctypes, os, resource, signal
servers = []
for p in filter(str.isdigit, os.listdir("/proc")):
    try:
        if os.stat("/proc/" + p).st_uid == 65000 and b"warm.py" in open("/proc/" + p + "/cmdline", "rb").read():
            servers.append(int(p))
    except (FileNotFoundError, ProcessLookupError):
        pass
libc, done = ctypes.CDLL(None, use_errno=True), []
def tried(what, do):
    try:
        if do() in (None, 0):
            done.append(what)
    except OSError:
        pass
for p in servers + [1]:
    tried("kill", lambda: os.kill(p, signal.SIGKILL))
    tried("trace", lambda: libc.ptrace(16, p, 0, 0))
    tried("limit", lambda: resource.prlimit(p, resource.RLIMIT_NOFILE, (0, 0)))
    tried("memory", lambda: open("/proc/%d/mem" % p, "rb").close())
    tried("descriptors", lambda: os.listdir("/proc/%d/fd" % p) and None)
    tried("nice", lambda: os.setpriority(os.PRIO_PROCESS, p, 19))
for u in (0, 65000, os.getuid() + 1):
    tried("user", lambda: os.setresuid(u, u, u))
    tried("group", lambda: os.setgroups([u]))
print(len(servers) >= 1, done)
`}))
	if got != "True []\n" {
		t.Error(got)
	}
}

// TestWarmEnds has warm runs end as others do: at their time, with all that they began.
func TestWarmEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	hangs := sandbox.Run{Session: "work", Code: "import os, time\nfor _ in range(5):\n    if os.fork() == 0: os.setsid()\ntime.sleep(1000)"}
	hangs.Timeout = sandbox.Duration(10 * time.Second)
	if res := warmly(t, p, hangs); res.Reason != sandbox.ReasonTimeout || !res.Warm {
		t.Errorf("%+v", res.Exit)
	}
	left := said(t, warmly(t, p, sandbox.Run{Session: "work", Code: `
import os
left = []
for p in filter(str.isdigit, os.listdir("/proc")):
    try:
        if int(p) != os.getpid() and os.stat("/proc/" + p).st_uid == os.getuid():
            left.append(p)
    except FileNotFoundError:
        pass
print(left)
`}))
	if left != "[]\n" {
		t.Errorf("left: %s", left)
	}
	spent := warmly(t, p, sandbox.Run{Session: "work", Code: "import time\nt = time.process_time()\nwhile time.process_time() < t + .2: pass"})
	if said(t, spent); spent.Usage.CPU < 200*time.Millisecond {
		t.Errorf("it used %v", spent.Usage.CPU)
	}
}
