package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// startsPlace is a place where what execs start is judged.
func startsPlace(t *testing.T, rule sandbox.StartsRule, langs ...string) *place {
	t.Helper()
	return startsPlaceWith(t, rule, startsOnly, langs...)
}

func startsPlaceWith(t *testing.T, rule sandbox.StartsRule, judge func(*gate.Gate) manager.Gate, langs ...string) *place {
	t.Helper()
	kit := enginetest.New(t)
	for _, l := range langs {
		kit.Image(t, l)
	}
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	desk, err := approval.New(approval.Config{Store: s, Poll: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	tb, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	p := newPolicy(t)
	g, err := gate.New(gate.Config{
		Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: desk, Actor: "test",
		Plain: func(context.Context) (func(string) bool, error) {
			return func(name string) bool { return policy.Plain(tb, name) }, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := manager.Config{
		Patience: enginetest.Patience, Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: judge(g), Store: s, StateID: s.ID(), LockDir: filepath.Join(dir, "locks"), Actor: "test",
		Starts: rule, StartVariables: gate.StartVariables(),
	}
	m, err := manager.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return &place{m, s, cfg}
}

// startsOnly judges what execs start, and lets the execs themselves pass.
func startsOnly(g *gate.Gate) manager.Gate {
	return func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Start == nil {
			return manager.Unjudged(ctx, q)
		}
		return g.Judge(ctx, q)
	}
}

// What a text does not say is judged once it happens: none of these could be told
// before, or was.
func TestStartsJudged(t *testing.T) {
	t.Parallel()
	p := startsPlace(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, "python", "shell")
	const imported = "import subprocess\nopen('m.py', 'w').write('import shutil; shutil.rmtree(\"/\")')\n"
	for name, code := range map[string]string{
		"a command from a file": "import os, json\nos.system(json.load(open('cmd.json'))['cmd'])",
		"one put together":      "import subprocess\nsubprocess.run(bytes([114,109]).decode().split() + ['-rf', '--no-preserve-root', chr(47)])",
		"awk":                   "import os\nos.system('awk -v c=\"' + 'rm -rf --no-preserve-root /' + '\" \\'BEGIN{system(c)}\\'')",
		"sed":                   "import os\nos.system('echo x | sed \"1e rm -rf --no-preserve-root /\"')",
		"tar's checkpoints":     "import os\nos.system('tar cf /dev/null --checkpoint=1 --checkpoint-action=\"exec=rm -rf --no-preserve-root /\" /usr/bin/env')",
		"TAR_OPTIONS":           "import os\nos.environ['TAR_OPTIONS']='--checkpoint=1 --checkpoint-action=exec=\"rm -rf --no-preserve-root /\"'\nos.system('tar cf /dev/null /usr/bin/env')",
		"find":                  "import os\nopen('f.sh','w').write('rm -rf --no-preserve-root /')\nos.system('find f.sh -exec sh {} \\\\;')",
		"run-parts":             "import os\nos.mkdir('d')\nopen('d/x','w').write('#!/bin/sh\\nrm -rf --no-preserve-root /')\nos.chmod('d/x',0o755)\nos.system('run-parts d')",
		"start-stop-daemon":     "import os\nos.system('start-stop-daemon --start --exec /bin/rm -- -rf --no-preserve-root /')",
		"a function handed on":  "import os\nos.environ['BASH_FUNC_f%%']='() { rm -rf --no-preserve-root /; }'\nos.system('bash -c f')",
		"webbrowser":            "import webbrowser\nwebbrowser.get('rm -rf --no-preserve-root %s').open('/')",
		"a script elsewhere":    "import os\nopen('/tmp/x','w').write('#!/bin/sh\\nrm -rf --no-preserve-root /')\nos.chmod('/tmp/x',0o755)\nos.system('/tmp/x')",
		"another name":          "import os\nos.symlink('/bin/rm','/tmp/ok')\nos.execv('/tmp/ok',['ls','-rf','--no-preserve-root','/'])",
		"xargs":                 "import os\nos.system('echo / | xargs rm -rf --no-preserve-root')",
		"make":                  "import os\nopen('Makefile','w').write('x:\\n\\trm -rf --no-preserve-root /')\nos.system('make 2>/dev/null || env -S \"rm -rf --no-preserve-root /\"')",
		"the loader":            "import os\nos.system('/lib64/ld-linux-x86-64.so.2 --argv0 ls /bin/rm -rf --no-preserve-root /')",
		"the loader's library":  "import os\nos.system('/lib64/ld-linux-x86-64.so.2 --preload ./evil.so /bin/true')",
		"a link to the loader":  "import os\nos.symlink('/lib64/ld-linux-x86-64.so.2', 'x')\nos.system('./x /bin/rm -rf --no-preserve-root /')",
		"the loader's number":   "import os\nos.system('exec 9</bin/rm; /lib64/ld-linux-x86-64.so.2 /proc/self/fd/9 -rf --no-preserve-root /')",
		"a shebang with a tab":  "import os\nopen('x','w').write('#!/bin/rm\\t-rf\\n')\nos.chmod('x',0o755)\nos.system('./x --no-preserve-root /')",
		"a shebang's end":       "import os\nopen('x','w').write('#!/bin/rm\\0 -x\\n')\nos.chmod('x',0o755)\nos.system('./x -rf --no-preserve-root /')",
		"a shebang from here":   "import os\nos.symlink('/bin/rm','ls')\nopen('x','w').write('#!ls -rf\\n')\nos.chmod('x',0o755)\nos.system('./x --no-preserve-root /')",
		"a shebang's return":    "import os\nos.symlink('/bin/rm','ls\\r')\nopen('x','w').write('#!/workspace/ls\\r\\n')\nos.chmod('x',0o755)\nos.system('./x -rf --no-preserve-root /')",
		"bytecode":              "import py_compile, subprocess, sys\nopen('a','w').write('print(1)')\npy_compile.compile('a', cfile='__pycache__/m.cpython-%d%d.pyc' % sys.version_info[:2], invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\nopen('m.py','w').close()\nopen('x.py','w').write('import m')\nsubprocess.run(['python3', 'x.py'])",
		"Python's own help":     imported + "subprocess.run(['python3', '-m', 'pydoc', 'm'])",
		"its help by name":      imported + "subprocess.run(['pydoc3', './m.py'])",
		"its debugger by name":  imported + "subprocess.run(['pdb3', '-c', 'c', 'm.py'], input=b'')",
		"what inspects":         imported + "subprocess.run(['python3', '-m', 'inspect', 'm'])",
		"what reads commands":   imported + "subprocess.run(['python3', '-m', 'asyncio'], input=open('m.py', 'rb').read())",
		"bytecode by an option": "import os, subprocess\nos.makedirs('/tmp/d/workspace')\nopen('/tmp/d/workspace/m.pyc', 'w').close()\nsubprocess.run(['python3', '-Xpycache_prefix=/tmp/d', '-c', 'import json'])",
		"an archive of modules": "import subprocess, zipfile\nzipfile.ZipFile('q', 'w').writestr('m.py', 'print(1)')\nsubprocess.run(['python3', '-c', 'import m'], env={'PATH': '/usr/bin', 'PYTHONPATH': 'q'})",
		"a script in memory":    "import os, subprocess\nf = os.memfd_create('x')\nsubprocess.run(['python3', '/proc/%d/fd/%d' % (os.getpid(), f)])",
		"a line that ends so":   "import subprocess\nopen('x.py', 'w').write('print(1) # x' + chr(13) + 'import shutil; shutil.rmtree(\"/\")')\nsubprocess.run(['python3', 'x.py'])",
		"letters that are none": "import subprocess\nopen('x.py', 'w').write('# coding: unicode_escape\\n# ' + chr(92) + 'nimport shutil; shutil.rmtree(\"/\")')\nsubprocess.run(['python3', 'x.py'])",
		"a codec of its own":    "import subprocess\nopen('x.py', 'w').write('# coding: mine\\nprint(1)')\nsubprocess.run(['python3', 'x.py'])",
		"another's root":        "import subprocess\np = subprocess.Popen(['sleep', '60'])\nsubprocess.run(['rm', '-rf', '/proc/%d/root/etc' % p.pid])",
		"a library before it":   "import os\nos.environ['LD_PRELOAD']='/workspace/evil.so'\nos.system('/bin/true')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := p.Run(t.Context(), sandbox.Run{
				Language: "python", Code: code + "\nprint('passed')\n", Files: []sandbox.File{{Path: "cmd.json", Data: []byte(`{"cmd": "rm -rf --no-preserve-root /"}`)}},
			}, sandbox.Streams{})
			if err != nil {
				t.Fatal(err)
			}
			if res.Reason != sandbox.ReasonDenied || strings.Contains(string(res.Stdout), "passed") {
				t.Errorf("%+v %q %q\n%+v", res.Exit, res.Stdout, res.Stderr, res.Starts)
			}
		})
	}
}

