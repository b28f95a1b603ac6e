package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// in runs a text in a shell.
func in(t testing.TB, m *manager.Manager, name, text string) sandbox.Result {
	t.Helper()
	return inWith(t, m, name, sandbox.ShellRun{Text: text}, "")
}

func inWith(t testing.TB, m *manager.Manager, name string, run sandbox.ShellRun, stdin string) sandbox.Result {
	t.Helper()
	var streams sandbox.Streams
	if stdin != "" {
		streams.Stdin = strings.NewReader(stdin)
	}
	res, err := m.RunShell(t.Context(), "work", name, run, streams)
	if err != nil {
		t.Fatalf("%q: %v", run.Text, err)
	}
	return res
}

func openIn(t testing.TB, m *manager.Manager, name string, kind sandbox.ShellKind) sandbox.Shell {
	t.Helper()
	s, err := m.OpenShell(t.Context(), "work", name, sandbox.ShellOptions{Kind: kind}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shellCase is one text after another in one shell.
type shellCase struct {
	text, stdin    string
	stdout, stderr string // "…" ends what is compared
	code           int
}

func (c shellCase) run(t *testing.T, p *place, name string) {
	t.Helper()
	res := inWith(t, p.Manager, name, sandbox.ShellRun{Text: c.text}, c.stdin)
	same := func(got []byte, want string) bool {
		if cut, ok := strings.CutSuffix(want, "…"); ok {
			return strings.HasPrefix(string(got), cut)
		}
		return string(got) == want
	}
	if !same(res.Stdout, c.stdout) || !same(res.Stderr, c.stderr) || res.Code != c.code || res.Shell == nil || res.Shell.Ended != "" {
		t.Errorf("%q: %d, stdout %.300q, stderr %.300q, %+v; want %d, %q, %q", c.text, res.Code, res.Stdout, res.Stderr, res.Shell, c.code, c.stdout, c.stderr)
	}
}

func TestShell(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	nul := "a\x00b\xff\n"
	bash := []shellCase{
		{text: "echo out; echo err >&2; (exit 7)", stdout: "out\n", stderr: "err\n", code: 7},
		{text: "echo $?; cd /tmp; x='a b'; export y=2; f() { echo \"f $1\"; }; alias ll='echo alias'; set -f; shopt -s nullglob", stdout: "7\n"},
		{text: "ll 1; f 2; echo \"$x\" $y $PWD *", stdout: "alias 1\nf 2\na b 2 /tmp *\n"},
		{text: "set +f; sh -c 'echo \"[$x][$y]\"'", stdout: "[][2]\n"},
		{text: "for i in 1 2\ndo\n  echo $i\ndone\ncat <<EOF\nhere $y\nEOF", stdout: "1\n2\nhere 2\n"},
		{text: "cat <<EOF\nno end", stdout: "no end\n", stderr: "bash: warning: here-document…"},
		{text: "set -e; cat <<EOF\nno end", stdout: "no end\n", stderr: "bash: warning: here-document…"},
		{text: "[ -e nothing ] && echo there", code: 1},
		{text: "set +e"},
		{text: "echo \"open", stderr: "bash: eval: line…", code: 2},
		{text: "cat; read more; echo $?", stdin: nul, stdout: nul + "1\n"},
		{text: "read a; read b; echo $b-$a", stdin: "1\n2\n3\n", stdout: "2-1\n"},
		{text: "cat"},
		{text: "read a </dev/stdin; cat /dev/stdin; cat /dev/stdin; echo $a", stdin: "1\n2\n", stdout: "2\n1\n"},
		{text: "printf 'a\\0b\\377'", stdout: "a\x00b\xff"},
		{text: "exec >file; echo in the file"},
		{text: "cat file; rm file", stdout: "in the file\n"},
		{text: "sleep 100 & echo up", stdout: "up\n"},
		{text: "kill %1; wait %1; echo $?", stdout: "143\n", stderr: "…"},
		{text: "echo mark; printf '%s\\0%s\\0\\0' fake 0; ls nowhere", stdout: "mark\nfake\x000\x00\x00", stderr: "ls: cannot access…", code: 2},
		{text: "echo mine; sh -c 'for f in /proc/self/fd/* /proc/$PPID/fd/* /run/caisson/*/*/*; do test -p $f && printf \"x\\0000\\0000\\0000\" >>$f; done' 2>/dev/null; (exit 6)", stdout: "mine\n…", stderr: "…", code: 6},
		{text: "cat /proc/$$/comm", stdout: "bash\n"},
		{text: "cat /proc/$$/comm -", stdin: "given", stdout: "bash\ngiven"},
		{text: "echo still mine; (exit 5)", stdout: "still mine\n", code: 5},
		{text: "no-such-command", stderr: "bash: no-such-command: command not found\n", code: 127},
		{text: "readonly r=1; r=2; echo not here", stderr: "bash: r: readonly variable\n", code: 1},
		{text: "echo ${q:?}; echo not here", stderr: "bash: q: parameter null or not set\n", code: 1},
		{text: "PS1='> ' PROMPT_COMMAND='echo prompt'; exit() { echo no; }; cd() { echo cd; }; eval() { echo no; }; trap() { :; }; exit; cd /; builtin cd /", stdout: "no\ncd\n"},
		{text: "unset -f exit cd eval trap; pwd", stdout: "/\n"},
		{text: "trap 'echo debug' DEBUG"},
		{text: "echo hi", stdout: "debug\nhi\n"},
		{text: "trap - DEBUG; trap 'echo usr' USR1; kill -USR1 $$", stdout: "debug\nusr\n"},
		{text: "kill -USR1 $$", stdout: "usr\n"},
		{text: "for i in {3..255}; do eval \"exec $i>&-\"; done; echo closed", stdout: "closed\n", stderr: "…"},
		{text: "echo after; sh -c 'exec 3>&- 4>&- 5>&-; ls /proc/self/fd | wc -l'", stdout: "after\n4\n"},
	}
	t.Run("bash", func(t *testing.T) {
		t.Parallel()
		openIn(t, p.Manager, "bash", sandbox.ShellAny)
		for _, c := range bash {
			c.run(t, p, "bash")
		}
	})
	t.Run("sh", func(t *testing.T) {
		t.Parallel()
		openIn(t, p.Manager, "sh", sandbox.ShellSh)
		for _, c := range []shellCase{
			{text: "echo out; echo err >&2; (exit 7)", stdout: "out\n", stderr: "err\n", code: 7},
			{text: "echo $?; cd /tmp; x='a b'; export y=2; f() { echo \"f $1\"; }; alias ll='echo alias'; set -f", stdout: "7\n"},
			{text: "ll 1; f 2; echo \"$x\" $y $PWD *", stdout: "alias 1\nf 2\na b 2 /tmp *\n"},
			{text: "echo \"open", stderr: "…", code: 2},
			{text: "cat; read more; echo $?", stdin: nul, stdout: nul + "1\n"},
			{text: "cat /proc/$$/comm -", stdin: "given", stdout: "sh\ngiven"},
			{text: "exec >other; echo in the file"},
			{text: "cat other; rm other", stdout: "in the file\n"},
			{text: "sleep 100 & echo up", stdout: "up\n"},
			{text: "set -e; [ -e nothing ] && echo there", code: 1},
			{text: "echo alive", stdout: "alive\n"},
		} {
			c.run(t, p, "sh")
		}
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		openIn(t, p.Manager, "py", sandbox.ShellPython)
		for _, c := range []shellCase{
			{text: "import sys, os\nx = [1, 2]\ndef f(n):\n    return n + 1\nx", stdout: "[1, 2]\n"},
			{text: "os.chdir('/tmp'); print(f(x[1])); print('err', file=sys.stderr)", stdout: "3\n", stderr: "err\n"},
			{text: "os.getcwd()", stdout: "'/tmp'\n"},
			{text: "1/0", stderr: "Traceback (most recent call last):\n  File \"<run 4>\", line 1, in <module>\n    1/0\n…", code: 1},
			{text: "def broken(", stderr: "  File \"<run 5>\", line 1\n    def broken(\n…", code: 1},
			{text: "input() + sys.stdin.read()", stdin: "a\nb\n", stdout: "'ab\\n'\n"},
			{text: "[open('/dev/stdin').read() for n in range(3)]", stdin: "a\n", stdout: "['a\\n', '', '']\n"},
			{text: "open('/proc/self/comm').read()", stdout: "'python3\\n'\n"},
			{text: "os.system('echo sub'); print(end='x')", stdout: "sub\nx"},
			{text: "import subprocess\nchild = subprocess.Popen(['sleep', '100'])\nprint('up')", stdout: "up\n"},
			{text: "child.poll()"},
			{text: "os.closerange(3, 256); print('closed')", stdout: "closed\n"},
			{text: "print('after', x)", stdout: "after [1, 2]\n"},
		} {
			c.run(t, p, "py")
		}
	})
}

// What ends a shell is told, with the output up to there.
func TestShellEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	for i, tt := range []struct {
		text, stdout, ended, signal string
		code                        int
		kind                        sandbox.ShellKind
	}{
		{text: "echo before; exit 3; echo after", stdout: "before\n", ended: "it exited with 3", code: 3},
		{text: "echo before; set -e; false; echo after", stdout: "before\n", ended: "it exited with 1", code: 1},
		{text: "echo before; kill -9 $$; echo after", stdout: "before\n", ended: "SIGKILL killed it", code: 137, signal: "SIGKILL"},
		{text: "exec echo replaced", stdout: "replaced\n", ended: "it exited with 0"},
		{text: "trap 'echo bye' EXIT; echo before; exit 4", stdout: "before\nbye\n", ended: "it exited with 4", code: 4},
		{text: "echo before; exit 3", kind: sandbox.ShellSh, stdout: "before\n", ended: "it exited with 3", code: 3},
	} {
		name := fmt.Sprintf("s%d", i)
		openIn(t, p.Manager, name, tt.kind)
		in(t, p.Manager, name, "x=1")
		res := in(t, p.Manager, name, tt.text)
		if string(res.Stdout) != tt.stdout || res.Code != tt.code || res.Signal != tt.signal || res.Shell.Ended != tt.ended {
			t.Errorf("%q: %+v, %+v, %q, %q", tt.text, res.Exit, res.Shell, res.Stdout, res.Stderr)
		}
		if _, err := p.RunShell(t.Context(), "work", name, sandbox.ShellRun{Text: "echo again"}, sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) || sandbox.HintOf(err) == "" {
			t.Errorf("after %q: %v", tt.text, err)
		}
		res = inWith(t, p.Manager, name, sandbox.ShellRun{Text: "echo [$x]", Open: &sandbox.ShellOptions{}}, "")
		if string(res.Stdout) != "[]\n" || !res.Shell.Opened {
			t.Errorf("opened again: %q, %+v", res.Stdout, res.Shell)
		}
	}
}

// A time limit interrupts what runs, and the shell lives with its state.
func TestShellTimeout(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	soon := sandbox.ExecLimits{Timeout: sandbox.Duration(300 * time.Millisecond)}
	late := sandbox.ExecLimits{Timeout: sandbox.Duration(10 * time.Second)} // of what does something before, also on a busy machine
	for kind, texts := range map[sandbox.ShellKind][]string{
		sandbox.ShellBash: {
			"x=7; cd /tmp; echo before; sleep 100; echo after", "x=7; while :; do :; done", "read nothing; while :; do sleep 0.01; done",
			"f() { g; }; g() { while :; do sleep 0.01; done; }; f", "sh -c 'trap \"\" INT; while :; do sleep 1; done'; while :; do :; done", "setsid sleep 100 & sleep 100",
		},
		sandbox.ShellSh:     {"x=7; cd /tmp; echo before; sleep 100; echo after", "while :; do :; done"},
		sandbox.ShellPython: {"x=7\nimport os\nos.chdir('/tmp')\nprint('before')\nimport time\ntime.sleep(100)", "while True: pass"},
	} {
		name := string(kind)
		openIn(t, p.Manager, name, kind)
		if kind != sandbox.ShellPython {
			in(t, p.Manager, name, "sleep 1000 & job=$!")
		}
		for _, text := range texts {
			limit := soon
			if strings.Contains(text, "before") {
				limit = late
			}
			res := inWith(t, p.Manager, name, sandbox.ShellRun{Text: text, ExecLimits: limit}, "")
			if res.Reason != sandbox.ReasonTimeout || res.Code != 124 || res.Shell.Ended != "" || bytes.Contains(res.Stdout, []byte("after")) {
				t.Errorf("%s: %q: %+v, %+v, %q, %q", kind, text, res.Exit, res.Shell, res.Stdout, res.Stderr)
			}
		}
		look, want := "echo $x $PWD; kill -0 $job && ps -o args= --ppid $$ | grep -c '^sleep'", "7 /tmp\n1\n"
		if kind == sandbox.ShellPython {
			look, want = "print(x, os.getcwd())", "7 /tmp\n"
		}
		if res := in(t, p.Manager, name, look); string(res.Stdout) != want {
			t.Errorf("%s: after it %q, %q", kind, res.Stdout, res.Stderr)
		}
	}
	in(t, p.Manager, "bash", "trap '' INT")
	res := inWith(t, p.Manager, "bash", sandbox.ShellRun{Text: "echo before; while :; do :; done", ExecLimits: late}, "")
	if res.Reason != sandbox.ReasonTimeout || !strings.Contains(res.Shell.Ended, "could not be interrupted") || string(res.Stdout) != "before\n" {
		t.Errorf("what cannot be interrupted: %+v, %+v, %q", res.Exit, res.Shell, res.Stdout)
	}
}

// What is left in a shell is what a real bash has after the same texts.
func TestShellStateIsBash(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	look := "pwd; declare -p a b c d e 2>&1; declare -f f g; alias p q 2>&1; set -o | grep -v -e history -e emacs; shopt -p nullglob extglob globstar; trap -p USR1 TERM EXIT; umask; ulimit -n; echo $#"
	for i, texts := range [][]string{
		{"a=1", "b=(1 2 '3 4')", "declare -A c=([x]=1 [y]='2 3')", "export d=5; readonly e=6", "cd /usr/lib; cd ..; pushd /tmp >/dev/null"},
		{"f() {\n  local a=1\n  echo $a \"$@\"\n}", "function g { f x; }", "shopt -s expand_aliases; alias p='echo hi' q=ls", "shopt -s extglob nullglob", "umask 027; ulimit -n 100"},
		{"set -o pipefail; set -u; set -C", "trap 'echo usr1' USR1; trap 'echo term' TERM", "false | true", "a=$((2 + 3)) b=$(echo sub)"},
		{"a=\"quo'ted\"; b='dou\"ble'; c=$'new\\nline'", "d=`echo back`", "cd / && cd -", "unset b", "e=$(printf 'x\\0y' 2>/dev/null | tr '\\0' z)"},
		{"set -- 1 2 3", "a=$2; shift", "eval 'b=evaled'", ". /dev/stdin <<<'c=sourced'", "read d <<<'read it'; mapfile -t e <<<'x'"},
	} {
		name := fmt.Sprintf("s%d", i)
		openIn(t, p.Manager, name, sandbox.ShellBash)
		for _, text := range texts {
			if res := in(t, p.Manager, name, text); res.Shell.Ended != "" {
				t.Errorf("%q: %+v", text, res)
			}
		}
		got := in(t, p.Manager, name, look)
		real := sh(t, p.Manager, "work", "bash -c "+quoted(strings.Join(texts, "\n")+"\n"+look)+" 2>/dev/null | sed 's/^bash: line [0-9]*: /bash: /'")
		if diff := cmp.Diff(lastLines(string(real.Stdout)), lastLines(string(got.Stdout))); diff != "" {
			t.Errorf("%q: (-bash +shell)\n%s", texts, diff)
		}
	}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// lastLines leaves out what the texts themselves printed before the look.
func lastLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "declare ") || strings.Contains(line, "declare: ") {
			return lines[max(0, i-1):]
		}
	}
	return lines
}

