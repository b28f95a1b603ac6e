package manager_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// script is a run of a shell's script.
func script(text string) sandbox.Run {
	return sandbox.Run{Language: "shell", Command: []string{"sh", "-c", text}}
}

// TestGivenUpForEveryone has an exec leave something behind that cannot be ended.
// Its session's sandbox is destroyed, which the audit tells, and no process uses
// it any more: neither one that was connected to it, nor one that runs in it.
func TestGivenUpForEveryone(t *testing.T) {
	t.Parallel()
	ms, s, rt := lightPlaces(t, 2, func(_ *manager.Config, rt *runtimetest.Memory) {
		rt.Survivors = func(argv []string) int { return strings.Count(strings.Join(argv, " "), "escape") }
	})
	here, there := ms[0], ms[1]
	if _, err := here.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}); err != nil {
		t.Fatal(err)
	}
	begun, beside := make(chan struct{}), make(chan sandbox.Result)
	go func() {
		res, err := there.ExecIn(t.Context(), "work", script("echo begun; sleep 600"), sandbox.Streams{Stdout: &signalWriter{first: func() { close(begun) }}})
		if err != nil {
			t.Error(err)
		}
		beside <- res
	}()
	await(t, begun)
	res, err := here.ExecIn(t.Context(), "work", script("echo escape"), sandbox.Streams{})
	if err != nil || res.Code != 0 || !strings.Contains(res.Cause, "given up") {
		t.Fatalf("%+v, %v", res.Exit, err)
	}
	if left, _ := rt.List(t.Context()); len(left) > 0 {
		t.Errorf("it is still there: %+v", left)
	}
	if other := <-beside; other.Reason != sandbox.ReasonInfra || other.Sandbox != res.Sandbox {
		t.Errorf("beside it: %+v", other.Exit)
	}
	told := ""
	for e, err := range s.Events(t.Context(), sandbox.EventFilter{Session: "work", Kinds: []string{sandbox.EventSandboxRemoved}}) {
		if err != nil {
			t.Fatal(err)
		}
		if told += string(e.Data); e.Sandbox != res.Sandbox {
			t.Errorf("of another: %+v", e)
		}
	}
	if strings.Count(told, "could not be ended") != 1 {
		t.Errorf("the audit says %s", told)
	}
	again, err := there.ExecIn(t.Context(), "work", script("echo again"), sandbox.Streams{})
	if err != nil || again.Sandbox == res.Sandbox || !again.Replaced || string(again.Stdout) != "again\n" {
		t.Errorf("the next one: %+v, %v", again, err)
	}
}

// TestGivenUpAtOnce has somebody hold the session, as who makes another sandbox
// in it does. What is given up ends all the same, and is written down once the
// session is free.
func TestGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	gone, locks := make(chan struct{}), ""
	var once sync.Once
	ms, s, _ := lightPlaces(t, 1, func(c *manager.Config, rt *runtimetest.Memory) {
		locks = c.LockDir
		rt.Survivors = func(argv []string) int { return strings.Count(strings.Join(argv, " "), "escape") }
		rt.OnDestroy = func(runtimes.Handle) error { once.Do(func() { close(gone) }); return nil }
	})
	if _, err := ms[0].CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ms[0].ExecIn(t.Context(), "work", echo, sandbox.Streams{}); err != nil {
		t.Fatal(err)
	}
	unlock, err := filelock.Lock(t.Context(), filepath.Join(locks, "session-work"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := ms[0].ExecIn(t.Context(), "work", script("echo escape"), sandbox.Streams{})
		done <- err
	}()
	await(t, gone)
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
	told := 0
	for _, err := range s.Events(t.Context(), sandbox.EventFilter{Session: "work", Kinds: []string{sandbox.EventSandboxRemoved}}) {
		if told++; err != nil {
			t.Fatal(err)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// TestKillSurvived has a kill leave something behind. It ends with the sandbox.
func TestKillSurvived(t *testing.T) {
	t.Parallel()
	ms, _, rt := lightPlaces(t, 2, func(_ *manager.Config, rt *runtimetest.Memory) {
		rt.Survivors = func([]string) int { return 2 }
	})
	if _, err := ms[0].CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}); err != nil {
		t.Fatal(err)
	}
	begun, done := make(chan struct{}), make(chan sandbox.Result)
	go func() {
		res, err := ms[0].ExecIn(t.Context(), "work", script("echo begun; sleep 600"), sandbox.Streams{Stdout: &signalWriter{first: func() { close(begun) }}})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	await(t, begun)
	v := must(ms[1].Session(t.Context(), "work"))
	if err := ms[1].KillExec(t.Context(), "work", v.Execs[0].ID); err == nil || !strings.Contains(err.Error(), "2 processes could not be ended: the sandbox is given up") {
		t.Errorf("%v", err)
	}
	if left, _ := rt.List(t.Context()); len(left) > 0 {
		t.Errorf("it is still there: %+v", left)
	}
	if res := <-done; res.Reason != sandbox.ReasonInfra {
		t.Errorf("%+v", res.Exit)
	}
	if v := must(ms[0].Session(t.Context(), "work")); len(v.Execs) > 0 {
		t.Errorf("the session has %+v", v.Execs)
	}
}

// TestCutOff has a process lose its connection. The sandbox goes on: nothing is
// wrong with it.
func TestCutOff(t *testing.T) {
	t.Parallel()
	ms, _, rt := lightPlaces(t, 1, nil)
	if _, err := ms[0].CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}); err != nil {
		t.Fatal(err)
	}
	first, err := ms[0].ExecIn(t.Context(), "work", script("echo 1"), sandbox.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := ms[0].ExecIn(t.Context(), "work", script("echo begun; sleep 600"), sandbox.Streams{Stdout: &signalWriter{first: func() { rt.Cut(first.Sandbox) }}})
	if err != nil || res.Reason != sandbox.ReasonInfra {
		t.Errorf("%+v, %v", res.Exit, err)
	}
	again, err := ms[0].ExecIn(t.Context(), "work", script("echo again"), sandbox.Streams{})
	if err != nil || again.Sandbox != first.Sandbox || again.Replaced {
		t.Errorf("%+v, %v", again, err)
	}
}
