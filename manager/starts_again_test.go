package manager_test

import (
	"bytes"
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// awaited closes found once what is written to it has a text in it.
type awaited struct {
	text  string
	found chan struct{}

	mu  sync.Mutex
	all bytes.Buffer
}

func (w *awaited) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := strings.Contains(w.all.String(), w.text)
	w.all.Write(p)
	if !had && strings.Contains(w.all.String(), w.text) {
		close(w.found)
	}
	return len(p), nil
}

// swaps starts a program with arguments that lie in memory which its parent has too,
// and which that alters once it is told to.
const swaps = `
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
m = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
def put(off, text): m[off:off+len(text)+1] = text + b'\0'
put(0, PATH); put(1024, b'good'); put(2048, b'X_MINE=1')
argv = (ctypes.c_void_p * 3)(at, at + 1024, None)
env = (ctypes.c_void_p * 2)(at + 2048, None)
pid = os.fork()
if not pid:
  libc.execve(ctypes.c_void_p(at), argv, env)
  os._exit(99)
sys.stdin.readline()
SWAP
print('swapped', flush=True)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

// What was judged is what runs: a process whose path, arguments or variables were
// others by the time the kernel read them is ended before anything of it runs.
func TestStartIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, startIsLookedAtAgain)
}

func startIsLookedAtAgain(t *testing.T, on string) {
	const script = "open('x','w').write('#!/bin/echo script\\n')\nos.chmod('x', 0o755)\n"
	for name, tt := range map[string]struct {
		path, before, swap, want string
		denied                   bool
	}{
		"nothing":              {path: "/bin/echo", swap: "pass", want: "swapped\ngood\n0\n"},
		"an argument":          {path: "/bin/echo", swap: "put(1024, b'evil')", denied: true},
		"a longer one":         {path: "/bin/echo", swap: "put(1024, b'good good')", denied: true},
		"the path":             {path: "/bin/echo", swap: "put(0, b'/bin/env')", denied: true},
		"a variable":           {path: "/bin/echo", swap: "put(2048, b'LD_BIND_NOW=1')", denied: true},
		"one of no concern":    {path: "/bin/echo", swap: "put(2048, b'HOME=/')", want: "swapped\ngood\n0\n"},
		"a script":             {path: "./x", before: script, swap: "pass", want: "swapped\nscript ./x good\n0\n"},
		"a script's argument":  {path: "./x", before: script, swap: "put(1024, b'evil')", denied: true},
		"a script's program":   {path: "./x", before: script, swap: "open('x','w').write('#!/bin/echo evil\\n')", denied: true},
		"a script of a script": {path: "./y", before: script + "open('y','w').write('#!/workspace/x two\\n')\nos.chmod('y', 0o755)\n", swap: "pass", want: "swapped\nscript /workspace/x two ./y good\n0\n"},
		"another file":         {path: "./y", before: "import shutil\nshutil.copy('/bin/echo', 'y')\nshutil.copy('/bin/env', 'z')\n", swap: "os.rename('z', 'y')", denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, tell := io.Pipe()
			out := &awaited{text: "swapped", found: make(chan struct{})}
			gate := func(ctx context.Context, q manager.Question) (manager.Answer, error) {
				if q.Start != nil && path.Base(q.Start.Start.Path) == path.Base(tt.path) {
					_, _ = io.WriteString(tell, "go\n") // read by the program, or the test fails below
					<-out.found
				}
				return manager.Unjudged(ctx, q)
			}
			m := startsManager(t, on, &judge{gate: gate}, sandbox.StartsRule{Mode: sandbox.StartsJudge})
			code := strings.NewReplacer("PATH", "b'"+tt.path+"'", "SWAP", tt.swap).Replace(swaps)
			if tt.before != "" {
				code = "import os\n" + tt.before + code
			}
			res, err := m.Run(t.Context(), python(code), sandbox.Streams{Stdin: in, Stdout: out})
			if err != nil {
				t.Fatal(err)
			}
			_ = tell.Close()
			if !tt.denied {
				if string(res.Stdout) != tt.want || res.Reason != sandbox.ReasonExited || len(res.Starts) != 1 {
					t.Errorf("%+v %q %q\n%+v", res.Exit, res.Stdout, res.Stderr, res.Starts)
				}
				return
			}
			last := res.Starts[len(res.Starts)-1]
			if res.Reason != sandbox.ReasonDenied || strings.Contains(string(res.Stdout), "good") || strings.Contains(string(res.Stdout), "evil") ||
				!strings.HasSuffix(res.Cause, "it became another program than the one that was judged") || len(res.Starts) != 2 || last.Verdict != sandbox.Deny {
				t.Errorf("%+v %q %q\n%+v", res.Exit, res.Stdout, res.Stderr, res.Starts)
			}
		})
	}
}

// A program that alters its arguments all the time starts nothing with others than
// those that were judged.
func TestRacedArguments(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, racedArguments)
}

func racedArguments(t *testing.T, on string) {
	j := &judge{any: true}
	m := startsManager(t, on, j, sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: true})
	res := mustRun(t, m, python(`
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
m = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
m[0:10] = b'/bin/echo\0'
argv = (ctypes.c_void_p * 3)(at, at + 1024, None)
for _ in range(100):
  m[1024:1029] = b'one\0\0'
  pid = os.fork()
  if not pid:
    libc.execve(ctypes.c_void_p(at), argv, None)
    os._exit(99)
  while not os.waitpid(pid, os.WNOHANG)[0]:
    for _ in range(100):
      m[1024:1027] = b'two'
      m[1024:1027] = b'one'
`))
	// What was told first of each process is what was judged, and what it said that.
	var judged []string
	dead := map[int]bool{}
	for _, s := range res.Starts {
		dead[s.PID] = dead[s.PID] || s.Verdict == sandbox.Deny
	}
	for _, s := range res.Starts {
		if !dead[s.PID] {
			judged = append(judged, s.Argv[1])
		}
	}
	t.Logf("%d of 100 were caught", len(dead)-len(judged))
	if said := strings.Fields(string(res.Stdout)); res.Code != 0 || len(dead) != 100 || !slices.Equal(judged, said) {
		t.Errorf("%+v %q\njudged %q\nsaid %q", res.Exit, res.Stderr, judged, said)
	}
}
