package manager_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// A shell that is killed from outside ends what runs in it, which says so, and no other.
func TestShellKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	one := openIn(t, p.Manager, "one", "")
	openIn(t, p.Manager, "two", "")
	in(t, p.Manager, "two", "x=5")
	kill := &firstWrite{do: func() {
		if err := p.SignalExec(t.Context(), "work", one.ExecID, 9, false); err != nil {
			t.Error(err)
		}
	}}
	res, err := p.RunShell(t.Context(), "work", "one", sandbox.ShellRun{Text: "echo before; sleep 600; echo after"}, sandbox.Streams{Stdout: kill})
	if err != nil || string(res.Stdout) != "before\n" || res.Shell.Ended != "SIGKILL killed it" || res.Signal != "SIGKILL" || res.Code != 137 {
		t.Errorf("%q, %+v, %+v, %v", res.Stdout, res.Exit, res.Shell, err)
	}
	if _, err := p.RunShell(t.Context(), "work", "one", sandbox.ShellRun{Text: "true"}, sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) || !strings.Contains(err.Error(), "SIGKILL killed it") {
		t.Errorf("in a killed one: %v", err)
	}
	if res := in(t, p.Manager, "two", "echo $x"); string(res.Stdout) != "5\n" {
		t.Errorf("the other has %q", res.Stdout)
	}
	in(t, p.Manager, "two", "exit 7")
	openIn(t, p.Manager, "three", "")
	if err := p.CloseShell(t.Context(), "work", "three"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"two": "it exited with 7", "three": "it was closed"} {
		if _, err := p.RunShell(t.Context(), "work", name, sandbox.ShellRun{Text: "true"}, sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("in %s, which has ended: %v, want %s", name, err, want)
		}
	}
}

// The limits of its sandbox bound what runs in a shell, which lives.
func TestShellLimits(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work", Limits: sandbox.Limits{Memory: 64 * sandbox.MiB, PIDs: 40}})
	openIn(t, p.Manager, "s", sandbox.ShellSh)
	in(t, p.Manager, "s", "x=5")
	for _, tt := range []struct {
		text string
		want sandbox.ExitReason
	}{
		{"tail /dev/zero", sandbox.ReasonOOM},
		{"i=0; while [ $i -lt 100 ]; do i=$((i+1)); sleep 600 & done", sandbox.ReasonPIDs},
	} {
		if res := inWith(t, p.Manager, "s", sandbox.ShellRun{Text: tt.text}, ""); res.Reason != tt.want || res.Shell.Ended != "" {
			t.Errorf("%q: %+v, %+v, %q, %q", tt.text, res.Exit, res.Shell, res.Stdout, res.Stderr)
		}
	}
	if res := in(t, p.Manager, "s", "echo $x"); string(res.Stdout) != "5\n" {
		t.Errorf("after them %q, %q", res.Stdout, res.Stderr)
	}
}

// What was written by others before is recorded first, and the text runs then.
func TestShellAfterFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	f := openFiles(t, p, sandbox.SessionOptions{})
	openIn(t, p.Manager, "s", "")
	for _, name := range []string{"a", "b"} {
		if _, err := f.Write(t.Context(), name, 0, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		if res := in(t, p.Manager, "s", "cat "+name); string(res.Stdout) != "x" || len(res.Changes) != 0 {
			t.Errorf("%q, %q, %+v, %s", res.Stdout, res.Stderr, res.Exit, summary(res.Changes))
		}
	}
}

// What an earlier text has left, and that starts others all the time, goes on as it was when
// a later one is ended.
func TestShellBusyJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	for _, kind := range []sandbox.ShellKind{sandbox.ShellBash, sandbox.ShellSh} {
		name := string(kind)
		openIn(t, p.Manager, name, kind)
		in(t, p.Manager, name, "sh -c 'while sleep 0.01; do :; done' & job=$!")
		for range 3 {
			limits := sandbox.ExecLimits{Timeout: sandbox.Duration(300 * time.Millisecond)}
			if res := inWith(t, p.Manager, name, sandbox.ShellRun{Text: "sleep 1000", ExecLimits: limits}, ""); res.Reason != sandbox.ReasonTimeout || res.Shell.Ended != "" {
				t.Errorf("%s: %+v, %+v", kind, res.Exit, res.Shell)
			}
		}
		if res := in(t, p.Manager, name, "kill $job && echo there"); string(res.Stdout) != "there\n" {
			t.Errorf("%s: the job has gone: %q", kind, res.Stderr)
		}
	}
}

