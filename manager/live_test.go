package manager_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestLiveSaysWhose: who watches is told whose each sandbox is, and its labels; a
// session's are the session's, and not the run's.
func TestLiveSaysWhose(t *testing.T) {
	t.Parallel()
	m, _ := remembering(t, nil)
	as := func(owner string) context.Context {
		return sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: owner})
	}
	if _, err := m.CreateSession(as("ann"), sandbox.SessionOptions{
		Name: "work", Language: "shell", Labels: sandbox.Labels{"team": "x"}, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs},
	}); err != nil {
		t.Fatal(err)
	}
	work, run := sandbox.SessionName("ann", "work"), echo
	run.Labels = sandbox.Labels{"step": "1"}
	if _, err := m.ExecIn(as("ann"), work, run, sandbox.Streams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open(as("bob"), manager.OpenOptions{Language: "shell", Labels: run.Labels}); err != nil {
		t.Fatal(err)
	}
	want := []sandbox.LiveSandbox{
		{Session: work, Owner: "ann", Labels: sandbox.Labels{"team": "x"}, Language: "shell"}, {Owner: "bob", Labels: run.Labels, Language: "shell"},
	}
	byOwner := cmpopts.SortSlices(func(a, b sandbox.LiveSandbox) bool { return a.Owner < b.Owner })
	if d := cmp.Diff(want, m.Live(), byOwner, cmpopts.IgnoreFields(sandbox.LiveSandbox{}, "ID")); d != "" {
		t.Error(d)
	}
}
