package manager_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// lightPlace is a state folder of a test's own, on a runtime in memory. change
// may put something between the manager and its store.
func lightPlace(t *testing.T, change func(*manager.Config, *runtimetest.Memory)) (*manager.Manager, *sqlite.Store) {
	t.Helper()
	m, s, _ := lightPlaces(t, 1, change)
	return m[0], s
}

// lightPlaces has several managers on one state folder and one runtime, as
// processes that share them.
func lightPlaces(t *testing.T, n int, change func(*manager.Config, *runtimetest.Memory)) ([]*manager.Manager, *sqlite.Store, *runtimetest.Memory) {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var all []*manager.Manager
	var one manager.Config
	m, rt := light(t, func(c *manager.Config, rt *runtimetest.Memory) {
		c.Store, c.StateID, c.LockDir = s, s.ID(), dir
		if change != nil {
			change(c, rt)
		}
		one = *c
	})
	for all = append(all, m); len(all) < n; {
		one.Holder = fmt.Sprint("process ", len(all))
		other, err := manager.New(one)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		all = append(all, other)
	}
	t.Cleanup(func() {
		sessions, err := m.Sessions(context.Background(), sandbox.SessionFilter{})
		for _, v := range sessions {
			err = errors.Join(err, m.RemoveSession(context.Background(), v.Name, true))
		}
		if err != nil {
			t.Errorf("remove sessions: %v", err)
		}
	})
	return all, s, rt
}

// refusing is a store that refuses some changes.
type refusing struct {
	manager.Store
	refuses func(sandbox.Transaction) bool
}

func (r *refusing) Apply(ctx context.Context, c sandbox.Transaction) error {
	if r.refuses(c) {
		return errStore
	}
	return r.Store.Apply(ctx, c)
}

// lockedLedger is a recorder whose ledger somebody else holds.
type lockedLedger struct{ manager.Recorder }

func (lockedLedger) Record(context.Context, sandbox.ID, sandbox.Tree, sandbox.RecordOptions) ([]sandbox.ChangeRecord, []sandbox.FileChange, error) {
	return nil, nil, errors.New("the ledger is locked")
}
func (lockedLedger) Listened() bool          { return false }
func (lockedLedger) Forget(sandbox.ID) error { return nil }

// TestUnrecorded has the record after an exec fail. What the exec did is told all
// the same, and that it is not written down is told beside it.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	three := sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}, Track: sandbox.ModeExact}
	ran := func(t *testing.T, res sandbox.Result) {
		t.Helper()
		if res.Code != 3 || res.Reason != sandbox.ReasonExited || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" || res.Usage.Wall <= 0 || !res.ExecID.Valid() {
			t.Errorf("%+v, usage %+v, %q, %q", res.Exit, res.Usage, res.Stdout, res.Stderr)
		}
	}
	t.Run("its changes", func(t *testing.T) {
		t.Parallel()
		m, s := lightPlace(t, func(c *manager.Config, _ *runtimetest.Memory) { c.Recorder = lockedLedger{} })
		res, err := m.Run(t.Context(), three, sandbox.Streams{})
		if err != nil {
			t.Error(err)
		}
		ran(t, res)
		if !strings.Contains(res.ChangesError, "locked") {
			t.Errorf("of its changes: %q", res.ChangesError)
		}
		var told []string
		for e, err := range s.Events(t.Context(), sandbox.EventFilter{Exec: res.ExecID}) {
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, e.Kind)
			var d struct {
				Reason sandbox.ExitReason `json:"exit_reason"`
				Code   int                `json:"exit_code"`
				Cause  string             `json:"cause"`
				Why    string             `json:"files_error"`
			}
			if err := json.Unmarshal(e.Data, &d); err != nil {
				t.Fatal(err)
			}
			if e.Kind == sandbox.EventExecEnded && (d.Reason != sandbox.ReasonExited || d.Code != 3 || d.Cause != "" || !strings.Contains(d.Why, "locked")) {
				t.Errorf("the audit says %s", e.Data)
			}
		}
		if strings.Join(told, " ") != sandbox.EventExecStarted+" "+sandbox.EventExecEnded {
			t.Errorf("the audit has %q", told)
		}
	})
	t.Run("its end", func(t *testing.T) {
		t.Parallel()
		m, _ := lightPlace(t, func(c *manager.Config, _ *runtimetest.Memory) {
			c.Store = &refusing{c.Store, func(change sandbox.Transaction) bool {
				return len(change.Events) > 0 && change.Events[0].Kind == sandbox.EventExecEnded
			}}
		})
		res, err := m.Run(t.Context(), three, sandbox.Streams{})
		if !errors.Is(err, errStore) {
			t.Errorf("nothing says that its end is not written down: %v", err)
		}
		ran(t, res)
	})
}

// TestEndsWhileItIsWrittenDown has the end of an exec written down once its sandbox is
// gone, which waits for nothing: nothing more was asked of it.
func TestEndsWhileItIsWrittenDown(t *testing.T) {
	t.Parallel()
	m, _ := lightPlace(t, func(c *manager.Config, rt *runtimetest.Memory) {
		c.Store = &refusing{c.Store, func(change sandbox.Transaction) bool {
			if len(change.Events) > 0 && change.Events[0].Kind == sandbox.EventExecEnded {
				until(t, "its sandbox is gone", func() bool { left, _ := rt.List(context.Background()); return len(left) == 0 })
			}
			return false
		}}
	})
	res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "exit 3"}}, sandbox.Streams{})
	if err != nil || res.Code != 3 {
		t.Errorf("%+v, %v", res.Exit, err)
	}
}

// endlessRecord is a recorder that does not come to an end by itself.
type endlessRecord struct {
	lockedLedger
	begun chan sandbox.RecordOptions
}

func (e endlessRecord) Record(ctx context.Context, _ sandbox.ID, _ sandbox.Tree, opts sandbox.RecordOptions) ([]sandbox.ChangeRecord, []sandbox.FileChange, error) {
	e.begun <- opts
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

// TestRecordEndsWithCaller has the caller of an exec go while its changes are
// recorded. The record has a budget, and ends soon after; what the exec did is
// told.
func TestRecordEndsWithCaller(t *testing.T) {
	t.Parallel()
	begun := make(chan sandbox.RecordOptions, 1)
	m, _ := lightPlace(t, func(c *manager.Config, _ *runtimetest.Memory) { c.Recorder = endlessRecord{begun: begun} })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if opts := <-begun; opts.Budget.Time <= 0 || opts.Budget.Bytes <= 0 {
			t.Errorf("the record of an exec has the budget %+v", opts.Budget)
		}
		cancel()
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		res, err := m.Run(ctx, sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "exit 3"}, Track: sandbox.ModeExact}, sandbox.Streams{})
		if err != nil || res.Code != 3 || res.ChangesError == "" {
			t.Errorf("%+v, %q, %v", res.Exit, res.ChangesError, err)
		}
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the record goes on without its caller")
	}
}
