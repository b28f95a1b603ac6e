package manager_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/store/storetest"
)

// place is a state folder of a test's own, on a real engine. At the test's end
// its sessions are removed, nothing of them may be left, and the audit has to
// verify with one end for each start.
type place struct {
	kit   *enginetest.Kit
	on    *runtimes.Registry
	dir   string
	store *sqlite.Store
	books *bridge.Bridge   // of the first manager
	now   func() time.Time // of managers that are opened from then on; nil is time.Now
	*manager.Manager
}

func newPlace(t testing.TB, languages ...string) *place {
	t.Helper()
	return newPlaceOn(t, enginetest.New(t), languages...)
}

func newPlaceOn(t testing.TB, kit *enginetest.Kit, languages ...string) *place {
	t.Helper()
	return newPlaceWith(t, kit, kit.Runtimes(t), languages...)
}

func newPlaceWith(t testing.TB, kit *enginetest.Kit, on *runtimes.Registry, languages ...string) *place {
	t.Helper()
	for _, l := range append(languages, "shell") {
		kit.Image(t, l)
	}
	p := &place{kit: kit, on: on, dir: t.TempDir()}
	t.Cleanup(func() { p.empty(t) })
	p.Manager = p.manager(t)
	return p
}

// manager opens the state once more, as another process would.
func (p *place) manager(t testing.TB) *manager.Manager {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	books, err := bridge.New(bridge.Config{Dir: filepath.Join(p.dir, "changes"), Feed: &bridge.Feed{},
		Open: func(ctx context.Context, path string) (bridge.Ledger, error) { return sqlite.OpenLedger(ctx, path) }})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(manager.Config{
		Patience: enginetest.Patience, Runtimes: p.on, Images: p.kit.Images, Gate: manager.Unjudged, Store: s, StateID: s.ID(),
		LockDir: filepath.Join(p.dir, "locks"), Actor: "test", Recorder: books, Now: p.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.store == nil {
		p.store, p.books = s, books
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), books.Close(), s.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m
}

// held names what the engine holds of this state.
func (p *place) held(t testing.TB) []string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	mine := filters.NewArgs(filters.Arg("label", "dev.caisson.holder=state:"+p.store.ID()))
	boxes, err := p.kit.API.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := p.kit.API.VolumeList(ctx, volume.ListOptions{Filters: mine})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, b := range boxes {
		found = append(found, "container "+strings.TrimPrefix(b.Names[0], "/"))
	}
	for _, v := range volumes.Volumes {
		found = append(found, "volume "+v.Name)
	}
	return found
}

// empty removes all sessions with a manager of its own, and looks at what is
// left.
func (p *place) empty(t testing.TB) {
	ctx := context.WithoutCancel(t.Context())
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: p.dir})
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	m, err := manager.New(manager.Config{
		Patience: enginetest.Patience, Runtimes: p.on, Images: p.kit.Images, Gate: manager.Unjudged, Store: s, StateID: s.ID(), LockDir: filepath.Join(p.dir, "locks"),
	})
	if err != nil {
		t.Error(err)
		return
	}
	defer m.Close()
	list, err := m.Sessions(ctx, sandbox.SessionFilter{})
	if err != nil {
		t.Error(err)
	}
	for _, v := range list {
		if err := m.RemoveSession(ctx, v.Name, true); err != nil {
			t.Errorf("remove session %s: %v", v.Name, err)
		}
	}
	if left := p.held(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	storetest.Sound(t, s)
	ends := map[sandbox.ID]int{}
	for e, err := range s.Events(ctx, sandbox.EventFilter{Kinds: []string{sandbox.EventExecStarted, sandbox.EventExecEnded}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == sandbox.EventExecStarted {
			ends[e.Exec] += 100
		} else {
			ends[e.Exec]++
		}
	}
	for id, n := range ends {
		if n != 101 {
			t.Errorf("exec %s has %d starts and %d ends", id, n/100, n%100)
		}
	}
}

func (p *place) create(t testing.TB, o sandbox.SessionOptions) sandbox.Session {
	t.Helper()
	if o.Limits == (sandbox.Limits{}) {
		o.Limits.CPUs = 1
	}
	s, err := p.CreateSession(t.Context(), o)
	if err != nil {
		t.Fatalf("create session: %v", err)
	}
	return s
}

// sh runs a script in a session, which has to succeed.
func sh(t testing.TB, m *manager.Manager, session, script string) sandbox.Result {
	t.Helper()
	res, err := m.ExecIn(t.Context(), session, sandbox.Run{Command: []string{"bash", "-c", script}, Language: "shell"}, sandbox.Streams{})
	if err != nil {
		t.Fatalf("exec in %s: %v", session, err)
	}
	if res.Code != 0 {
		t.Fatalf("%s: code %d, reason %s (%s), stderr %s", script, res.Code, res.Reason, res.Cause, res.Stderr)
	}
	return res
}

// caisson is the real command on this place.
func (p *place) caisson(ctx context.Context, t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, enginetest.Command(t), args...)
	cmd.Env = append(os.Environ(), "CAISSON_STATE_DIR="+p.dir, "CAISSON_RUNTIME_DIR="+p.kit.Base, "CAISSON_AGENT="+p.kit.Agent,
		"CAISSON_SCAN="+enginetest.Scanner(t),
		"DOCKER_HOST="+p.kit.Engine.Host())
	return cmd
}

// until tries until something holds.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("it did not come to pass: %s", what)
}