// Shells are told, from any process, and end with their session.
func TestShellList(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	ctx := t.Context()
	one, two := openIn(t, p.Manager, "one", ""), openIn(t, p.Manager, "two", sandbox.ShellSh)
	if _, err := p.OpenShell(ctx, "work", "one", sandbox.ShellOptions{}, sandbox.Local{}); !errors.Is(err, sandbox.Conflict) || sandbox.HintOf(err) == "" {
		t.Errorf("a taken name: %v", err)
	}
	if _, err := p.OpenShell(ctx, "work", "py", sandbox.ShellOptions{Kind: "fish"}, sandbox.Local{}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a kind that there is not: %v", err)
	}
	in(t, p.Manager, "one", "x=5; f() { echo from f; }")
	other := p.manager(t) // as after a restart
	if res := in(t, other, "one", "echo $x; f"); string(res.Stdout) != "5\nfrom f\n" {
		t.Errorf("another manager finds %q", res.Stdout)
	}
	if res := in(t, p.Manager, "one", "echo $x"); string(res.Stdout) != "5\n" {
		t.Errorf("the first again: %q", res.Stdout)
	}
	list, err := other.ListShells(ctx, "work")
	if diff := cmp.Diff([]sandbox.Shell{one, two}, list); err != nil || diff != "" {
		t.Errorf("listed: %v\n%s", err, diff)
	}
	if err := p.SignalExec(ctx, "work", two.ExecID, 9, false); err != nil {
		t.Fatal(err)
	}
	until(t, "the killed shell is told no more", func() bool {
		list, err := p.ListShells(ctx, "work")
		return err == nil && len(list) == 1
	})
	if err := other.CloseShell(ctx, "work", "one"); err != nil {
		t.Fatal(err)
	}
	if list, err := p.ListShells(ctx, "work"); err != nil || len(list) != 0 {
		t.Errorf("after closing: %v, %v", list, err)
	}
	if err := p.CloseShell(ctx, "work", "one"); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("closed twice: %v", err)
	}
	openIn(t, p.Manager, "three", "")
	if err := p.RemoveSession(ctx, "work", false); err != nil {
		t.Errorf("an idle shell holds its session: %v", err)
	}
}