// Everyday programs start others, and none of these is refused.
func TestStartsLetPass(t *testing.T) {
	t.Parallel()
	p := startsPlace(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, "python", "shell")
	for _, tt := range []struct{ lang, code, want string }{
		{"shell", "for i in 1 2 3; do /bin/echo $i; done | sort -r | tr '\\n' ' '", "3 2 1 "},
		{"python", "import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', 'print(6*7)']).decode(), end='')\n", "42\n"},
		{"python", "import multiprocessing as m\ndef f(x): return x*x\nif __name__ == '__main__':\n  m.set_start_method('fork')\n  with m.Pool(2) as p: print(p.map(f, [1,2,3]))\n", "[1, 4, 9]\n"},
		{"shell", "printf '#!/bin/sh\\necho in $1\\n' >x.sh; chmod +x x.sh; ./x.sh a", "in a\n"},
		{"shell", "printf '#!/bin/sh\\necho in $1\\n' >/tmp/x.sh; chmod +x /tmp/x.sh; /tmp/x.sh b", "in b\n"},
		{"shell", "touch \"$(printf \"it's\\\\ \\377\")\"; ls | od -An -c", "   i   t   '   s   \\     377  \\n\n"},
		{"python", "import subprocess\nopen('m.py', 'w', encoding='utf-8').write('# -*- coding: utf-8 -*-\\r\\nprint(7)\\r\\n')\nfor i in range(2): subprocess.run(['python3', '-c', 'import m'])", "7\n7\n"},
		{"python", "import subprocess\nprint(subprocess.check_output(['pydoc3', 'json.tool']).split()[0].decode())", "Help\n"},
		{"shell", "cp /bin/true ./t; ./t; echo $?", "0\n"},
		{"shell", "cp /bin/true ./t; sh -c './t && ./t'; echo $?", "0\n"},
		{"shell", "cat /proc/$$/cmdline | tr -d '\\0' | head -c 4; sh -c 'exec cat /proc/$$/cmdline' | head -c 3", "bashcat"},
	} {
		res, err := p.Run(t.Context(), sandbox.Run{Language: tt.lang, Code: tt.code}, sandbox.Streams{})
		if err != nil || string(res.Stdout) != tt.want || res.Reason != sandbox.ReasonExited {
			t.Errorf("%s: %v %+v %q %q\n%+v", tt.code, err, res.Exit, res.Stdout, res.Stderr, res.Starts)
		}
	}
}

