package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// The environment of a session is judged with each of its execs.
func TestSessionEnvIsJudged(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "shell")
	if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: "e", Language: "shell", Env: []string{"TOOL=rm"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.RemoveSession(context.WithoutCancel(t.Context()), "e", true); err != nil {
			t.Error(err)
		}
	})
	run := sandbox.Run{Language: "shell", Code: "$TOOL -rf /"}
	var denied *sandbox.DeniedError
	if _, err := p.ExecIn(t.Context(), "e", run, sandbox.Streams{}); !errors.As(err, &denied) || denied.Decision.Verdict != sandbox.Deny {
		t.Errorf("the session's variable: %v", err)
	}
	run = sandbox.Run{Language: "shell", Code: "$TOOL -d /", Env: []string{"TOOL=ls"}}
	if _, err := p.ExecIn(t.Context(), "e", run, sandbox.Streams{}); err != nil {
		t.Errorf("below the exec's own: %v", err)
	}
}

// A program that would be written once the sandbox runs is refused: nobody could
// judge it. What reads data later runs.
func TestInputIsNoProgram(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "shell")
	p.session(t, "s", "shell")
	for _, argv := range [][]string{{"sh"}, {"bash", "-s", "x"}, {"sh", "-c", "cat | sh"}, {"sh", "-c", "sh"}, {"env", "sh"}} {
		var denied *sandbox.DeniedError
		_, err := p.StartIn(t.Context(), "s", sandbox.Run{Language: "shell", Command: argv, Input: true}, sandbox.Local{})
		if !errors.Is(err, sandbox.Invalid) && !errors.As(err, &denied) {
			t.Errorf("%q: %v", argv, err)
		}
	}
	for e, err := range p.store.Events(t.Context(), sandbox.EventFilter{Kinds: []string{sandbox.EventExecStarted}}) {
		t.Errorf("%v, it started: %s", err, e.Data)
	}
	if _, err := p.StartIn(t.Context(), "s", sandbox.Run{Language: "shell", Command: []string{"sort"}, Input: true}, sandbox.Local{}); err != nil {
		t.Errorf("sort: %v", err)
	}
}
