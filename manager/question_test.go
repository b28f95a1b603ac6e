package manager_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// TestQuestionIsWhatHolds asks the gate about runs by every way in: what it is
// told of their bounds is what they get.
func TestQuestionIsWhatHolds(t *testing.T) {
	t.Parallel()
	type told struct {
		Timeout    sandbox.Duration
		Output     sandbox.Bytes
		Network    sandbox.NetworkMode
		Background bool
	}
	var got told
	m, _ := remembering(t, func(c *manager.Config, _ *runtimetest.Memory) {
		c.Gate = func(ctx context.Context, q manager.Question) (manager.Answer, error) {
			if e := q.Exec; e != nil {
				got = told{e.Timeout, e.MaxOutput, e.Network.Mode, e.Background}
			}
			return manager.Unjudged(ctx, q)
		}
	})
	if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Network: sandbox.Network{Mode: "bridge"}, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}); err != nil {
		t.Fatal(err)
	}
	box, err := m.Open(t.Context(), manager.OpenOptions{Language: "shell", Network: sandbox.Network{Mode: "bridge"}})
	if err != nil {
		t.Fatal(err)
	}
	const usual, hour, minute = sandbox.Duration(30 * time.Second), sandbox.Duration(time.Hour), sandbox.Duration(time.Minute)
	const out = 64 * sandbox.MiB
	for _, tt := range []struct {
		name string
		do   func(sandbox.Run) error
		time sandbox.Duration
		want told
	}{
		{"one-shot", func(r sandbox.Run) error { _, err := m.Run(t.Context(), r, sandbox.Streams{}); return err }, 0, told{usual, out, "none", false}},
		{"open sandbox", func(r sandbox.Run) error { _, err := box.Exec(t.Context(), r, sandbox.Streams{}); return err }, hour, told{hour, out, "bridge", false}},
		{"session", func(r sandbox.Run) error {
			_, err := m.ExecIn(t.Context(), "work", r, sandbox.Streams{})
			return err
		}, 0, told{usual, out, "bridge", false}},
		{"background", func(r sandbox.Run) error { _, err := m.StartIn(t.Context(), "work", r, sandbox.Local{}); return err }, 0, told{0, 0, "bridge", true}},
		{"background with a timeout", func(r sandbox.Run) error { _, err := m.StartIn(t.Context(), "work", r, sandbox.Local{}); return err }, minute, told{minute, 0, "bridge", true}},
	} {
		got = told{}
		run := echo
		run.Timeout = tt.time
		if err := tt.do(run); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// remembering is light, with a store. Its sessions are removed at the end.
func remembering(t *testing.T, change func(*manager.Config, *runtimetest.Memory)) (*manager.Manager, *runtimetest.Memory) {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	m, rt := light(t, func(c *manager.Config, rt *runtimetest.Memory) {
		c.Store, c.StateID, c.LockDir = s, s.ID(), filepath.Join(dir, "locks")
		if change != nil {
			change(c, rt)
		}
	})
	t.Cleanup(func() {
		list, err := m.Sessions(context.Background(), sandbox.SessionFilter{})
		if err != nil {
			t.Error(err)
		}
		for _, v := range list {
			if err := m.RemoveSession(context.Background(), v.Name, true); err != nil {
				t.Errorf("remove session %s: %v", v.Name, err)
			}
		}
	})
	return m, rt
}

// TestDomainsAreRefused lists hosts for a network that would not hold to the list.
func TestDomainsAreRefused(t *testing.T) {
	t.Parallel()
	m, rt := remembering(t, nil)
	only := sandbox.Network{Mode: sandbox.NetworkBridge, Allow: []string{"pypi.org"}}
	run := echo
	run.Network = only
	if _, err := m.Run(t.Context(), run, sandbox.Streams{}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a run: %v", err)
	}
	_, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Network: only, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}})
	if !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a session: %v", err)
	}
	if n := len(rt.Commands()); n != 0 {
		t.Errorf("%d commands were started", n)
	}
}
