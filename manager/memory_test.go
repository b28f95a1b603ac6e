package manager_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// noImages knows one language, whose image is always there.
type noImages struct{}

func (noImages) Language(name string) (sandbox.Language, error) {
	if name != "shell" {
		return sandbox.Language{}, sandbox.Errorf(sandbox.Invalid, "unknown language %q", name)
	}
	return sandbox.Language{Name: "shell", Suffixes: []string{".sh"}, Image: "shell", RunCode: []string{"sh", "-c", "{code}"}, RunFile: []string{"sh", "{file}"}}, nil
}

func (noImages) Forget(sandbox.Image) {}

func (noImages) Ensure(_ context.Context, ref string) (sandbox.Image, error) {
	if ref == "absent" {
		return sandbox.Image{}, sandbox.Errorf(sandbox.NotFound, "no image %s", ref)
	}
	return sandbox.Image{Ref: ref, ID: "sha256:0"}, nil
}

// light returns a manager on a runtime in memory. Both must be empty at the end.
func light(t *testing.T, change func(*manager.Config, *runtimetest.Memory)) (*manager.Manager, *runtimetest.Memory) {
	t.Helper()
	rt := &runtimetest.Memory{}
	cfg := manager.Config{Runtimes: runtimes.Only(runtimetest.MemoryName, rt), Images: noImages{}, Gate: manager.Unjudged, Holder: "me", Alive: func(string) bool { return true }, Patience: enginetest.Patience}
	if change != nil {
		change(&cfg, rt)
	}
	m, err := manager.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := m.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		rest, err := rt.List(context.Background())
		if err != nil || len(rest) > 0 {
			t.Errorf("left in the runtime: %v, %+v", err, rest)
		}
		if _, err := m.Run(context.Background(), echo, sandbox.Streams{}); !errors.Is(err, sandbox.Unavailable) {
			t.Errorf("a closed manager runs: %v", err)
		}
	})
	return m, rt
}

var echo = sandbox.Run{Language: "shell", Command: []string{"echo", "ok"}}

