package manager_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// What a trap puts out while nothing runs is in the output of the shell's own exec, and in no
// text's.
func TestShellIdleTrap(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	for kind, texts := range map[sandbox.ShellKind][2]string{
		sandbox.ShellBash:   {"x=5; trap 'echo late' USR1", "echo $x"},
		sandbox.ShellSh:     {"x=5; trap 'echo late' USR1", "echo $x"},
		sandbox.ShellPython: {"import signal\nx = 5\nsignal.signal(signal.SIGUSR1, lambda *_: print('late') or 1/0)\n1", "print(x)"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			name := string(kind)
			s := openIn(t, p.Manager, name, kind)
			in(t, p.Manager, name, texts[0])
			if err := p.SignalExec(t.Context(), "work", s.ExecID, 10, false); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if res := in(t, p.Manager, name, texts[1]); string(res.Stdout) != "5\n" || len(res.Stderr) != 0 {
					t.Errorf("the text behind it: %q, %q", res.Stdout, res.Stderr)
				}
			}
			until(t, "the shell has put out what the trap did", func() bool {
				var out bytes.Buffer
				_, err := p.AttachExec(t.Context(), "work", s.ExecID, sandbox.AttachOptions{}, &out, nil)
				return err == nil && out.String() == "late\n"
			})
		})
	}
}

// A trap of DEBUG outlives interrupts, and functions are traced only where that was asked for.
func TestShellDebugTrap(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	openIn(t, p.Manager, "s", sandbox.ShellBash)
	in(t, p.Manager, "s", "f() { echo in f; }")
	limits := sandbox.ExecLimits{Timeout: sandbox.Duration(300 * time.Millisecond)}
	for _, c := range []struct{ text, want string }{
		{"trap 'echo one' DEBUG", "one\nin f\n"},
		{"trap 'echo two' DEBUG", "two\nin f\n"},
		{"set -T", "two\ntwo\ntwo\nin f\n"},
	} {
		in(t, p.Manager, "s", c.text)
		if res := inWith(t, p.Manager, "s", sandbox.ShellRun{Text: "sleep 100", ExecLimits: limits}, ""); res.Reason != sandbox.ReasonTimeout || res.Shell.Ended != "" {
			t.Fatalf("after %q: %+v, %+v", c.text, res.Exit, res.Shell)
		}
		if res := in(t, p.Manager, "s", "f"); string(res.Stdout) != c.want {
			t.Errorf("after %q: %q, want %q", c.text, res.Stdout, c.want)
		}
	}
}
