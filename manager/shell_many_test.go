package manager_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestManyShells has ten sandboxes with five shells each run many commands at once, on
// each runtime: every shell has a state of its own, and no output is mixed or lost.
func TestManyShells(t *testing.T) {
	t.Parallel()
	texts := 100
	if enginetest.Soaking() {
		texts = 1000
	}
	for _, name := range []string{docker.Name, bubblewrap.Name, process.Name} {
		t.Run(name, func(t *testing.T) {
			kit := enginetest.New(t)
			all := kit.Runtimes(t)
			switch name {
			case bubblewrap.Name:
				all = runtimes.Only(name, kit.Jail(t))
			case process.Name:
				all = runtimes.Only(name, kit.Unwalled(t))
			}
			p := newPlaceWith(t, kit, all)
			var running sync.WaitGroup
			for box := range 10 {
				session := fmt.Sprintf("box%d", box)
				p.create(t, sandbox.SessionOptions{Name: session, Language: "shell"})
				for shell := range 5 {
					running.Go(func() { p.shellAtWork(t, session, fmt.Sprintf("s%d", shell), texts) })
				}
			}
			running.Wait()
		})
	}
}

// shellAtWork runs texts in a shell of its own, each of which leaves what the next needs.
func (p *place) shellAtWork(t *testing.T, session, name string, texts int) {
	t.Helper()
	me := session + "/" + name
	if _, err := p.OpenShell(t.Context(), session, name, sandbox.ShellOptions{Env: []string{"ME=" + me}}, sandbox.Local{}); err != nil {
		t.Errorf("%s: %v", me, err)
		return
	}
	for i := range texts {
		n := i + 1
		// A thousand lines now and then, so that outputs are in many pieces.
		lines := 1
		if n%20 == 0 {
			lines = 1000
		}
		run := sandbox.ShellRun{
			Text:       fmt.Sprintf("n=$((n+1)); read line; i=0; while [ $i -lt %d ]; do i=$((i+1)); echo \"$ME $n $line\"; done; echo \"e$n $ME\" >&2; (exit $((n %% 7)))", lines),
			ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(enginetest.Patience)}, Track: sandbox.ModeOff, Check: sandbox.CheckSilent,
		}
		in := fmt.Sprintf("given%d", n)
		res, err := p.RunShell(t.Context(), session, name, run, sandbox.Streams{Stdin: strings.NewReader(in + "\n")})
		out, errs := strings.Repeat(fmt.Sprintf("%s %d %s\n", me, n, in), lines), fmt.Sprintf("e%d %s\n", n, me)
		if err != nil || string(res.Stdout) != out || string(res.Stderr) != errs || res.Code != n%7 {
			t.Errorf("%s, text %d of %d: code %d, not %d; stdout %s; stderr %s; %v", me, n, texts, res.Code, n%7, differs(string(res.Stdout), out), differs(string(res.Stderr), errs), err)
			return
		}
	}
}

// Of texts that come to one shell at once one runs, and the others are refused meanwhile: none
// waits for another, or is mixed into it.
func TestShellTextsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	openIn(t, p.Manager, "s", "")
	const texts = 8
	var refused, ran atomic.Int32
	var running sync.WaitGroup
	for i := range texts {
		running.Go(func() {
			run := sandbox.ShellRun{
				Text:       fmt.Sprintf("echo begin %[1]d; while [ ! -e go ]; do sleep 0.02; done; n=$((n+1)); echo end %[1]d", i),
				ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(enginetest.Patience)}, Track: sandbox.ModeOff,
			}
			res, err := p.RunShell(t.Context(), "work", "s", run, sandbox.Streams{})
			switch {
			case errors.Is(err, sandbox.Conflict) && sandbox.HintOf(err) != "":
				refused.Add(1)
			case err != nil || string(res.Stdout) != fmt.Sprintf("begin %[1]d\nend %[1]d\n", i):
				t.Errorf("text %d: %q, %q, %v", i, res.Stdout, res.Stderr, err)
			default:
				ran.Add(1)
			}
		})
	}
	until(t, "all but one are refused", func() bool { return refused.Load() == texts-1 || t.Failed() })
	if _, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"touch", "go"}}, sandbox.Streams{}); err != nil {
		t.Error(err)
	}
	running.Wait()
	if res := in(t, p.Manager, "s", "echo $n"); string(res.Stdout) != "1\n" || ran.Load() != 1 {
		t.Errorf("%d ran, and left %q", ran.Load(), res.Stdout)
	}
}

// differs says where a text begins to be another than it should be.
func differs(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	if at == len(got) && at == len(want) {
		return "as it should be"
	}
	return fmt.Sprintf("of %d bytes, not %d, from byte %d on %.100q, not %.100q", len(got), len(want), at, got[at:], want[at:])
}
