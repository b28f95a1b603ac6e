package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// permissive is a policy that allows everything.
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

// sandboxes are those of a manager.
type sandboxes struct{ *manager.Manager }

func (s sandboxes) CreateSession(ctx context.Context, o sandbox.SessionOptions, _ sandbox.Local) (sandbox.Session, error) {
	return s.Manager.CreateSession(ctx, o)
}

func (s sandboxes) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return s.ExecIn(ctx, session, run, streams)
}

// onEngine are functions on a real engine, with the store that they are kept in.
func onEngine(t *testing.T, langs ...string) (*functions.Functions, sandboxes, *sqlite.Store) {
	t.Helper()
	return onEngineWith(t, func(*manager.Config) {}, langs...)
}

// onEngineWith has what is run set otherwise.
func onEngineWith(t *testing.T, set func(*manager.Config), langs ...string) (*functions.Functions, sandboxes, *sqlite.Store) {
	t.Helper()
	kit := enginetest.New(t)
	for _, l := range langs {
		kit.Image(t, l)
	}
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return permissive{}, nil }, Own: functions.Own()})
	if err != nil {
		t.Fatal(err)
	}
	cfg := manager.Config{
		Patience: enginetest.Patience, Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: g.Judge, Store: store, StateID: store.ID(),
		LockDir: filepath.Join(dir, "locks"), Actor: "test",
	}
	set(&cfg)
	m, err := manager.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	boxes := sandboxes{m}
	fs := open(t, functions.Config{Sandboxes: boxes, Store: store, LockDir: filepath.Join(dir, "locks"), Actor: "test"})
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := fs.Close()
		views, listed := m.Sessions(ctx, sandbox.SessionFilter{})
		err = errors.Join(err, listed)
		for _, v := range views {
			err = errors.Join(err, m.RemoveSession(ctx, v.Name, true))
		}
		if err := errors.Join(err, m.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return fs, boxes, store
}

func open(t *testing.T, cfg functions.Config) *functions.Functions {
	t.Helper()
	cfg.LanguageOf = func(file string) (string, error) {
		switch path.Ext(file) {
		case ".py":
			return "python", nil
		case ".js", ".mjs", ".cjs":
			return "node", nil
		}
		return "", sandbox.Errorf(sandbox.Invalid, "no language")
	}
	fs, err := functions.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// files makes files of texts: name, text, name, text, …
func files(pairs ...string) []sandbox.File {
	var list []sandbox.File
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, sandbox.File{Path: pairs[i], Data: []byte(pairs[i+1])})
	}
	return list
}

// put keeps a function that has to be fine.
func put(t *testing.T, fs *functions.Functions, o sandbox.FunctionOptions) sandbox.Function {
	t.Helper()
	f, err := fs.PutFunction(t.Context(), o, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// invoke calls a function, which has to be possible.
func invoke(t *testing.T, fs *functions.Functions, name, event string) sandbox.Invoked {
	t.Helper()
	done, err := fs.InvokeFunction(t.Context(), sandbox.Invocation{Function: name, Event: json.RawMessage(event)}, sandbox.Local{})
	if err != nil {
		t.Fatalf("%s: %v; %s", event, err, sandbox.HintOf(err))
	}
	return done
}
