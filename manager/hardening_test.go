package manager_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// looks tries what a hardened program may not, and what it must be able to do, beside
// another exec whose process it is told of.
const looks = `
import ctypes, errno, os, resource, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
other = int(sys.argv[1])

def tell(name, do):
    try:
        do()
        print(name, "open")
    except OSError as e:
        print(name, errno.errorcode[e.errno])

def ok(r):
    if r < 0:
        raise OSError(ctypes.get_errno(), "")

def traced_child():
    pid = os.fork()
    if pid == 0:
        libc.ptrace(0, 0, None, None)
        os.kill(os.getpid(), 19)
        os._exit(0)
    os.waitpid(pid, 0)
    open("/proc/%d/environ" % pid, "rb").read()
    ok(libc.ptrace(17, pid, None, None))
    os.waitpid(pid, 0)

def moved():
    os.makedirs("/workspace/a/b")
    os.makedirs("/workspace/c")
    open("/workspace/a/b/f", "w").close()
    os.rename("/workspace/a/b", "/workspace/c/b")
    os.rename("/workspace/c/b/f", "/workspace/f")

tell("another exec's variables", lambda: open("/proc/%d/environ" % other, "rb").read())
tell("another exec's folder", lambda: os.readlink("/proc/%d/cwd" % other))
tell("a device", lambda: os.mknod("/workspace/device", stat.S_IFCHR, os.makedev(0, 0)))
tell("a signal to another exec", lambda: os.kill(other, 0))
tell("tracing a child", traced_child)
tell("moving between folders", moved)
for place in "/tmp", "/var/tmp", "/home/sandbox", "/dev/shm":
    tell(place, lambda: open(place + "/f", "w").write("x"))
tell("/dev/null", lambda: open("/dev/null", "w").write("x"))
tell("/dev/tty", lambda: os.close(os.openpty()[0]))
tell("/dev/stdout", lambda: open("/dev/stdout", "w").close())
tell("its name", lambda: open("/proc/self/comm", "w").write("x"))
print("files", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
`

// A hardened exec cannot look into another of its sandbox, which the same user's can
// where it is off, and all that programs need goes on.
func TestSecondLayer(t *testing.T) {
	t.Parallel()
	for hardening, answer := range map[sandbox.Hardening]string{"": "EACCES", sandbox.HardeningStrict: "EACCES", sandbox.HardeningOff: "open"} {
		t.Run("hardening "+string(hardening), func(t *testing.T) {
			t.Parallel()
			b := openBox(t, manager.OpenOptions{Language: "python", Limits: sandbox.Limits{Hardening: hardening, OpenFiles: 77}})
			pids := make(chan string, 1)
			stdin, end := io.Pipe()
			defer end.Close()
			done := make(chan error, 1)
			go func() {
				w := &lineWriter{lines: pids}
				_, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "echo $$; read x"}}, sandbox.Streams{Stdin: stdin, Stdout: w})
				done <- err
			}()
			other := await(t, pids)
			res := b.run(t, sandbox.Run{Command: []string{"python3", "-c", looks, other}})
			if err := errors.Join(end.Close(), await(t, done)); err != nil {
				t.Error(err)
			}
			want := "another exec's variables " + answer + "\nanother exec's folder " + answer + "\na device " + answer + `
a signal to another exec open
tracing a child open
moving between folders open
/tmp open
/var/tmp open
/home/sandbox open
/dev/shm open
/dev/null open
/dev/tty open
/dev/stdout open
its name open
files 77
`
			if diff := cmp.Diff(want, string(res.Stdout)); diff != "" || len(res.Stderr) > 0 {
				t.Errorf("%s\n-want +got\n%s", res.Stderr, diff)
			}
			if off := slices.Contains(res.NotEnforced, runtimes.Hardening); off != (hardening == sandbox.HardeningOff) {
				t.Errorf("not enforced, by the result: %q", res.NotEnforced)
			}
		})
	}
}

// A program that cannot be started is told of as without hardening.
func TestSecondLayerCannotStart(t *testing.T) {
	t.Parallel()
	for _, hardening := range []sandbox.Hardening{sandbox.HardeningStrict, sandbox.HardeningOff} {
		b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{Hardening: hardening}})
		res := b.sh(t, "printf '#!/nonexistent\\n' >x && printf 'no program' >y && chmod 755 x y && mkdir -m 0 z", 0)
		if res.Code != 0 {
			t.Fatalf("%s", res.Stderr)
		}
		for name, run := range map[string]struct {
			run  sandbox.Run
			code int
			says string
		}{
			"no interpreter": {sandbox.Run{Command: []string{"./x"}}, 127, "interpreter"},
			"no program":     {sandbox.Run{Command: []string{"./y"}}, 126, "exec format error"},
			"no folder":      {sandbox.Run{Command: []string{"true"}, Dir: "nowhere"}, 126, "no such directory"},
			"closed folder":  {sandbox.Run{Command: []string{"true"}, Dir: "z"}, 126, "permission denied"},
			"too long":       {sandbox.Run{Command: []string{"true", strings.Repeat("x", 1<<18)}}, 126, "too long"},
		} {
			if res := b.run(t, run.run); res.Code != run.code || !strings.Contains(res.Cause, run.says) && !strings.Contains(string(res.Stderr), run.says) {
				t.Errorf("%s, %s: code %d, cause %q, stderr %q", hardening, name, res.Code, res.Cause, res.Stderr)
			}
		}
	}
}

// lineWriter hands on the first line that is written.
type lineWriter struct {
	text  string
	lines chan string
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.text += string(b)
	if line, _, whole := strings.Cut(w.text, "\n"); whole && w.lines != nil {
		w.lines <- line
		w.lines = nil
	}
	return len(b), nil
}

// TestWarmIsHardened has a fork held as what is started is.
func TestWarmIsHardened(t *testing.T) {
	t.Parallel()
	for hardening, want := range map[sandbox.Hardening]string{sandbox.HardeningOff: "made\n", sandbox.HardeningStrict: "EACCES\n"} {
		b := openBox(t, manager.OpenOptions{Language: "python", Limits: sandbox.Limits{Hardening: hardening}})
		for range 3 {
			res := b.run(t, sandbox.Run{Warm: true, Code: "import errno, os\ntry:\n    os.mknod('x', 0o20600, 0)\n    os.remove('x')\n    print('made')\nexcept OSError as e:\n    print(errno.errorcode[e.errno])"})
			if !res.Warm || string(res.Stdout) != want {
				t.Errorf("hardening %q: warm %t, %q, want %q\n%s", hardening, res.Warm, res.Stdout, want, res.Stderr)
			}
		}
	}
}
