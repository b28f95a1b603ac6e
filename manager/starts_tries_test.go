package manager_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// withID refuses id, by whatever name, copy or loader, and lets pass all else.
func withID(ctx context.Context, q manager.Question) (manager.Answer, error) {
	a, err := manager.Unjudged(ctx, q)
	if q.Start == nil {
		return a, err
	}
	s := q.Start.Start
	loads := strings.HasPrefix(path.Base(s.File), "ld-linux") && slices.Contains(s.Argv, "/usr/bin/id")
	if path.Base(s.File) == "id" || s.Own && s.Native || loads || strings.HasPrefix(string(s.Script), "#!/usr/bin/id") {
		a.Decision = sandbox.Decision{Verdict: sandbox.Deny}
	}
	return a, err
}

// shellTries and pythonTries are ways to start id that are not looked for by anybody.
var shellTries = map[string]string{
	"plain": "id", "a subshell": "(id)", "in its place": "exec id", "another name": "exec -a ls /usr/bin/id", "substituted": "echo $(id)", "backticks": "echo `id`",
	"beside": "id & wait", "a pipe": "id | cat", "command": "command id", "eval": "eval i''d", "hash": "hash -p /usr/bin/id ls; ls", "time": "time id",
	"an alias": "shopt -s expand_aliases; alias x=id\nx", "a function": "f() { id; }; f", "one handed on": "f() { id; }; export -f f; bash -c f",
	"a trap": "trap id EXIT; true", "a signal's": "trap id USR1; kill -USR1 $$; :", "a coprocess": "coproc id; cat <&${COPROC[0]}", "a file that is none": "cat <(id)",
	"mapfile": "mapfile -C 'id #' -c 1 x <<<a", "a here-string": "bash <<<id", "standard input": "echo id | sh", "its name": "echo id | bash /dev/stdin", "a script that is none": "bash <(echo id)",
	"sourced": "echo id >x; . ./x", "a script": "echo id >x; sh x", "a shebang": "printf '#!/bin/sh\\nid' >x; chmod +x x; ./x", "one without": "echo id >x; chmod +x x; ./x",
	"a shebang of its own": "printf '#!/usr/bin/id\\n' >x; chmod +x x; ./x", "shebangs of shebangs": "printf '#!/bin/sh\\nid' >/tmp/y; printf '#!/tmp/y\\n' >x; chmod +x x /tmp/y; ./x",
	"env's shebang": "printf '#!/usr/bin/env -S id\\n' >x; chmod +x x; ./x", "BASH_ENV": "echo id >x; BASH_ENV=x bash -c :", "ENV": "echo id >x; ENV=$PWD/x sh -i </dev/null",
	"an rc file": "echo id >x; bash --rcfile x -i </dev/null", "a prompt": "PROMPT_COMMAND=id bash --norc -i <<<:", "PS4": "PS4='$(id)' bash -xc :", "not found": "bash -c 'command_not_found_handle() { id; }; nothing'",
	"a link": "ln -s /usr/bin/id x; ./x", "a link in PATH": "ln -s /usr/bin/id ls; PATH=.:$PATH ls", "a copy": "cp /usr/bin/id x; ./x", "a hard link": "cp /usr/bin/id x; ln x y; ./y",
	"dots": "/usr/../usr/bin/./id", "slashes": "//usr///bin//id", "its root": "/proc/self/root/usr/bin/id", "its thread's": "/proc/thread-self/root/usr/bin/id",
	"a descriptor": "exec 9</usr/bin/id; /proc/self/fd/9", "another's": "exec 9</usr/bin/id; /dev/fd/9", "a folder's": "cd /usr/bin; ./id", "the loader": "/lib*/ld-linux-*.so.? /usr/bin/id",
	"its options": "/lib*/ld-linux-*.so.? --argv0 ls /usr/bin/id", "a link to it": "ln -s /lib*/ld-linux-*.so.? x; ./x /usr/bin/id",
	"env": "env id", "env -S": "env -S 'id'", "env -i": "env -i /usr/bin/id", "nice": "nice id", "nohup": "nohup id", "timeout": "timeout 60 id", "setsid": "setsid -w id", "stdbuf": "stdbuf -o0 id",
	"flock": "flock l id", "ionice": "ionice id", "setarch": "setarch $(uname -m) id", "linux64": "linux64 id", "prlimit": "prlimit id", "taskset": "taskset -c 0-63 id", "script": "script -qc id x",
	"setpriv": "setpriv id", "chrt": "chrt -o 0 id", "xargs": "echo id | xargs -I% sh -c %", "xargs beside": "echo a b | xargs -n1 -P2 sh -c id",
	"find": "find . -maxdepth 0 -exec id \\;", "find in folders": "find . -maxdepth 0 -execdir id \\;", "awk": "awk 'BEGIN{system(\"id\")}'", "awk reads": "awk 'BEGIN{\"id\"|getline x;print x}'",
	"awk writes": "awk 'BEGIN{print 1|\"id\"}'", "sed": "echo x | sed '1e id'", "sed's s": "echo id | sed 's/x*/&/e'", "sort": "seq 99999 >n; sort -S 100k --compress-program=id n",
	"split": "echo x | split --filter=id", "tar": "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=id /etc/passwd", "tar's options": "TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=id' tar cf /dev/null /etc/passwd",
	"tar's command": "tar cf x.tar /etc/passwd; tar xf x.tar --to-command=id", "tar's compressor": "tar cf x.tar -I id /etc/passwd",
	"tar's volumes": "head -c 99999 /dev/zero >x; tar cf x.tar -M -L 20 -F id x", "run-parts": "mkdir d; ln -s /usr/bin/id d/x; run-parts d", "start-stop-daemon": "start-stop-daemon --start --exec /usr/bin/id",
	"git": "git -c alias.x='!id' x", "git's diff": "git init -q; echo a >x; git add x; echo b >x; GIT_EXTERNAL_DIFF=id git diff", "git's hooks": "git init -q; printf '#!/bin/sh\\nid' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git -c user.name=a -c user.email=b commit --allow-empty -m x",
	"git's editor": "git init -q; GIT_EDITOR=id git -c user.name=a -c user.email=b commit --allow-empty", "git's ssh": "GIT_SSH_COMMAND=id git ls-remote ssh://h/x", "git's filter": "git init -q; echo '* filter=x' >.gitattributes; git -c filter.x.clean=id add .",
	"perl": "perl -e 'system \"id\"'", "perl's place": "perl -e 'exec {\"/usr/bin/id\"} \"ls\"'", "perl's quotes": "perl -e 'print `id`'", "perl's open": "perl -e 'open F, \"-|\", \"id\"; print <F>'", "perl's call": "perl -e '$p=\"/usr/bin/id\"; $a=pack \"pQ\",$p,0; syscall `uname -m` =~ /x86/ ? 59 : 221,$p,$a,0'",
}

