package manager_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// native is what programs below do by the C library. launch is a start of their own.
const native = `
import ctypes, os, signal, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def launch(*argv):
  pid = os.fork()
  if not pid:
    try: os.execv(argv[0], argv)
    except OSError as e: os._exit(100 + e.errno)
  return pid
def over(pid): return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
`

// What programs do to be seen less, or hear of themselves, changes nothing: id is
// refused and true runs.
func TestStartsWithstand(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, startsWithstand)
}

func startsWithstand(t *testing.T, on string) {
	m := startsManager(t, on, &judge{deny: []string{"id"}, any: true}, sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: true})
	for name, tt := range map[string]struct{ code, want string }{
		"an argument nowhere": {"a = (ctypes.c_void_p * 2)(1, None)\nprint(libc.execve(b'/bin/true', a, None), ctypes.get_errno())", "-1 13"},
		"a path nowhere":      {"print(libc.execve(ctypes.c_void_p(1), None, None), ctypes.get_errno())", "-1 13"},
		"many arguments":      {"print(over(launch('/bin/true', *['x'] * 10000)))", "0"},
		"too many":            {"print(over(launch('/bin/true', *['x'] * 20000)))", "113"},
		"a long argument":     {"print(over(launch('/bin/true', 'x' * 100000)))", "0"},
		"bytes of no text":    {"print(over(launch(b'/bin/true', b'\\xff\\xfe\\n\\x1b[31m')), over(launch(b'/usr/bin/id', b'\\xff')))", "0 113"},
		"no descriptor":       {"print(libc.execveat(77, b'', (ctypes.c_char_p * 2)(b'x', None), None, 0x1000), ctypes.get_errno())", "-1 13"},
		"an empty path":       {"fd = os.open('/usr/bin/id', os.O_PATH)\nprint(libc.execveat(fd, b'', (ctypes.c_char_p * 2)(b'x', None), None, 0x1000), ctypes.get_errno())", "-1 13"},
		"its own listener": {`
libc.prctl(38, 1, 0, 0, 0)
f = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
prog = ctypes.create_string_buffer(struct.pack('H6xQ', 1, ctypes.addressof(f)))
print(libc.syscall(317, 1, 8, prog), ctypes.get_errno(), libc.syscall(317, 1, 0, prog))
print(over(launch('/usr/bin/id')), over(launch('/bin/true')))`, "-1 16 0 113 0"},
		"traced": {`
pid = os.fork()
if not pid:
  libc.ptrace(0, 0, 0, 0)
  try: os.execv('/usr/bin/id', ['id'])
  except OSError as e: os._exit(100 + e.errno)
print(over(pid))`, "113"},
		"a call made another by a tracer": {`
path = ctypes.create_string_buffer(b'/usr/bin/id')
argv = (ctypes.c_void_p * 2)(ctypes.addressof(path), None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid = os.fork()
if not pid:
  libc.ptrace(0, 0, 0, 0)
  os.kill(os.getpid(), signal.SIGSTOP)
  libc.syscall(110)
  os._exit(ctypes.get_errno())
os.waitpid(pid, 0)
regs = (ctypes.c_uint64 * 27)()
while True:
  libc.ptrace(24, pid, 0, 0)
  if os.WIFEXITED(os.waitpid(pid, 0)[1]): sys.exit('never')
  libc.ptrace(12, pid, 0, ctypes.addressof(regs))
  if regs[15] == 110: break
regs[15], regs[14], regs[13], regs[12] = 59, ctypes.addressof(path), ctypes.addressof(argv), 0
libc.ptrace(13, pid, 0, ctypes.addressof(regs))
libc.ptrace(7, pid, 0, 0)
print(over(pid))`, "13"},
		"one after another": {"import subprocess\nif len(sys.argv) < 2: print(subprocess.run(['sh', '-c', 'n=$1; [ $n -eq 0 ] && exec /bin/echo ok; exec sh -c \"$0\" \"$0\" $((n-1))', 'n=$1; [ $n -eq 0 ] && exec /bin/echo ok; exec sh -c \"$0\" \"$0\" $((n-1))', '300'], capture_output=True, text=True).stdout.strip())", "ok"},
		"forks of forks": {`
def tree(n):
  pids = []
  for _ in range(2):
    pid = os.fork()
    if not pid:
      if n: os._exit(tree(n - 1))
      os.execv('/bin/true', ['true'])
    pids.append(pid)
  return sum(over(p) for p in pids)
print(tree(3))`, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := mustRun(t, m, python(native+tt.code+"\n"))
			if got := strings.Join(strings.Fields(string(res.Stdout)), " "); got != tt.want || res.Reason != sandbox.ReasonExited {
				t.Errorf("%+v %q %q", res.Exit, res.Stdout, res.Stderr)
			}
		})
	}
}

// slow is a gate whose answer about sleep and id takes until it is told to.
func slow(asked chan<- struct{}, answer <-chan struct{}) manager.Gate {
	return func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Start != nil && slices.ContainsFunc([]string{"/sleep", "/id"}, func(name string) bool { return strings.HasSuffix(q.Start.Start.File, name) }) {
			asked <- struct{}{}
			select {
			case <-answer:
			case <-ctx.Done():
				return manager.Answer{}, ctx.Err()
			}
		}
		return manager.Unjudged(ctx, q)
	}
}

// Signals neither hurry a start that waits for its answer nor keep it from it, and one
// that kills need not wait.
func TestSignalsWhileJudged(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, signalsWhileJudged)
}

