package manager_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

func python(text string) sandbox.Run { return inTime(sandbox.Run{Language: "python", Code: text}) }

// However a process becomes another program, it is seen before.
func TestEveryStartIsSeen(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, everyStartIsSeen)
}

func everyStartIsSeen(t *testing.T, on string) {
	j := &judge{deny: []string{"id", "memfd:x (deleted)"}}
	m := startsManager(t, on, j, sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: true})
	const imports = "import os, ctypes, subprocess, threading, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n" +
		"execveat = {'x86_64': 322, 'aarch64': 281}[os.uname().machine]\n"
	ways := map[string]string{
		"fork and exec":             "pid = os.fork()\nif not pid:\n  try: os.execv('/usr/bin/id', ['id'])\n  except PermissionError: os._exit(9)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
		"a spawn":                   "try: os.posix_spawn('/usr/bin/id', ['id'], {})\nexcept PermissionError: print(9)",
		"a thread":                  "def f():\n  try: os.execv('/usr/bin/id', ['id'])\n  except PermissionError: print(9)\nt = threading.Thread(target=f); t.start(); t.join()",
		"a descriptor":              "fd = os.open('/usr/bin/id', os.O_RDONLY)\ntry: os.execve(fd, ['id'], {})\nexcept PermissionError: print(9)",
		"a memory file":             "fd = os.memfd_create('x')\nos.write(fd, open('/usr/bin/id', 'rb').read())\ntry: os.execve(fd, ['id'], {})\nexcept PermissionError: print(9)",
		"no arguments":              "libc.execve(b'/usr/bin/id', None, None); print(9 if ctypes.get_errno() == 13 else ctypes.get_errno())",
		"a link":                    "os.symlink('/usr/bin/id', 'ls')\ntry: os.execv('./ls', ['ls'])\nexcept PermissionError: print(9)",
		"one that hides":            "libc.prctl(4, 0, 0, 0, 0)\nif os.system('true') == 0 and subprocess.run(['/bin/true'], cwd='/').returncode == 0:\n  try: os.execv('/usr/bin/id', ['id'])\n  except PermissionError: print(9)",
		"hidden, by its descriptor": "fd = os.open('/usr/bin/id', os.O_RDONLY); libc.prctl(4, 0, 0, 0, 0)\ntry: os.execve(fd, ['id'], {})\nexcept PermissionError: print(9)",
		"hidden, by a path alone":   "fd = os.open('/usr/bin/id', os.O_PATH); libc.prctl(4, 0, 0, 0, 0)\nprint(9 if libc.syscall(execveat, fd, b'', (ctypes.c_char_p * 2)(b'id', None), None, 0x1000) == -1 and ctypes.get_errno() == 13 else 'ran')",
		"too much":                  "try: os.execv('/bin/true', ['true'] + ['x' * 100000] * 15)\nexcept PermissionError: print(9)",
		"the agent's own":           "os.symlink('/proc/self/exe', 'x')\ntry: os.execv('x', ['x', '-c', '1'])\nexcept PermissionError: print(9)",
		"a filter of its":           "libc.prctl(38, 1, 0, 0, 0)\ntry: os.execv('/usr/bin/id', ['id'])\nexcept PermissionError: print(9)",
	}
	if runtime.GOARCH == "amd64" {
		ways["32 bits"] = "import mmap\nb = mmap.mmap(-1, 4096, prot=7)\nb.write(bytes.fromhex('53b80b000000bb0000000031c931d2cd805bc3'))\nf = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(b)))\nprint(9 if f() == -38 else 'ran')"
	}
	for name, code := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := mustRun(t, m, python(imports+code+"\n"))
			if string(res.Stdout) != "9\n" || res.Reason != sandbox.ReasonExited {
				t.Errorf("%+v %q %q %+v", res.Exit, res.Stdout, res.Stderr, res.Starts)
			}
		})
	}
}

// What is told to whoever judges is what the process would become.
func TestStartIsTold(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, startIsTold)
}

func startIsTold(t *testing.T, on string) {
	j := &judge{}
	m := startsManager(t, on, j, sandbox.StartsRule{Mode: sandbox.StartsJudge})
	res := mustRun(t, m, shell("mkdir d; cd d; printf '#!/bin/sh\\nexit 3\\n' >x; chmod +x x; LD_AUDIT=a LC_X=b ./x \"$(printf 'a\\377')\" 'b c'; echo $?\n"))
	found := j.about("x")
	if string(res.Stdout) != "3\n" || len(found) != 1 {
		t.Fatalf("%+v %q %q, asked %+v", res.Exit, res.Stdout, res.Stderr, j.asked)
	}
	s := found[0]
	if s.Path != "/workspace/d/x" || !slices.Equal(s.Argv, []string{"./x", "a\xff", "b c"}) || s.Dir != "/workspace/d" || !slices.Equal(s.Env, []string{"LD_AUDIT=a"}) ||
		!s.Own || s.Native || string(s.Script) != "#!/bin/sh\nexit 3\n" || len(s.SHA256) != 32 {
		t.Errorf("told %+v", s)
	}
}

// What may pass whatever its arguments is asked about once, and what may pass as it is
// once for each.
func TestStartsAreRemembered(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, startsAreRemembered)
}