var pythonTries = map[string]string{
	"system": "os.system('id')", "popen": "os.popen('id').read()", "run": "subprocess.run(['id'])", "a shell": "subprocess.run('id', shell=True)", "another executable": "subprocess.run(['ls'], executable='/usr/bin/id')",
	"execv": "os.execv('/usr/bin/id', ['id'])", "execlp": "os.execlp('id', 'id')", "execvpe": "os.execvpe('id', ['id'], {'PATH': '/usr/bin'})", "spawnv": "os.spawnv(os.P_WAIT, '/usr/bin/id', ['id'])", "spawnlp": "os.spawnlp(os.P_WAIT, 'id', 'id')",
	"posix_spawn": "os.posix_spawn('/usr/bin/id', ['id'], {})", "with actions": "os.posix_spawnp('id', ['id'], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 1, 2)], setpgroup=0)",
	"a fork": "os.fork() or os.execv('/usr/bin/id', ['id']); os.wait()", "a terminal": "pty.spawn('id')", "forkpty": "os.forkpty()[0] or os.execv('/usr/bin/id', ['id']); os.wait()", "a thread": "t = threading.Thread(target=os.execv, args=('/usr/bin/id', ['id'])); t.start(); t.join()",
	"a descriptor": "os.execve(os.open('/usr/bin/id', os.O_RDONLY), ['id'], {})", "a path alone": "os.execve(os.open('/usr/bin/id', os.O_PATH), ['id'], {})", "a folder": "c.syscall(execveat, os.open('/usr/bin', os.O_PATH), b'id', argv, None, 0)",
	"an empty path": "c.syscall(execveat, os.open('/usr/bin/id', os.O_PATH), b'', argv, None, 0x1000)", "fexecve": "c.fexecve(os.open('/usr/bin/id', os.O_RDONLY), argv, argv)",
	"memory": "fd = os.memfd_create('x'); os.write(fd, open('/usr/bin/id', 'rb').read()); os.execve(fd, ['id'], {})", "sealed memory": "fd = os.memfd_create('x', os.MFD_ALLOW_SEALING); os.write(fd, open('/usr/bin/id', 'rb').read()); fcntl.fcntl(fd, 1033, 15); os.execve(fd, ['id'], {})",
	"a script in memory": "fd = os.memfd_create('x', 0); os.write(fd, b'#!/usr/bin/id\\n'); os.execve(fd, ['x'], {})", "a deleted file": "shutil.copy('/usr/bin/id', 'x'); fd = os.open('x', os.O_RDONLY); os.unlink('x'); os.execve(fd, ['x'], {})",
	"a file without a name": "fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o755); os.write(fd, open('/usr/bin/id', 'rb').read()); r = os.open(f'/proc/self/fd/{fd}', os.O_RDONLY); os.close(fd); os.execve(r, ['x'], {})",
	"the C library's":       "c.execve(b'/usr/bin/id', argv, None)", "its system": "c.system(b'id')", "its popen": "c.popen(b'id', b'r'); os.wait()", "its spawn": "c.posix_spawn(None, b'/usr/bin/id', None, None, argv, None)", "wordexp": "c.wordexp(b'$(id)', ctypes.create_string_buffer(99), 0)",
	"the call itself": "c.syscall(execve, b'/usr/bin/id', argv, None)", "no arguments": "c.syscall(execve, b'/usr/bin/id', None, None)", "a vfork": "c.vfork() or (c.execve(b'/usr/bin/id', argv, None), c._exit(1))", "a clone": "c.syscall(clone, 17, 0, 0, 0, 0) or (c.execve(b'/usr/bin/id', argv, None), c._exit(1)); os.wait()",
	"a child's child": "os.fork() or (os.fork() or os.execv('/usr/bin/id', ['id'])); os.wait()", "an orphan": "r, w = os.pipe(); os.fork() or (os.setsid(), os.fork() or os.execv('/usr/bin/id', ['id']), os._exit(0)); os.close(w); os.read(r, 1)",
	"asyncio": "asyncio.run(asyncio.create_subprocess_exec('id'))", "multiprocessing": "multiprocessing.set_start_method('spawn'); multiprocessing.set_executable('/usr/bin/id'); multiprocessing.Process(target=print).start()",
	"a browser": "webbrowser.get('id %s').open('x')", "a pager": "os.environ['PAGER'] = 'id'; pydoc.pipepager('x', 'id')", "at its end": "atexit.register(os.system, 'id')", "an object": "pickle.loads(b'cos\\nsystem\\n(S\"id\"\\ntR.')",
	"a startup file": "open('/tmp/s.py', 'w').write('import os; os.system(\"id\")'); subprocess.run([sys.executable, '-i'], env={'PYTHONSTARTUP': '/tmp/s.py'}, input=b'')", "a site": "os.mkdir('/tmp/p'); open('/tmp/p/sitecustomize.py', 'w').write('import os; os.system(\"id\")'); subprocess.run([sys.executable, '-c', '1'], env={'PYTHONPATH': '/tmp/p'})",
	"a zip": "zipfile.ZipFile('x.zip', 'w').writestr('__main__.py', 'import os; os.system(\"id\")'); subprocess.run([sys.executable, 'x.zip'])", "few processes": "resource.setrlimit(resource.RLIMIT_NPROC, (9, 9)); os.execv('/usr/bin/id', ['id'])", "few files": "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0)); os.execv('/usr/bin/id', ['id'])",
	"another personality": "c.personality(0x0040000); os.execv('/usr/bin/id', ['id'])", "a full stack": "resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20)); os.execv('/usr/bin/id', ['id'] + ['x' * 1000] * 99)",
	"a timer": "signal.signal(signal.SIGALRM, lambda *a: os.execv('/usr/bin/id', ['id'])); signal.alarm(1); signal.pause()", "no group": "os.fork() or (os.setpgid(0, 0), os.execv('/usr/bin/id', ['id'])); os.wait()", "a traced one": "c.ptrace(0, 0, 0, 0); os.execv('/usr/bin/id', ['id'])",
}