func signalsWhileJudged(t *testing.T, on string) {
	asked, answer := make(chan struct{}), make(chan struct{})
	m := startsManager(t, on, &judge{gate: slow(asked, answer)}, sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: true})
	var said bytes.Buffer
	res, err := m.Run(t.Context(), python(native+`
signal.signal(signal.SIGWINCH, lambda *a: None) # which nobody minds who has no handler
killed, hurried = launch('/bin/sleep', '600'), launch('/usr/bin/id', '-u')
sys.stdin.readline()
for _ in range(200):
  for s in signal.SIGWINCH, signal.SIGSTOP, signal.SIGCONT: os.kill(hurried, s)
os.kill(killed, signal.SIGKILL)
print(over(killed), flush=True)
print(over(hurried))
`), sandbox.Streams{Stdin: io.MultiReader(readerFunc(func([]byte) (int, error) {
		<-asked // both wait
		<-asked
		return 0, io.EOF
	}), strings.NewReader("go\n")), Stdout: writerFunc(func(p []byte) (int, error) {
		if bytes.HasPrefix(p, []byte("-9")) {
			close(answer) // the one that was killed had none
		}
		return said.Write(p)
	})})
	if err != nil || res.Code != 0 || res.Reason != sandbox.ReasonExited {
		t.Errorf("%v %+v %q", err, res.Exit, res.Stderr)
	}
	if lines := strings.Fields(said.String()); len(lines) != 3 || lines[0] != "-9" || lines[2] != "0" {
		t.Errorf("said %q", lines)
	}
}

type (
	readerFunc func([]byte) (int, error)
	writerFunc func([]byte) (int, error)
)

func (f readerFunc) Read(p []byte) (int, error)  { return f(p) }
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// judging is a manager of a place whose starts are judged.
func (p *place) judging(t *testing.T, gate manager.Gate) *manager.Manager {
	t.Helper()
	return p.seeing(t, gate, sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: true})
}

// seeing is a manager of a place with a rule for starts.
func (p *place) seeing(t *testing.T, gate manager.Gate, rule sandbox.StartsRule) *manager.Manager {
	t.Helper()
	return p.opened(t, manager.Config{Gate: gate, Starts: rule})
}

// opened is a manager of a place, with what cfg has.
func (p *place) opened(t *testing.T, cfg manager.Config) *manager.Manager {
	t.Helper()
	cfg.Runtimes, cfg.Images, cfg.Store, cfg.StateID = p.on, p.kit.Images, p.store, p.store.ID()
	cfg.LockDir, cfg.Patience = p.dir+"/locks", enginetest.Patience
	m, err := manager.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// startsPlace is a place with a session, on a runtime by its name.
func startsPlace(t *testing.T, on string) *place {
	t.Helper()
	kit := enginetest.New(t)
	p := newPlaceWith(t, kit, startsOn(t, kit, on))
	p.create(t, sandbox.SessionOptions{Name: "work"})
	return p
}

// Where who judges goes away, what waits for it is refused, and so is what comes after;
// the exec goes on. Its record says so.
func TestJudgeGoesAway(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, judgeGoesAway)
}

func judgeGoesAway(t *testing.T, on string) {
	p := startsPlace(t, on)
	asked := make(chan struct{}, 2)
	m := p.judging(t, slow(asked, nil))
	e, err := m.StartIn(t.Context(), "work", sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "/usr/bin/id; echo $?; /bin/true; echo $?"}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	a, err := p.AttachExec(t.Context(), "work", e.ID, sandbox.AttachOptions{Follow: true}, &out, nil)
	if err != nil || out.String() != "126\n126\n" || a.Exit.Reason != sandbox.ReasonExited {
		t.Errorf("%v %+v %q", err, a.Exit, out.String())
	}
	rec := p.exec(t, e.ID)
	if rec.StartsUnjudged != 2 || rec.StartsLeftOut != 1 || !slices.Equal(startsOf(rec.Starts), []string{"id deny"}) {
		t.Errorf("told %+v, left out %d, not judged %d", rec.Starts, rec.StartsLeftOut, rec.StartsUnjudged)
	}
}

// Without the agent nothing is started any more: the sandbox is given up, and the exec
// says so.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, supervisorKilled)
}

func supervisorKilled(t *testing.T, on string) {
	p := startsPlace(t, on)
	asked, answer := make(chan struct{}), make(chan struct{})
	m := p.judging(t, slow(asked, answer))
	said := make(chan struct{})
	began := sync.OnceFunc(func() { close(said) })
	go func() {
		<-asked
		<-said // else the exec may be lost before it is known to have begun
		v, err := p.Session(context.WithoutCancel(t.Context()), "work")
		if err != nil {
			t.Error(err)
			return
		}
		find := p.kit.AgentPID
		if on == bubblewrap.Name {
			find = p.kit.JailPID
		}
		agent := find(t, v.Sandboxes[0].ID)
		if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		for dead := time.NewTicker(10 * time.Millisecond); syscall.Kill(agent, 0) == nil; <-dead.C {
		}
		close(answer)
	}()
	res, err := m.ExecIn(t.Context(), "work", shell("echo before\n/usr/bin/id\necho after\n"), sandbox.Streams{Stdout: writerFunc(func(p []byte) (int, error) {
		began()
		return len(p), nil
	})})
	if err != nil || res.Reason != sandbox.ReasonInfra || strings.Contains(string(res.Stdout), "after") || strings.Contains(string(res.Stdout), "uid") || !strings.Contains(res.Cause, "killed") {
		t.Errorf("%v %+v %q %q", err, res.Exit, res.Stdout, res.Stderr)
	}
}
