package manager_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestSessionEnv gives a session an environment: each exec has it below its own,
// a fork has it too, and the audit has its names alone.
func TestSessionEnv(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const secret = "not-for-the-audit"
	p.create(t, sandbox.SessionOptions{Name: "work", Env: []string{"A=" + secret, "B=2", "EMPTY="}})
	say := sandbox.Run{Command: []string{"sh", "-c", `echo "$A $B $C ${EMPTY-unset}"`}, Env: []string{"B=own", "C=3"}}
	if res, err := p.ExecIn(t.Context(), "work", say, sandbox.Streams{}); err != nil || string(res.Stdout) != secret+" own 3 \n" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
	if _, _, err := p.Fork(t.Context(), "work", sandbox.ForkOptions{Name: "fork"}); err != nil {
		t.Fatal(err)
	}
	say.Env = nil
	if res, err := p.manager(t).ExecIn(t.Context(), "fork", say, sandbox.Streams{}); err != nil || string(res.Stdout) != secret+" 2  \n" {
		t.Errorf("in the fork: %q, %v", res.Stdout, err)
	}
	named := 0
	for e, err := range p.store.Events(t.Context(), sandbox.EventFilter{}) {
		if err != nil || strings.Contains(string(e.Data), secret) {
			t.Errorf("%v, %s", err, e.Data)
		}
		if e.Kind == sandbox.EventSessionCreated && strings.Contains(string(e.Data), `"env":["A","B","EMPTY"]`) {
			named++
		}
	}
	if named != 2 {
		t.Errorf("%d sessions have their names in the audit", named)
	}
	for _, env := range []string{"A", "=1", "A=\x00"} {
		if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: "bad", Env: []string{env}}); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%q: %v", env, err)
		}
	}
}

// TestSessionStats reads what a session uses from a manager that did not make it,
// while it works and while it is paused.
func TestSessionStats(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	if s, err := p.SessionStats(t.Context(), "work"); err != nil || s.Session != "work" || len(s.Sandboxes) != 0 || s.Execs != 0 {
		t.Errorf("before it has a sandbox: %+v, %v", s, err)
	}
	e, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"sh", "-c", "head -c 3M /dev/zero > /tmp/f; head -c 5M /dev/zero > f; echo ready; exec sleep 1000"}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	other := p.manager(t)
	until(t, "it has written", func() bool {
		a, err := other.AttachExec(t.Context(), "work", e.ID, sandbox.AttachOptions{}, nil, nil)
		return err == nil && a.Stdout > 0
	})
	read := func() sandbox.Stats {
		t.Helper()
		s, err := other.SessionStats(t.Context(), "work")
		if err != nil || len(s.Sandboxes) != 1 || s.Execs != 1 || s.Running != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		return s.Sandboxes[0]
	}
	s := read()
	if s.Sample.CPU <= 0 || s.Sample.Memory <= 0 || s.Sample.Processes < 2 || s.Running != 1 || s.Language != "shell" || s.Methods.CPU == "" || s.Methods.Memory == "" {
		t.Errorf("%+v", s)
	}
	if s.Sample.Tmp < 3*sandbox.MiB || s.Methods.Tmp != "agent" {
		t.Errorf("3 MiB in /tmp, and %v by %q", s.Sample.Tmp, s.Methods.Tmp)
	}
	if err := p.PauseSession(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if s := read(); s.State != sandbox.StatePaused || s.Sample.Memory <= 0 || s.Methods.Memory != "engine" || s.Methods.Tmp != "" {
		t.Errorf("paused: %+v", s)
	}
	if err := p.ResumeSession(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if err := p.KillExec(t.Context(), "work", e.ID); err != nil {
		t.Error(err)
	}
	if _, err := p.SessionStats(t.Context(), "none"); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("of none: %v", err)
	}
}