// However a program is started, it is seen before, told, and refused where it is to be.
func TestStartsByAHundredWays(t *testing.T) {
	t.Parallel()
	p := startsPlace(t, docker.Name)
	p.kit.Image(t, "python")
	m := p.judging(t, withID)
	const imports = "import asyncio, atexit, ctypes, fcntl, multiprocessing, os, pickle, pty, pydoc, resource, shutil, signal, subprocess, sys, threading, time, webbrowser, zipfile\n" +
		"c = ctypes.CDLL(None); argv = (ctypes.c_char_p * 2)(b'id', None)\n" +
		"execveat, execve, clone = {'x86_64': (322, 59, 56), 'aarch64': (281, 221, 220)}[os.uname().machine]\n"
	try := func(name, language, code string) {
		res, err := m.ExecIn(t.Context(), "work", sandbox.Run{Language: language, Command: []string{map[string]string{"python": "python3", "shell": "bash"}[language], "-c", code}, Reap: true, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(time.Minute)}}, sandbox.Streams{})
		if err != nil {
			t.Errorf("%s: %s: %v", language, name, err)
			return
		}
		denied := slices.ContainsFunc(res.Starts, func(s sandbox.Start) bool { return s.Verdict == sandbox.Deny })
		if said := string(res.Stdout) + string(res.Stderr); strings.Contains(said, "uid=") || !denied {
			t.Errorf("%s: %s: %+v %q\ntold %q", language, name, res.Exit, said, startsOf(res.Starts))
		}
	}
	for name, code := range shellTries {
		try(name, "shell", "cd $(mktemp -d); export HOME=$PWD\n"+code)
	}
	for name, code := range pythonTries {
		try(name, "python", imports+"os.chdir(__import__('tempfile').mkdtemp())\n"+code+"\n")
	}
}