func TestRunOnce(t *testing.T) {
	t.Parallel()
	m, rt := light(t, nil)
	var out bytes.Buffer
	res, err := m.Run(t.Context(), echo, sandbox.Streams{Stdout: &out})
	if err != nil || res.Code != 0 || res.Reason != sandbox.ReasonExited || string(res.Stdout) != "ok\n" || out.String() != "ok\n" || !res.ExecID.Valid() || res.Image != "sha256:0" {
		t.Errorf("%v, %+v", err, res)
	}
	if rest, _ := rt.List(t.Context()); len(rest) > 0 {
		t.Errorf("a run left %+v", rest)
	}
	for name, run := range map[string]sandbox.Run{
		"nothing":        {Language: "shell"},
		"two things":     {Language: "shell", Code: "x", Command: []string{"x"}},
		"no language":    {Language: "cobol", Code: "x"},
		"code alone":     {Image: "x", Code: "x"},
		"a role":         {Language: "shell", Code: "x", Role: "root"},
		"an environment": {Language: "shell", Code: "x", Env: []string{"x"}},
		"a NUL":          {Language: "shell", Command: []string{"echo", "a\x00b"}},
		"a path":         {Language: "shell", Code: "x", Files: []sandbox.File{{Path: "../x"}}},
		"no path":        {Language: "shell", Code: "x", Files: []sandbox.File{{Path: ""}}},
		"the workspace":  {Language: "shell", Code: "x", Files: []sandbox.File{{Path: "./"}}},
		"a limit":        {Language: "shell", Code: "x", Limits: sandbox.Limits{Memory: 1}},
	} {
		if _, err := m.Run(t.Context(), run, sandbox.Streams{}); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Run(t.Context(), sandbox.Run{Image: "absent", Command: []string{"x"}}, sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("absent image: %v", err)
	}
	if n := len(rt.Commands()); n != 1 {
		t.Errorf("%d commands were started: %q", n, rt.Commands())
	}
}

// What the gate refuses does not run, whatever stage it is refused at.
func TestGateRefuses(t *testing.T) {
	t.Parallel()
	failed := errors.New("the gate is out of order")
	for name, gate := range map[string]manager.Gate{
		"denies the exec": func(_ context.Context, q manager.Question) (manager.Answer, error) {
			if q.Exec != nil {
				return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Deny, Level: sandbox.High, Findings: []sandbox.Finding{{ID: "X-1"}}}}, nil
			}
			return manager.Unjudged(t.Context(), q)
		},
		"denies the sandbox": func(_ context.Context, q manager.Question) (manager.Answer, error) {
			if q.Plan != nil {
				return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Deny}}, nil
			}
			return manager.Unjudged(t.Context(), q)
		},
		"asks": func(context.Context, manager.Question) (manager.Answer, error) {
			return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Ask}}, nil
		},
		"says nothing": func(context.Context, manager.Question) (manager.Answer, error) {
			return manager.Answer{Decision: sandbox.Decision{}}, nil
		},
		"fails": func(_ context.Context, q manager.Question) (manager.Answer, error) {
			if q.Exec != nil {
				return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Allow}}, failed
			}
			return manager.Unjudged(t.Context(), q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, rt := light(t, func(c *manager.Config, _ *runtimetest.Memory) { c.Gate = gate })
			res, err := m.Run(t.Context(), echo, sandbox.Streams{})
			var denied *sandbox.DeniedError
			switch {
			case err == nil:
				t.Fatalf("it ran: %+v", res)
			case name == "fails" && !errors.Is(err, failed), name != "fails" && !errors.As(err, &denied):
				t.Errorf("refused with %v", err)
			}
			if name == "denies the exec" && (res.Reason != sandbox.ReasonDenied || res.Code != 126 || len(res.Decision.Findings) != 1 || !res.ExecID.Valid()) {
				t.Errorf("result %+v", res)
			}
			if denied != nil && (res.Reason != sandbox.ReasonDenied || res.Decision.Verdict != denied.Decision.Verdict || res.Decision.Permits()) {
				t.Errorf("refused with %v, and the result says %+v", err, res)
			}
			if started := rt.Commands(); len(started) > 0 {
				t.Errorf("started: %q", started)
			}
			if rest, _ := rt.List(t.Context()); len(rest) > 0 {
				t.Errorf("left: %+v", rest)
			}
		})
	}
}

// Judging and making go on side by side, and both are over before the program
// begins; the first to fail ends the other.
func TestGateOverlapsCreation(t *testing.T) {
	t.Parallel()
	judging, making := make(chan struct{}), make(chan struct{})
	m, _ := light(t, func(c *manager.Config, rt *runtimetest.Memory) {
		c.Gate = func(ctx context.Context, q manager.Question) (manager.Answer, error) {
			if q.Exec != nil {
				close(judging)
				await(t, making)
			}
			return manager.Unjudged(ctx, q)
		}
		rt.OnCreate = func(context.Context, runtimes.Plan) error {
			close(making)
			await(t, judging)
			return nil
		}
	})
	if _, err := m.Run(t.Context(), echo, sandbox.Streams{}); err != nil {
		t.Error(err)
	}

	full := sandbox.Errorf(sandbox.Exhausted, "no room")
	m, rt := light(t, func(c *manager.Config, rt *runtimetest.Memory) {
		c.Gate = func(ctx context.Context, q manager.Question) (manager.Answer, error) {
			if q.Exec == nil {
				return manager.Unjudged(ctx, q)
			}
			<-ctx.Done() // a person who would have been asked for nothing
			return manager.Answer{Decision: sandbox.Decision{}}, ctx.Err()
		}
		rt.OnCreate = func(context.Context, runtimes.Plan) error { return full }
	})
	if _, err := m.Run(t.Context(), echo, sandbox.Streams{}); !errors.Is(err, sandbox.Exhausted) {
		t.Errorf("%v", err)
	}
	if len(rt.Commands()) > 0 {
		t.Error("it ran")
	}

	m, _ = light(t, func(c *manager.Config, rt *runtimetest.Memory) {
		c.Gate = func(ctx context.Context, q manager.Question) (manager.Answer, error) {
			if q.Exec != nil {
				return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Deny}}, nil
			}
			return manager.Unjudged(ctx, q)
		}
		rt.OnCreate = func(ctx context.Context, _ runtimes.Plan) error {
			<-ctx.Done()
			return ctx.Err()
		}
	})
	if _, err := m.Run(t.Context(), echo, sandbox.Streams{}); !errors.Is(err, sandbox.Denied) {
		t.Errorf("%v", err)
	}
}