// A shell has what its session and its own list of variables give, and is the best that
// there is: sh where there is no bash, and none where there is neither.
func TestShellOfImage(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work", Env: []string{"OF=session", "BOTH=session"}})
	openIn(t, p.Manager, "best", sandbox.ShellAny)
	in(t, p.Manager, "best", "mkdir bin && ln -s $(command -v sh) bin/")
	for _, c := range []struct{ path, want string }{{"/bin:/usr/bin", "bash"}, {"/workspace/bin", "sh"}, {"/nowhere", ""}} {
		s, err := p.OpenShell(t.Context(), "work", "", sandbox.ShellOptions{Env: []string{"PATH=" + c.path, "BOTH=shell"}}, sandbox.Local{})
		if c.want == "" {
			if !errors.Is(err, sandbox.NotFound) || sandbox.HintOf(err) == "" {
				t.Errorf("where there is none: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		res := in(t, p.Manager, s.Name, "read name </proc/$$/comm; echo $name $OF $BOTH")
		if want := c.want + " session shell\n"; string(res.Stdout) != want {
			t.Errorf("%q, %q, want %q", res.Stdout, res.Stderr, want)
		}
	}
	if err := p.RemoveSession(t.Context(), "work", true); err != nil {
		t.Fatal(err)
	}
	if _, err := p.RunShell(t.Context(), "work", "best", sandbox.ShellRun{Text: "true"}, sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("after the end of its session: %v", err)
	}
}

// A shell that has left itself no room to go on ends at once and says so, with the output up
// to there; one that has room goes on.
func TestShellLimitsItself(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	limit := "import resource\nprint('out', flush=True)\nresource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))"
	for i, tt := range []struct {
		kind sandbox.ShellKind
		text string
		ends bool
	}{
		{sandbox.ShellBash, "echo out; ulimit -n 3", true},
		{sandbox.ShellBash, "echo out; ulimit -n 5", true},
		{sandbox.ShellBash, "echo out; ulimit -n 40", false},
		{sandbox.ShellSh, "echo out; ulimit -n 3", true},
		{sandbox.ShellSh, "echo out; ulimit -n 40", false},
		{sandbox.ShellPython, fmt.Sprintf(limit, 3, 3), true},
		{sandbox.ShellPython, fmt.Sprintf(limit, 40, 40), false},
		{sandbox.ShellBash, "echo out; ulimit -f 0", false},
		{sandbox.ShellSh, "echo out; ulimit -f 0", false},
		{sandbox.ShellBash, "echo out; ulimit -u 0", false},
	} {
		name := fmt.Sprintf("s%d", i)
		openIn(t, p.Manager, name, tt.kind)
		res := in(t, p.Manager, name, tt.text)
		if string(res.Stdout) != "out\n" || (res.Shell.Ended != "") != tt.ends || res.Reason == sandbox.ReasonTimeout {
			t.Errorf("%s, %q: %+v, %+v, %q, %.300q", tt.kind, tt.text, res.Exit, res.Shell, res.Stdout, res.Stderr)
			continue
		}
		say := "echo more"
		if tt.kind == sandbox.ShellPython {
			say = "print('more')"
		}
		if tt.ends {
			continue
		}
		if res := in(t, p.Manager, name, say); string(res.Stdout) != "more\n" || res.Code != 0 {
			t.Errorf("%s, after %q: %+v, %q, %q", tt.kind, tt.text, res.Exit, res.Stdout, res.Stderr)
		}
	}
}

// A text that closes whatever it finds open takes nothing from the shell that a later one needs:
// an interrupt ends that alone, and the shell's last words are heard.
func TestShellInterruptedAfterCloses(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	openIn(t, p.Manager, "other", "")
	in(t, p.Manager, "other", "mkdir bin && ln -s $(command -v bash) bin/sh")
	closes, ends := "i=3; while [ $i -lt %d ]; do eval \"exec $i>&-\"; i=$((i+1)); done; x=5", "trap 'echo bye' EXIT; exit 3"
	for _, tt := range []struct {
		name                     string
		kind                     sandbox.ShellKind
		closes, waits, says, end string
	}{
		{"bash", sandbox.ShellBash, fmt.Sprintf(closes, 256), "sleep 100", "echo $x", ends},
		{"dash", sandbox.ShellSh, fmt.Sprintf(closes, 10), "sleep 100", "echo $x", ends}, // it knows no others
		{"bin", sandbox.ShellSh, fmt.Sprintf(closes, 256), "sleep 100", "echo $x", ends},
		{"python", sandbox.ShellPython, "import os, time, atexit\nos.closerange(3, 256)\nx = 5", "time.sleep(100)", "print(x)", "atexit.register(print, 'bye')\nraise SystemExit(3)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := tt.name
			env := []string{"PATH=/workspace/" + name + ":/usr/local/bin:/usr/bin:/bin"} // bin/sh is a bash
			if _, err := p.OpenShell(t.Context(), "work", name, sandbox.ShellOptions{Kind: tt.kind, Env: env}, sandbox.Local{}); err != nil {
				t.Fatal(err)
			}
			in(t, p.Manager, name, tt.closes)
			for range 3 {
				limits := sandbox.ExecLimits{Timeout: sandbox.Duration(300 * time.Millisecond)}
				if res := inWith(t, p.Manager, name, sandbox.ShellRun{Text: tt.waits, ExecLimits: limits}, ""); res.Reason != sandbox.ReasonTimeout || res.Shell.Ended != "" {
					t.Fatalf("%+v, %+v, %q, %q", res.Exit, res.Shell, res.Stdout, res.Stderr)
				}
				if res := in(t, p.Manager, name, tt.says); string(res.Stdout) != "5\n" || res.Shell.Ended != "" {
					t.Errorf("after it %+v, %q, %q", res.Shell, res.Stdout, res.Stderr)
				}
			}
			if res := in(t, p.Manager, name, tt.end); string(res.Stdout) != "bye\n" || res.Code != 3 || res.Shell.Ended != "it exited with 3" {
				t.Errorf("at its end %+v, %+v, %q, %q", res.Exit, res.Shell, res.Stdout, res.Stderr)
			}
		})
	}
}

// An interrupt of the very text that has closed what bash reads from ends the shell, which says
// so with the output up to there.
func TestShellInterruptedInCloses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	openIn(t, p.Manager, "s", sandbox.ShellBash)
	run := sandbox.ShellRun{Text: "for i in {3..255}; do eval \"exec $i>&-\"; done; echo out; sleep 100", ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(3 * time.Second)}}
	if res := inWith(t, p.Manager, "s", run, ""); res.Reason != sandbox.ReasonTimeout || res.Shell.Ended != "it exited with 130" || string(res.Stdout) != "out\n" {
		t.Errorf("%+v, %+v, %q, %q", res.Exit, res.Shell, res.Stdout, res.Stderr)
	}
}