func startsAreRemembered(t *testing.T, on string) {
	text := "i=0; while [ $i -lt 200 ]; do /usr/bin/env -u A$((i % 2)) >/dev/null; i=$((i+1)); done\n"
	for _, any := range []bool{true, false} {
		j := &judge{any: any, same: true}
		m := startsManager(t, on, j, sandbox.StartsRule{Mode: sandbox.StartsJudge})
		res := mustRun(t, m, shell(text))
		want := 2
		if any {
			want = 1
		}
		if got := len(j.about("env")); res.Code != 0 || got != want || len(res.Starts) != 200 {
			t.Errorf("any %v: asked %d times, want %d; told %d of %+v", any, got, want, len(res.Starts), res.Exit)
		}
	}
}

// Many at once, and more than are told one by one.
func TestStormOfStarts(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, stormOfStarts)
}

func stormOfStarts(t *testing.T, on string) {
	j := &judge{any: true}
	m := startsManager(t, on, j, sandbox.StartsRule{Mode: sandbox.StartsJudge})
	res := mustRun(t, m, python("import subprocess\nps = []\nfor _ in range(20):\n  ps = [subprocess.Popen(['/bin/true']) for _ in range(50)]\n  assert all(p.wait() == 0 for p in ps)\nprint('done')\n"))
	if string(res.Stdout) != "done\n" || len(res.Starts)+res.StartsLeftOut != 1000 || len(res.Starts) != sandbox.MaxStarts {
		t.Errorf("%+v %q: told %d, left out %d", res.Exit, res.Stderr, len(res.Starts), res.StartsLeftOut)
	}
}

// An exec whose starts are judged has the limits and streams that another has.
func TestJudgedExecIsTheSame(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, judgedExecIsTheSame)
}

func judgedExecIsTheSame(t *testing.T, on string) {
	text := "ulimit -n; ulimit -Hn; id -u >/dev/null; cat /proc/self/status | grep -E '^(SigBlk|SigIgn|NoNewPrivs|CapEff|Uid|Groups):' | sed 's/[0-9]\\{5\\}/N/g'; ls /proc/self/fd | wc -l; cat\n"
	run := func(rule sandbox.StartsRule) string {
		m := startsManager(t, on, &judge{any: true}, rule)
		res, err := m.Run(t.Context(), shell(text), sandbox.Streams{Stdin: strings.NewReader("in\n")})
		if err != nil || res.Code != 0 {
			t.Fatalf("%v %+v %q", err, res.Exit, res.Stderr)
		}
		return string(res.Stdout)
	}
	plain, judged := run(sandbox.StartsRule{}), run(sandbox.StartsRule{Mode: sandbox.StartsJudge})
	if plain != judged || !strings.Contains(plain, "in\n") {
		t.Errorf("plain:\n%s\njudged:\n%s", plain, judged)
	}
}

func sessionOfStarts(t *testing.T, gate manager.Gate, rule sandbox.StartsRule) *manager.Manager {
	t.Helper()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(manager.Config{
		Patience: enginetest.Patience, Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: gate, Store: s, StateID: s.ID(), LockDir: filepath.Join(dir, "locks"), Starts: rule,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.RemoveSession(context.WithoutCancel(t.Context()), "work", true) // it may have been removed
		if err := errors.Join(m.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Language: "shell"}); err != nil {
		t.Fatal(err)
	}
	return m
}

// While a person is asked, the exec stands still, its time too, and cannot be frozen.
func TestAskedAboutStart(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second // in which it asks, also on a busy machine
	asked, answer := make(chan struct{}), make(chan bool)
	gate := func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Start == nil || !strings.HasSuffix(q.Start.Start.File, "/id") {
			return manager.Unjudged(ctx, q)
		}
		q.Start.Hold()
		asked <- struct{}{}
		if <-answer {
			return manager.Unjudged(ctx, q)
		}
		return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Ask, Refused: "no"}}, nil
	}
	m := sessionOfStarts(t, gate, sandbox.StartsRule{Mode: sandbox.StartsJudge})
	if _, err := m.OpenShell(t.Context(), "work", "main", sandbox.ShellOptions{}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ yes, inShell bool }{{true, false}, {false, false}, {true, true}, {false, true}} {
		yes := tt.yes
		over := make(chan sandbox.Result, 1)
		go func() {
			run := shell("/usr/bin/id >/dev/null; echo went on\n")
			run.Timeout = sandbox.Duration(limit)
			exec := func() (sandbox.Result, error) { return m.ExecIn(t.Context(), "work", run, sandbox.Streams{}) }
			if tt.inShell {
				exec = func() (sandbox.Result, error) {
					return m.RunShell(t.Context(), "work", "main", sandbox.ShellRun{Text: run.Code, ExecLimits: run.ExecLimits}, sandbox.Streams{})
				}
			}
			res, err := exec()
			if err != nil {
				t.Error(err)
			}
			over <- res
		}()
		select {
		case <-asked:
		case res := <-over:
			t.Fatalf("it ended before a person was asked: %+v %q", res.Exit, res.Stderr)
		}
		if err := m.PauseSession(t.Context(), "work"); !errors.Is(err, sandbox.Conflict) {
			t.Errorf("frozen while a person is asked: %v", err)
		}
		time.Sleep(limit + time.Second)
		answer <- yes
		res := <-over
		if yes && (res.Reason != sandbox.ReasonExited || string(res.Stdout) != "went on\n") {
			t.Errorf("approved: %+v %q %q", res.Exit, res.Stdout, res.Stderr)
		}
		if !yes && (res.Reason != sandbox.ReasonDenied || !strings.HasSuffix(res.Cause, "/usr/bin/id: no") || !tt.inShell && len(res.Stdout) > 0) {
			t.Errorf("refused: %+v %q", res.Exit, res.Stdout)
		}
	}
}