func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Error("the other side did not come")
	}
	return v
}

func TestBrokenSandboxIsReplaced(t *testing.T) {
	t.Parallel()
	m, rt := light(t, nil)
	s, err := m.Open(t.Context(), manager.OpenOptions{Language: "shell"})
	if err != nil {
		t.Fatal(err)
	}
	first := s.ID()
	w := &signalWriter{first: func() { rt.Break(first) }}
	res, err := s.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "echo partial; sleep 60"}}, sandbox.Streams{Stdout: w})
	if err != nil || res.Reason != sandbox.ReasonInfra || string(res.Stdout) != "partial\n" || !strings.Contains(res.Cause, "killed") {
		t.Errorf("%v, %+v", err, res)
	}
	for i := range 2 {
		res, err = s.Exec(t.Context(), echo, sandbox.Streams{})
		if err != nil || res.Replaced != (i == 0) || res.Sandbox == first || string(res.Stdout) != "ok\n" {
			t.Errorf("%d: %v, %+v", i, err, res)
		}
	}
	if s.State() != sandbox.StateReady {
		t.Errorf("state %s", s.State())
	}
	if list, _ := rt.List(t.Context()); len(list) != 1 {
		t.Errorf("sandboxes %+v", list)
	}
}

// A replacement that cannot be made is an error, each time, until it can.
func TestReplacementFails(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	m, rt := light(t, func(_ *manager.Config, rt *runtimetest.Memory) {
		rt.OnCreate = func(context.Context, runtimes.Plan) error {
			if full.Load() {
				return sandbox.Errorf(sandbox.Exhausted, "no room")
			}
			return nil
		}
	})
	s, err := m.Open(t.Context(), manager.OpenOptions{Language: "shell"})
	if err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	rt.Break(s.ID())
	if _, err := s.Exec(t.Context(), echo, sandbox.Streams{}); err == nil {
		t.Error("ran in a broken sandbox")
	}
	for range 2 {
		if _, err := s.Exec(t.Context(), echo, sandbox.Streams{}); !errors.Is(err, sandbox.Exhausted) {
			t.Errorf("%v", err)
		}
	}
	full.Store(false)
	if res, err := s.Exec(t.Context(), echo, sandbox.Streams{}); err != nil || !res.Replaced {
		t.Errorf("%v, %+v", err, res)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	m, rt := light(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w := &signalWriter{first: cancel}
	res, err := m.Run(ctx, sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "echo partial; sleep 60"}}, sandbox.Streams{Stdout: w})
	if err != nil || res.Reason != sandbox.ReasonCanceled || string(res.Stdout) != "partial\n" {
		t.Errorf("%v, %+v", err, res)
	}
	if _, err := m.Run(ctx, echo, sandbox.Streams{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if rest, _ := rt.List(t.Context()); len(rest) > 0 {
		t.Errorf("left: %+v", rest)
	}
}

// Only what is a dead holder's, and was not kept on purpose, is swept.
func TestSweep(t *testing.T) {
	t.Parallel()
	m, rt := light(t, func(c *manager.Config, _ *runtimetest.Memory) {
		c.Alive = func(holder string) bool { return holder != "dead" }
	})
	make := func(holder string, keep bool) sandbox.ID {
		plan, err := rt.Plan(t.Context(), sandbox.Spec{Image: sandbox.Image{Ref: "x"}, Holder: holder, Keep: keep, Identity: sandbox.IdentityFor("x")})
		if err != nil {
			t.Fatal(err)
		}
		id := sandbox.NewID()
		if _, err := rt.Create(t.Context(), id, plan); err != nil {
			t.Fatal(err)
		}
		return id
	}
	dead, kept, alive, mine := make("dead", false), make("dead", true), make("alive", false), make("me", false)
	left := func() map[sandbox.ID]bool {
		ids := map[sandbox.ID]bool{}
		list, _ := rt.List(t.Context())
		for _, h := range list {
			ids[h.ID] = true
		}
		return ids
	}
	for _, step := range []struct {
		name      string
		dry, kept bool
		found     []sandbox.ID
		left      int
	}{
		{"dry", true, false, []sandbox.ID{dead}, 4},
		{"real", false, false, []sandbox.ID{dead}, 3},
		{"again", false, false, nil, 3},
		{"kept too", false, true, []sandbox.ID{kept}, 2},
	} {
		got, err := m.Sweep(t.Context(), step.dry, step.kept)
		if err != nil || len(got) != len(step.found) || len(left()) != step.left {
			t.Fatalf("%s: %v, %+v; left %v", step.name, err, got, left())
		}
		for i, id := range step.found {
			if got[i].ID != id || got[i].Removed == step.dry || got[i].Problem != nil {
				t.Errorf("%s: %+v", step.name, got[i])
			}
		}
	}
	if ids := left(); !ids[alive] || !ids[mine] {
		t.Errorf("left %v", ids)
	}
	for _, id := range []sandbox.ID{alive, mine} {
		inst, err := rt.Attach(t.Context(), runtimes.Handle{Version: runtimes.HandleVersion, Runtime: runtimetest.MemoryName, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		_ = inst.Destroy(t.Context())
	}
}

// An end that cannot be carried out is told, and does not hide the result.
func TestDestroyFails(t *testing.T) {
	t.Parallel()
	var stuck atomic.Bool
	stuck.Store(true)
	m, rt := light(t, func(_ *manager.Config, rt *runtimetest.Memory) {
		rt.OnDestroy = func(runtimes.Handle) error {
			if stuck.Load() {
				return sandbox.Errorf(sandbox.Unavailable, "the engine is gone")
			}
			return nil
		}
	})
	res, err := m.Run(t.Context(), echo, sandbox.Streams{})
	if !errors.Is(err, sandbox.Unavailable) || string(res.Stdout) != "ok\n" {
		t.Errorf("%v, %+v", err, res)
	}
	stuck.Store(false)
	list, _ := rt.List(t.Context())
	for _, h := range list {
		inst, err := rt.Attach(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		_ = inst.Destroy(t.Context())
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	me, err := manager.ProcessHolder()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(me, "/")
	if len(parts) != 4 || !manager.HolderAlive(me) {
		t.Fatalf("holder %q", me)
	}
	for name, tt := range map[string]struct {
		change func([]string)
		alive  bool
	}{
		"another start":     {func(p []string) { p[3] = "1" }, false},
		"no such process":   {func(p []string) { p[2] = "4194304" }, false},
		"another boot":      {func(p []string) { p[0] = "x" }, true},
		"another namespace": {func(p []string) { p[1] = "1" }, true},
		"no number":         {func(p []string) { p[2] = "x" }, true},
	} {
		p := append([]string(nil), parts...)
		tt.change(p)
		if got := manager.HolderAlive(strings.Join(p, "/")); got != tt.alive {
			t.Errorf("%s: alive %v", name, got)
		}
	}
	if !manager.HolderAlive("") || !manager.HolderAlive("enginetest/1/x") {
		t.Error("what cannot be read may live")
	}
}