// A shell that has left itself no memory, time or processes says what came of it, and one that
// can go on does.
func TestShellTakesFromItself(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	limit := "import resource, subprocess\nprint('out', flush=True)\nresource.setrlimit(resource.RLIMIT_%s, (%d, %d))\n"
	for i, tt := range []struct {
		kind         sandbox.ShellKind
		text         string
		stderr, ends string // what is in it
	}{
		{sandbox.ShellBash, "echo out; ulimit -v 20000; a=x; while :; do a=$a$a; done", "cannot allocate", "it exited with 2"},
		{sandbox.ShellSh, "echo out; ulimit -v 20000; printf %0100000000d 1", "Out of space", ""},
		{sandbox.ShellPython, fmt.Sprintf(limit, "AS", 500<<20, 500<<20) + "len('x' * 10**9)", "MemoryError", ""},
		{sandbox.ShellBash, "echo out; ulimit -t 1; while :; do :; done", "", " killed it"},
		{sandbox.ShellSh, "echo out; ulimit -t 1; while :; do :; done", "", " killed it"},
		{sandbox.ShellPython, fmt.Sprintf(limit, "CPU", 1, 1) + "while True: pass", "", " killed it"},
		{sandbox.ShellBash, "echo out; ulimit -u 0; (echo not here)", "fork: ", ""}, // which it tries for 15s
		{sandbox.ShellSh, "echo out; ulimit -p 0; (echo not here)", "fork", ""},
		{sandbox.ShellPython, fmt.Sprintf(limit, "NPROC", 0, 0) + "subprocess.run(['true'])", "Resource temporarily unavailable", ""},
	} {
		t.Run(fmt.Sprintf("%d %s", i, tt.kind), func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("s%d", i)
			openIn(t, p.Manager, name, tt.kind)
			run := sandbox.ShellRun{Text: tt.text, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(enginetest.Patience)}}
			res := inWith(t, p.Manager, name, run, "")
			if string(res.Stdout) != "out\n" || !strings.Contains(string(res.Stderr), tt.stderr) || !strings.HasSuffix(res.Shell.Ended, tt.ends) ||
				(res.Shell.Ended == "") != (tt.ends == "") || res.Code == 0 || res.Reason == sandbox.ReasonTimeout {
				t.Fatalf("%q: %+v, %+v, %q, %.300q", tt.text, res.Exit, res.Shell, res.Stdout, res.Stderr)
			}
			if tt.ends != "" {
				return
			}
			say := "echo more"
			if tt.kind == sandbox.ShellPython {
				say = "print('more')"
			}
			if res := in(t, p.Manager, name, say); string(res.Stdout) != "more\n" || res.Code != 0 || res.Shell.Ended != "" {
				t.Errorf("after %q: %+v, %+v, %q, %q", tt.text, res.Exit, res.Shell, res.Stdout, res.Stderr)
			}
		})
	}
}
