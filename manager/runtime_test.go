package manager_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// twoRuntimes is a state folder with Docker and the runtime in memory side by
// side.
type twoRuntimes struct {
	kit    *enginetest.Kit
	dir    string
	store  *sqlite.Store
	memory *runtimetest.Memory
	all    *runtimes.Registry
}

// each names both, Docker first.
var each = []string{docker.Name, runtimetest.MemoryName}

func newTwoRuntimes(t *testing.T) *twoRuntimes {
	t.Helper()
	p := &twoRuntimes{kit: enginetest.New(t), dir: t.TempDir(), memory: &runtimetest.Memory{}, all: runtimes.NewRegistry(runtimes.Host{})}
	p.kit.Image(t, "shell")
	rt := p.kit.Runtime(t)
	err := errors.Join(
		p.all.Register(docker.Name, func(runtimes.Host) (runtimes.Runtime, error) { return rt, nil }),
		p.all.Register(runtimetest.MemoryName, func(runtimes.Host) (runtimes.Runtime, error) { return p.memory, nil }),
	)
	if err != nil {
		t.Fatal(err)
	}
	if p.store, err = sqlite.Open(t.Context(), sqlite.Config{Dir: p.dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := p.memory.List(context.Background()); err != nil || len(left) > 0 {
			t.Errorf("left in memory: %v, %+v", err, left)
		}
		if err := p.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// manager is one whose default is the runtime of that name.
func (p *twoRuntimes) manager(t *testing.T, usual string) *manager.Manager {
	t.Helper()
	m, err := manager.New(manager.Config{
		Patience: enginetest.Patience, Runtimes: p.all, Runtime: usual, Images: p.kit.Images, Gate: manager.Unjudged, Holder: p.kit.Holder,
		Store: p.store, StateID: p.store.ID(), LockDir: filepath.Join(p.dir, "locks"), Alive: func(holder string) bool { return holder != "dead" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// sessions makes one on each runtime, named after it, with a sandbox.
func (p *twoRuntimes) sessions(t *testing.T, m *manager.Manager) {
	t.Helper()
	for _, name := range each {
		s, err := m.CreateSession(t.Context(), sandbox.SessionOptions{
			Name: name, Language: "shell", Runtime: name, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs},
		})
		if err != nil || s.Runtime != name {
			t.Fatalf("%s: %v, %+v", name, err, s)
		}
		t.Cleanup(func() {
			if err := m.RemoveSession(context.WithoutCancel(t.Context()), name, true); err != nil {
				t.Errorf("remove session %s: %v", name, err)
			}
		})
		p.exec(t, m, name)
	}
}

// exec runs something in a session and looks which runtime did.
func (p *twoRuntimes) exec(t *testing.T, m *manager.Manager, session string) {
	t.Helper()
	res, err := m.ExecIn(t.Context(), session, echo, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "ok\n" || res.Runtime != session {
		t.Errorf("in session %s: %v, %+v", session, err, res)
	}
}

// A run gets the runtime that it asks for, and the default where it asks for
// none; another name is refused with those that there are.
func TestRunOnEachRuntime(t *testing.T) {
	t.Parallel()
	p := newTwoRuntimes(t)
	for _, usual := range append([]string{""}, each...) {
		m := p.manager(t, usual)
		for _, asked := range append([]string{"", runtimes.Auto}, each...) {
			want := asked
			switch asked {
			case "":
				want = usual
			case runtimes.Auto:
				want = docker.Name // the other one isolates nothing
			}
			if want == "" {
				want = docker.Name // the first
			}
			before := len(p.memory.Commands())
			run := echo
			run.Runtime = asked
			res, err := m.Run(t.Context(), run, sandbox.Streams{})
			inMemory := len(p.memory.Commands()) > before
			if err != nil || string(res.Stdout) != "ok\n" || res.Runtime != want || inMemory != (want == runtimetest.MemoryName) {
				t.Errorf("default %q, asked for %q: %v, %+v, in memory: %v", usual, asked, err, res, inMemory)
			}
		}
	}
	run := echo
	run.Runtime = "third"
	_, err := p.manager(t, "").Run(t.Context(), run, sandbox.Streams{})
	if !errors.Is(err, sandbox.Invalid) || !strings.Contains(sandbox.HintOf(err), strings.Join(each, ", ")) {
		t.Errorf("%v (%s)", err, sandbox.HintOf(err))
	}
}

// A session keeps the runtime that it began with, whatever the default is later,
// and its sandboxes are recorded with it. What a runtime can do beyond the
// contract is asked of that one.
func TestSessionKeepsItsRuntime(t *testing.T) {
	t.Parallel()
	p := newTwoRuntimes(t)
	p.sessions(t, p.manager(t, docker.Name))
	m := p.manager(t, runtimetest.MemoryName)
	for _, name := range each {
		p.exec(t, m, name)
		v, err := m.Session(t.Context(), name)
		if err != nil || v.Runtime != name || len(v.Sandboxes) != 1 || v.Sandboxes[0].Runtime != name {
			t.Errorf("%v, %+v", err, v)
		}
		other := echo
		other.Runtime = each[1-slices.Index(each, name)]
		if _, err := m.ExecIn(t.Context(), name, other, sandbox.Streams{}); !errors.Is(err, sandbox.Conflict) {
			t.Errorf("session %s, another runtime: %v", name, err)
		}
	}
	if err := m.PauseSession(t.Context(), docker.Name); err != nil {
		t.Errorf("pause: %v", err)
	}
	if err := m.ResumeSession(t.Context(), docker.Name); err != nil {
		t.Errorf("resume: %v", err)
	}
	if err := m.PauseSession(t.Context(), runtimetest.MemoryName); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("pause where nothing can: %v", err)
	}
	if v, err := m.Session(t.Context(), docker.Name); err != nil || m.HeldBy(t.Context(), v.Session) != sandbox.HeldByFileSystem {
		t.Errorf("%v, held by %q", err, m.HeldBy(t.Context(), v.Session))
	}
}

// What dead processes left is taken up and swept on every runtime.
func TestRecoverAndSweepEachRuntime(t *testing.T) {
	t.Parallel()
	p := newTwoRuntimes(t)
	p.sessions(t, p.manager(t, ""))
	var orphans []sandbox.ID
	for _, name := range each {
		rt, err := p.all.Runtime(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.store.Session(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		// Its sandbox went away, with what a process ran that has died too.
		rec := v.Sandboxes[0]
		if err := p.store.Apply(t.Context(), sandbox.Transaction{PutExecs: []sandbox.ExecRecord{{
			ID: sandbox.NewID(), Session: name, Sandbox: rec.ID, Argv: []string{"sleep", "600"}, Holder: "dead", Started: rec.Created,
		}}}); err != nil {
			t.Fatal(err)
		}
		inst, err := rt.Attach(t.Context(), runtimes.Handle{Version: runtimes.HandleVersion, Runtime: name, Kind: runtimes.KindSandbox, ID: rec.ID})
		if err != nil {
			t.Fatal(err)
		}
		if err := inst.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
		// And a sandbox of nobody's any more.
		image := p.kit.Image(t, "shell")
		plan, err := rt.Plan(t.Context(), sandbox.Spec{Image: image, Holder: "dead", Identity: sandbox.IdentityFor("x")})
		if err != nil {
			t.Fatal(err)
		}
		orphan, err := rt.Create(t.Context(), sandbox.NewID(), plan)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = orphan.Destroy(context.WithoutCancel(t.Context())) })
		orphans = append(orphans, orphan.Handle().ID)
	}
	m := p.manager(t, "")
	if rec, err := m.Recover(t.Context()); err != nil || rec.Ended != len(each) || len(rec.Failures) > 0 {
		t.Errorf("recovered %+v, %v", rec, err)
	}
	swept, err := m.Sweep(t.Context(), false, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range orphans {
		if !slices.ContainsFunc(swept, func(o sandbox.Orphan) bool { return o.ID == id && o.Removed }) {
			t.Errorf("sandbox %s was not swept: %+v", id.Short(), swept)
		}
	}
	for _, name := range each {
		p.exec(t, m, name) // in a new sandbox
	}
}