// A run in a shell is an exec: its changes, its use, its limits are told.
func TestShellRunIsAnExec(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	openIn(t, p.Manager, "s", "")
	res := in(t, p.Manager, "s", "echo 1 > a; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")
	if len(res.Changes) != 1 || res.Changes[0].Path != "a" || res.Usage.CPU <= 0 || res.Duration <= 0 || res.Usage.Methods.CPU == "" {
		t.Errorf("%+v, %+v", res.Changes, res.Usage)
	}
	if res = in(t, p.Manager, "s", "true"); len(res.Changes) != 0 || res.Usage.CPU > 500*time.Millisecond {
		t.Errorf("the next has %+v, %+v", res.Changes, res.Usage)
	}
	res = inWith(t, p.Manager, "s", sandbox.ShellRun{Text: "yes", ExecLimits: sandbox.ExecLimits{MaxOutput: sandbox.MiB}}, "")
	if res.Reason != sandbox.ReasonOutput || res.Shell.Ended != "" {
		t.Errorf("a flood: %+v, %+v", res.Exit, res.Shell)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun := &firstWrite{do: cancel}
	res, err := p.RunShell(ctx, "work", "s", sandbox.ShellRun{Text: "echo go; sleep 100"}, sandbox.Streams{Stdout: begun})
	if err != nil || res.Reason != sandbox.ReasonCanceled || res.Shell.Ended != "" {
		t.Errorf("given up: %+v, %+v, %v", res.Exit, res.Shell, err)
	}
	big := inWith(t, p.Manager, "s", sandbox.ShellRun{Text: "head -c 5000000 /dev/zero | tr '\\0' x", ExecLimits: sandbox.ExecLimits{KeepOutput: 8 * sandbox.MiB}}, "")
	if len(big.Stdout) != 5000000 || bytes.Trim(big.Stdout, "x") != nil && len(bytes.Trim(big.Stdout, "x")) > 0 {
		t.Errorf("%d bytes of five million", len(big.Stdout))
	}
	for mode, want := range map[sandbox.CheckMode]int{sandbox.CheckSilent: 3, sandbox.CheckIgnore: 0, sandbox.CheckRaise: 3} {
		res, err := p.RunShell(t.Context(), "work", "s", sandbox.ShellRun{Text: "(exit 3)", Check: mode}, sandbox.Streams{})
		failed, raised := errors.AsType[*sandbox.FailedError](err)
		if res.Code != want || raised != (mode == sandbox.CheckRaise) || raised && failed.Result.Code != 3 || !raised && err != nil {
			t.Errorf("%s: %d, %v", mode, res.Code, err)
		}
	}
	res = inWith(t, p.Manager, "s", sandbox.ShellRun{
		Text:   "printf 'Name: '; read name; printf 'Sure? ' >&2; read sure; echo; echo $name $sure",
		Expect: []sandbox.Expect{{Pattern: "Name: $", Reply: "Ada\n"}, {Pattern: `Sure\?`, Reply: "yes\n"}},
	}, "")
	if string(res.Stdout) != "Name: \nAda yes\n" {
		t.Errorf("expect: %q, %q", res.Stdout, res.Stderr)
	}
}

type firstWrite struct {
	once sync.Once
	do   func()
}

func (f *firstWrite) Write(p []byte) (int, error) { f.once.Do(f.do); return len(p), nil }

// Shells are independent of one another, and one text runs in one at a time.
func TestShellsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	const shells, texts = 5, 40
	var wg sync.WaitGroup
	for s := range shells {
		name := fmt.Sprintf("s%d", s)
		openIn(t, p.Manager, name, "")
		wg.Go(func() {
			for i := range texts {
				res, err := p.RunShell(t.Context(), "work", name, sandbox.ShellRun{Text: fmt.Sprintf("n=$((n+1)); echo %s $n; echo e$n >&2", name), Track: sandbox.ModeOff}, sandbox.Streams{})
				if want := fmt.Sprintf("%s %d\n", name, i+1); err != nil || string(res.Stdout) != want || string(res.Stderr) != fmt.Sprintf("e%d\n", i+1) {
					t.Errorf("%s: %q, %q, want %q, %v", name, res.Stdout, res.Stderr, want, err)
					return
				}
			}
		})
	}
	wg.Wait()
	r, w := io.Pipe()
	began := make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := p.RunShell(t.Context(), "work", "s0", sandbox.ShellRun{Text: "echo go; cat"}, sandbox.Streams{Stdin: r, Stdout: &firstWrite{do: func() { close(began) }}})
		done <- err
	}()
	select {
	case <-began:
	case err := <-done:
		t.Fatalf("it ended before it began: %v", err)
	}
	if _, err := p.RunShell(t.Context(), "work", "s0", sandbox.ShellRun{Text: "true"}, sandbox.Streams{}); !errors.Is(err, sandbox.Conflict) || sandbox.HintOf(err) == "" {
		t.Errorf("two at once: %v", err)
	}
	in(t, p.Manager, "s1", "true")
	_ = w.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A run is handed back at its prompts, and goes on with the next input: what it puts