// What a command's text writes and then starts is judged at its start; what is there
// already, before.
func TestCommandStartsWhatItWrites(t *testing.T) {
	t.Parallel()
	p := startsPlaceWith(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, func(g *gate.Gate) manager.Gate { return g.Judge }, "python")
	run := func(files []sandbox.File, command ...string) (sandbox.Result, error) {
		return p.Run(t.Context(), sandbox.Run{Language: "python", Command: command, Files: files, Approve: sandbox.ApproveNever}, sandbox.Streams{})
	}
	for _, text := range []string{"echo 'print(1)' >x.py; python3 x.py", "mkdir d; cd d; cat >x.py <<'E'\nprint(1)\nE\npython3 x.py"} {
		if res, err := run(nil, "bash", "-c", text); err != nil || string(res.Stdout) != "1\n" {
			t.Errorf("%s: %v %+v %q %q", text, err, res.Exit, res.Stdout, res.Stderr)
		}
	}
	const evil = "import shutil\nprint(1)\nshutil.rmtree('/')\n"
	const text = "python3 gen.py && python3 x.py"
	files := []sandbox.File{{Path: "a", Data: []byte(evil[:30])}, {Path: "b", Data: []byte(evil[30:])}, {Path: "gen.py", Data: []byte("open('x.py', 'w').write(open('a').read() + open('b').read())")}}
	if res, err := run(files, "bash", "-c", text); err != nil || res.Reason != sandbox.ReasonDenied || len(res.Stdout) > 0 {
		t.Errorf("%s: %v %+v %q %q", text, err, res.Exit, res.Stdout, res.Stderr)
	}
	var denied *sandbox.DeniedError
	for _, command := range [][]string{{"bash", "-c", "python3 x.py"}, {"python3", "x.py"}} {
		if _, err := run([]sandbox.File{{Path: "x.py", Data: []byte(evil)}}, command...); !errors.As(err, &denied) {
			t.Errorf("%q: %v", command, err)
		}
	}
	if _, err := run(nil, "python3", "missing.py"); !errors.As(err, &denied) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// The program that calls tools is let pass: its calls are judged one by one. What else
// runs beside calls is judged as ever, also where a program returns a value.
func TestStartsBesideTools(t *testing.T) {
	t.Parallel()
	p := startsPlace(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, "python", "shell")
	say := sandbox.Callable{Tool: sandbox.Tool{Name: "say"}, Call: func(_ context.Context, a json.RawMessage) (json.RawMessage, error) { return a, nil }}
	const rm = "bytes([114,109]).decode().split() + ['-rf', '--no-preserve-root', chr(47)]"
	for _, tt := range []struct {
		run    sandbox.Run
		want   string
		reason sandbox.ExitReason
		starts int
	}{
		{sandbox.Run{Language: "shell", Code: "tool say --a=1; tool say --b=2"}, "{\"a\":1}\n{\"b\":2}\n", sandbox.ReasonExited, 2},
		{sandbox.Run{Language: "python", Code: "import subprocess\nsubprocess.run(['tool', 'say', '--a=1'])\nsubprocess.run(" + rm + ")\nprint('passed')"}, "{\"a\":1}\n", sandbox.ReasonDenied, 2},
		{sandbox.Run{Language: "python", Program: true, Code: "import subprocess\nawait say(a=1)\nsubprocess.run(" + rm + ")\nreturn 1"}, "", sandbox.ReasonDenied, 1},
	} {
		res, err := p.Run(t.Context(), tt.run, sandbox.Streams{Local: sandbox.Local{Tools: []sandbox.Callable{say}}})
		if err != nil || string(res.Stdout) != tt.want || res.Reason != tt.reason || len(res.Starts) != tt.starts || len(res.Calls) == 0 || res.Program != nil && res.Program.Value != nil {
			t.Errorf("%s: %v %+v %q %q\n%+v %+v", tt.run.Code, err, res.Exit, res.Stdout, res.Stderr, res.Starts, res.Program)
		}
	}
}

// What was asked about before an exec is not asked about again when that starts it, but
// what is found then for the first time is.
func TestStartsApprovedBefore(t *testing.T) {
	t.Parallel()
	p := startsPlaceWith(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, func(g *gate.Gate) manager.Gate { return g.Judge }, "shell")
	const hooks = "git config --global core.hooksPath /tmp/"
	for code, want := range map[string]int{
		hooks + "a; " + hooks + "a": 1,
		hooks + "a; $(awk 'BEGIN{printf \"%c%c%c\", 103, 105, 116}') config --global core.pager /tmp/b": 2,
	} {
		asked := 0
		res, err := p.Run(t.Context(), sandbox.Run{Language: "shell", Code: code + "; echo done"}, sandbox.Streams{Local: sandbox.Local{Ask: func(context.Context, sandbox.Approval) (sandbox.ApprovalAnswer, error) {
			asked++
			return sandbox.ApprovalAnswer{Approve: true}, nil
		}}})
		if err != nil || string(res.Stdout) != "done\n" || asked != want {
			t.Errorf("%s: %v %+v %q %q, asked %d times\n%+v", code, err, res.Exit, res.Stdout, res.Stderr, asked, res.Starts)
		}
	}
}

// Variables that an exec was given are not contained in what it starts.
func TestStartsOfAnExecWithVariables(t *testing.T) {
	t.Parallel()
	p := startsPlace(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, "shell")
	for _, env := range [][]string{nil, {"TOKEN=x"}} {
		res, err := p.Run(t.Context(), sandbox.Run{Language: "shell", Code: "/usr/bin/env >/dev/null; echo shown", Env: env}, sandbox.Streams{})
		if want := len(env) == 0; err != nil || (string(res.Stdout) == "shown\n") != want || (res.Reason == sandbox.ReasonDenied) == want {
			t.Errorf("%q: %v %+v %q\n%+v", env, err, res.Exit, res.Stdout, res.Starts)
		}
	}
}

// What is not judged before it begins is judged where it starts something.
func TestNoWayAroundStarts(t *testing.T) {
	t.Parallel()
	p := startsPlaceWith(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, func(g *gate.Gate) manager.Gate { return g.Judge }, "python", "node")
	ways := waysAround()
	maps.Copy(ways, harmHandedOver())
	delete(ways, "bare repo")           // git refuses it
	delete(ways, "func in source name") // nothing is deleted
	for name, tt := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := tt.run
			if run.Language == "shell" {
				run.Language = "python" // its image has a shell as well
				if run.Code != "" {
					run.Command, run.Code, run.Args = slices.Concat([]string{"bash", "-c", run.Code, "bash"}, run.Args), "", nil
				} else if run.File != "" {
					run.Command, run.File, run.Args = slices.Concat([]string{"bash", run.File}, run.Args), "", nil
				}
			}
			run.Approve = sandbox.ApproveNever
			for file, text := range tt.ws {
				if dir := path.Dir(file); path.Base(file) == "config" { // of a repository
					text += "\n[user]\n\tname = a\n\temail = a@x.test\n"
					for _, name := range []string{"objects/x", "refs/x", "HEAD"} {
						if _, has := tt.ws[path.Join(dir, name)]; !has {
							run.Files = append(run.Files, sandbox.File{Path: path.Join(dir, name), Data: []byte("ref: refs/heads/m\n")})
						}
					}
				}
				run.Files = append(run.Files, sandbox.File{Path: file, Data: []byte(text), Mode: 0o755})
			}
			s := sandbox.Streams{}
			if tt.stdin != "" {
				s.Stdin = strings.NewReader(tt.stdin)
			}
			res, err := p.Run(t.Context(), run, s)
			var denied *sandbox.DeniedError
			if errors.As(err, &denied) {
				return
			}
			if absent := strings.Contains(string(res.Stderr), "not found") || strings.Contains(string(res.Stderr), "No such file or directory: 'make'"); err == nil && absent {
				t.Skip("the image has no such program")
			}
			if err != nil || res.Reason != sandbox.ReasonDenied {
				t.Errorf("%v %+v %q %q\n%+v", err, res.Exit, res.Stdout, res.Stderr, res.Starts)
			}
		})
	}
}

// What a text puts together by filters, and what it writes and then has another program
// run, is judged where it starts something.
func TestHarmfulAtItsStart(t *testing.T) {
	t.Parallel()
	p := startsPlace(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, "python", "cpp")
	all, err := os.ReadFile("testdata/started.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		var row struct{ Language, Code string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		t.Run(row.Code[:min(len(row.Code), 30)], func(t *testing.T) {
			t.Parallel()
			run := sandbox.Run{Language: "python", Code: row.Code}
			if row.Language == "bash" {
				run.Command, run.Code = []string{"bash", "-c", row.Code}, ""
			}
			if strings.Contains(row.Code, "gcc") {
				run.Language = "cpp"
			}
			res, err := p.Run(t.Context(), run, sandbox.Streams{})
			if err == nil && strings.Contains(string(res.Stderr), "command not found") {
				t.Skip("the image has no such program")
			}
			if err != nil || res.Reason != sandbox.ReasonDenied {
				t.Errorf("%q: %v %+v %q %q\n%+v", row.Code, err, res.Exit, res.Stdout, res.Stderr, res.Starts)
			}
		})
	}
}
