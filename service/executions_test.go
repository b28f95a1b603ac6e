package service_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestOthersExecutions has nobody see, wait for or end what another has submitted,
// and each session be that of who submits.
func TestOthersExecutions(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	alice, bob, viewer := as(t.Context(), "alice", ""), as(t.Context(), "bob", ""), as(t.Context(), "alice", sandbox.AccessViewer)
	if _, err := p.CreateSession(alice, api.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.RemoveSession(t.Context(), "alice~work", true) })
	o := sandbox.ExecutionOptions{Run: sandbox.Run{Session: "work", Command: []string{"echo", "ok"}}}
	e, err := p.SubmitExecution(alice, o, sandbox.Local{})
	if err != nil || e.Session != "work" || e.Run.Session != "work" || e.Owner != "alice" {
		t.Fatalf("%+v, %v", e, err)
	}
	for who, err := range map[string]error{
		"into another's session": second(p.SubmitExecution(bob, o, sandbox.Local{})), "look": second(p.Execution(bob, e.ID, sandbox.Duration(time.Hour))),
		"cancel": second(p.CancelExecution(bob, e.ID)), "artifact": second(p.ExecutionArtifact(bob, e.ID, "x", io.Discard)), "resend": second(p.ResendDeadLetter(bob, e.ID)),
	} {
		if !errors.Is(err, sandbox.NotFound) {
			t.Errorf("%s: %v", who, err)
		}
	}
	for what, err := range map[string]error{
		"submit": second(p.SubmitExecution(viewer, o, sandbox.Local{})), "cancel": second(p.CancelExecution(viewer, e.ID)), "resend": second(p.ResendDeadLetter(viewer, e.ID)),
		"list": second(p.Executions(bob, sandbox.ExecutionFilter{Owner: new("alice")})), "dead": second(p.DeadLetters(bob, sandbox.DeadLetterFilter{Owner: new("alice")})),
	} {
		if !errors.Is(err, sandbox.Denied) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := p.Executions(bob, sandbox.ExecutionFilter{}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := p.Executions(viewer, sandbox.ExecutionFilter{Session: "work"}); err != nil || len(list) != 1 || list[0].Session != "work" {
		t.Errorf("%+v, %v", list, err)
	}
	if e, err := p.CancelExecution(alice, e.ID); err != nil || e.State != sandbox.ExecutionCanceled || e.Session != "work" {
		t.Errorf("%+v, %v", e, err)
	}
	// What runs does so in her name.
	if e, err = p.SubmitExecution(alice, sandbox.ExecutionOptions{Run: sandbox.Run{Command: []string{"echo", "ok"}}}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	if err := p.book.Start(t.Context(), p.Service); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.book.Close() })
	e, err = p.Execution(viewer, e.ID, sandbox.Duration(time.Minute))
	if err != nil || e.State != sandbox.ExecutionSucceeded || string(e.Result.Stdout) != "ok\n" {
		t.Errorf("%+v, %v", e, err)
	}
	for event, err := range p.Events(alice, sandbox.EventFilter{Kinds: []string{sandbox.EventExecStarted}}) {
		if err != nil || event.Owner != "alice" || event.Actor != "token of alice" || event.Exec != e.Exec {
			t.Errorf("%+v, %v", event, err)
		}
	}
}