// out is told once, and so is its end.
func TestShellHandsBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	openIn(t, p.Manager, "s", "")
	minute := sandbox.ExecLimits{Timeout: sandbox.Duration(enginetest.Patience)}
	ask := sandbox.ShellRun{
		Text: "x=1; printf 'Name: '; read name; printf 'Sure? ' >&2; read sure; echo; echo $name $sure; y=$name; (exit 4)", Until: []string{"Name: $", `Sure\? $`}, ExecLimits: minute,
	}
	res := inWith(t, p.Manager, "s", ask, "")
	if string(res.Stdout) != "Name: " || len(res.Stderr) != 0 || res.Shell.Prompt != "Name: $" || res.Reason != "" || res.ExecID == "" {
		t.Errorf("at the first prompt: %q, %q, %+v, %+v", res.Stdout, res.Stderr, res.Shell, res.Exit)
	}
	id := res.ExecID
	if _, err := p.RunShell(t.Context(), "work", "s", sandbox.ShellRun{Text: "true"}, sandbox.Streams{}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("another text meanwhile: %v", err)
	}
	var live bytes.Buffer
	res, err := p.RunShell(t.Context(), "work", "s", sandbox.ShellRun{Text: "Ada\n", Continue: true, Until: ask.Until}, sandbox.Streams{Stderr: &live})
	if err != nil || len(res.Stdout) != 0 || string(res.Stderr) != "Sure? " || live.String() != "Sure? " || res.Shell.Prompt != `Sure\? $` || res.ExecID != id {
		t.Errorf("at the second: %q, %q, %q, %+v, %v", res.Stdout, res.Stderr, live.String(), res.Shell, err)
	}
	res, err = p.RunShell(t.Context(), "work", "s", sandbox.ShellRun{Text: "yes\n", Continue: true, Check: sandbox.CheckRaise}, sandbox.Streams{})
	if failed, raised := errors.AsType[*sandbox.FailedError](err); !raised || failed.Result.Code != 4 || string(res.Stdout) != "\nAda yes\n" || res.Shell.Prompt != "" || res.ExecID != id {
		t.Errorf("at the end: %q, %q, %+v, %v", res.Stdout, res.Stderr, res.Exit, err)
	}
	if _, err := p.RunShell(t.Context(), "work", "s", sandbox.ShellRun{Text: "more\n", Continue: true}, sandbox.Streams{}); !errors.Is(err, sandbox.Conflict) || sandbox.HintOf(err) == "" {
		t.Errorf("after the end: %v", err)
	}
	if res = in(t, p.Manager, "s", "echo $x $y"); string(res.Stdout) != "1 Ada\n" {
		t.Errorf("what it left: %q", res.Stdout)
	}
	// Who gives up while it waits ends it; the shell lives.
	inWith(t, p.Manager, "s", sandbox.ShellRun{Text: "echo ready; read x; echo go; sleep 1000", Until: []string{"ready"}, ExecLimits: minute}, "")
	ctx, cancel := context.WithCancel(t.Context())
	res, err = p.RunShell(ctx, "work", "s", sandbox.ShellRun{Text: "on\n", Continue: true}, sandbox.Streams{Stdout: &firstWrite{do: cancel}})
	if err != nil || res.Reason != sandbox.ReasonCanceled || string(res.Stdout) != "go\n" {
		t.Errorf("given up: %q, %+v, %v", res.Stdout, res.Exit, err)
	}
	// A shell that is closed takes along what waits in it.
	inWith(t, p.Manager, "s", sandbox.ShellRun{Text: "echo ready; read x", Until: []string{"ready"}, ExecLimits: minute}, "")
	if err := p.CloseShell(t.Context(), "work", "s"); err != nil {
		t.Error(err)
	}
	if _, err := p.RunShell(t.Context(), "work", "s", sandbox.ShellRun{Text: "x", Continue: true}, sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("in a closed shell: %v", err)
	}
	for _, bad := range []sandbox.ShellRun{{Text: "x", Until: []string{"("}}, {Text: "x", Until: []string{""}}, {Text: "x", Until: []string{"y"}, Expect: []sandbox.Expect{{Pattern: "y"}}}} {
		if err := bad.Validate(); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
