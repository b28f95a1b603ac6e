package testloop_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/testloop"
)

// permissive is a policy that allows everything: what holds against cheats here is
// not the policy.
type permissive struct{}

func (permissive) Examine(context.Context, policy.Request) (sandbox.Decision, []policy.Ref) {
	return sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe}, nil
}

func (permissive) Contain(_ context.Context, d sandbox.Decision, _ []sandbox.Wall) sandbox.Decision {
	return d
}

func (permissive) DecideContext(context.Context, string, map[string]any) sandbox.Decision {
	return sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe}
}

func (permissive) LooksAtPlan() bool { return false }
func (permissive) Revision() string  { return "" }
func (permissive) Err() error        { return nil }

// warm is a session with two CPUs, whose sandbox is made at first use.
func warm(t *testing.T, langs ...string) testloop.Exec {
	t.Helper()
	return warmWith(t, func(*manager.Config) {}, langs...)
}

// warmWith has what is run set otherwise.
func warmWith(t *testing.T, set func(*manager.Config), langs ...string) testloop.Exec {
	t.Helper()
	kit := enginetest.New(t)
	for _, l := range langs {
		kit.Image(t, l)
	}
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return permissive{}, nil }, Own: testloop.Own()})
	if err != nil {
		t.Fatal(err)
	}
	cfg := manager.Config{
		Patience: enginetest.Patience, Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: g.Judge, Store: s, StateID: s.ID(),
		LockDir: filepath.Join(dir, "locks"), Actor: "test",
	}
	set(&cfg)
	m, err := manager.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	const name = "loop"
	if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{
		Name: name, Language: langs[0], Limits: sandbox.Limits{CPUs: 2, Memory: 256 * sandbox.MiB},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.RemoveSession(context.WithoutCancel(t.Context()), name, true); err != nil {
			t.Error(err)
		}
	})
	return func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		return m.ExecIn(ctx, name, run, streams)
	}
}

// files makes files of texts: name, text, name, text, …
func files(pairs ...string) []sandbox.File {
	var list []sandbox.File
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, sandbox.File{Path: pairs[i], Data: []byte(pairs[i+1]), Size: int64(len(pairs[i+1]))})
	}
	return list
}

// told is a result on few lines, for those who read a failure.
func told(r testloop.Result) string {
	var b strings.Builder
	for _, t := range r.Tests {
		b.WriteString(t.ID + " " + string(t.Outcome) + " " + t.Message + " | " + t.Output + "\n")
	}
	for _, p := range r.Problems {
		b.WriteString("problem " + p.File + " " + p.Message + "\n")
	}
	return b.String()
}
