package monitor_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// TestBuiltinRules has a real program in a real container make each built-in rule
// fire, and resolve. Times are shorter than those that are built in, and the
// conditions are the same.
func TestBuiltinRules(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	dir := t.TempDir()
	store := openStore(t, dir)
	gate := func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Exec != nil && strings.Contains(strings.Join(q.Exec.Argv, " "), "forbidden") {
			return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Deny}}, nil
		}
		return manager.Unjudged(ctx, q)
	}
	m, err := manager.New(manager.Config{
		Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: gate, Holder: kit.Holder, Patience: enginetest.Patience, Store: store, StateID: store.ID(),
		LockDir: filepath.Join(dir, "locks"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close the manager: %v", err)
		}
	})
	var short []sandbox.AlertRule
	for _, r := range monitor.Builtin() {
		r.For = min(r.For, sandbox.Duration(time.Second))
		r.Hold, r.Given = 0, map[string]int{"for": 1, "hold": 1}
		short = append(short, r)
	}
	small, err := m.Open(t.Context(), manager.OpenOptions{Language: "shell", Limits: sandbox.Limits{
		CPUs: 0.25, Memory: 128 * sandbox.MiB, PIDs: 50, Workspace: 16 * sandbox.MiB,
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := watchAll(t, monitor.Config{Sandboxes: m, Store: store, Rules: short, Every: 250 * time.Millisecond})
	run := func(ctx context.Context, script string, timeout time.Duration) (sandbox.Result, error) {
		return small.Exec(ctx, sandbox.Run{Command: []string{"bash", "-c", script}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(timeout)}}, sandbox.Streams{})
	}
	// during runs a program until all rules fire, and ends it: then all resolve.
	during := func(script string, rules ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		over := make(chan error, 1)
		go func() {
			_, err := run(ctx, script, 5*time.Minute)
			over <- err
		}()
		for _, rule := range rules {
			n := w.await(t, rule, true)
			if n.Sandbox != small.ID() || n.Exec == "" || n.Sample.Memory == 0 {
				t.Errorf("%s: %+v", rule, n)
			}
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
		if _, err := run(t.Context(), "rm -rf /tmp/* /dev/shm/* /workspace/*", time.Minute); err != nil {
			t.Error(err)
		}
		for _, rule := range rules {
			w.await(t, rule, false)
		}
	}
	during("while :; do :; done & while :; do :; done", "cpu", "throttled")
	during("for i in {1..54}; do sleep 1000 & done; wait", "processes")
	during("head -c 60M /dev/zero > /tmp/f; head -c 50M /dev/zero > /dev/shm/f; sleep 1000", "memory")
	during("head -c 15500k /dev/zero > /workspace/f; sleep 1000", "workspace")
	during("tail /dev/zero; sleep 1000", "oom")

	// An exec that is older than its limit: its whole container is frozen, so that
	// nothing in it can end it.
	p := pauser(t, kit, small.ID())
	over := make(chan sandbox.Result, 1)
	go func() {
		res, err := run(t.Context(), "sleep 1000", 20*time.Second)
		if err != nil {
			t.Error(err)
		}
		over <- res
	}()
	w.running(t, m, small.ID())
	if err := p.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.await(t, "overdue", true); n.Figures.ExecOverdue <= 1 {
		t.Errorf("%+v", n.Figures)
	}
	if err := p.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res := <-over; res.Reason != sandbox.ReasonTimeout {
		t.Errorf("ended by %s: %s", res.Reason, res.Cause)
	}
	w.await(t, "overdue", false)

	if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Language: "shell"}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err := m.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"echo", "forbidden"}}, sandbox.Streams{})
		if !errors.Is(err, sandbox.Denied) {
			t.Fatalf("a forbidden run: %v", err)
		}
	}
	if n := w.await(t, "denials", true); n.Session != "work" || n.Figures.Denials < 5 {
		t.Errorf("%+v", n)
	}
	w.forget(time.Minute + time.Second)
	w.await(t, "denials", false)
	if err := m.RemoveSession(t.Context(), "work", true); err != nil {
		t.Error(err)
	}
	if err := small.Close(); err != nil {
		t.Error(err)
	}
}

// pauser finds the container of a sandbox.
func pauser(t *testing.T, kit *enginetest.Kit, id sandbox.ID) runtimes.Pauser {
	t.Helper()
	rt := kit.Runtime(t)
	all, err := rt.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		if h.ID != id || h.Kind != runtimes.KindSandbox {
			continue
		}
		inst, err := rt.Attach(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		return inst.(runtimes.Pauser)
	}
	t.Fatalf("no sandbox %s", id.Short())
	return nil
}

// TestActions ends what runs, freezes it, and destroys its sandbox.
func TestActions(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	dir := t.TempDir()
	store := openStore(t, dir)
	m, err := manager.New(manager.Config{
		Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: manager.Unjudged, Holder: kit.Holder, Patience: enginetest.Patience, Store: store, StateID: store.ID(),
		LockDir: filepath.Join(dir, "locks"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	act := func(action sandbox.AlertAction) sandbox.AlertRule {
		return sandbox.AlertRule{Name: string(action), When: `session == "` + string(action) + `" && execs > 0 && process_count > 1`, Action: action}
	}
	w := watchAll(t, monitor.Config{
		Sandboxes: m, Store: store, Rules: rules(act(sandbox.ActStopExec), act(sandbox.ActPause), act(sandbox.ActStopSandbox)), Every: 100 * time.Millisecond,
	})
	sleep := sandbox.Run{Command: []string{"sh", "-c", "sleep 1000 & wait"}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}}
	for _, action := range []sandbox.AlertAction{sandbox.ActStopExec, sandbox.ActStopSandbox} {
		name := string(action)
		if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: name, Language: "shell"}); err != nil {
			t.Fatal(err)
		}
		res, err := m.ExecIn(t.Context(), name, sleep, sandbox.Streams{})
		if err != nil || res.Reason != sandbox.ReasonCanceled || res.Cause != "alert "+name {
			t.Errorf("%s: %v, %s (%s)", name, err, res.Reason, res.Cause)
		}
		w.acted(t, store, name)
		again, err := m.ExecIn(t.Context(), name, sandbox.Run{Command: []string{"true"}}, sandbox.Streams{})
		if err != nil || again.Code != 0 || again.Replaced != (action == sandbox.ActStopSandbox) {
			t.Errorf("%s: afterwards %v, %+v", name, err, again.Exit)
		}
	}
	if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "pause", Language: "shell"}); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := m.ExecIn(ctx, "pause", sleep, sandbox.Streams{})
		over <- err
	}()
	w.acted(t, store, "pause")
	if v, err := m.Session(t.Context(), "pause"); err != nil || len(v.Sandboxes) != 1 || v.Sandboxes[0].State != sandbox.StatePaused {
		t.Errorf("%v, %+v", err, v.Sandboxes)
	}
	if err := m.ResumeSession(t.Context(), "pause"); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	for _, name := range []string{"stop-exec", "stop-sandbox", "pause"} {
		if err := m.RemoveSession(t.Context(), name, true); err != nil {
			t.Error(err)
		}
	}
}

// writer is told of what is written.
type writer func()

// Write implements [io.Writer].
func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

// TestActionElsewhere has one manager follow an exec, another follow its output,
// and a third raise the alert that ends it: all are told the cause, also of what
// runs in the background.
func TestActionElsewhere(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	dir := t.TempDir()
	store := openStore(t, dir)
	process := func() *manager.Manager {
		m, err := manager.New(manager.Config{
			Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: manager.Unjudged, Holder: kit.Holder, Patience: enginetest.Patience, Store: openStore(t, dir),
			StateID: store.ID(), LockDir: filepath.Join(dir, "locks"),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	runs, reads, watches := process(), process(), process()
	if _, err := runs.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Language: "shell"}); err != nil {
		t.Fatal(err)
	}
	talk := sandbox.Run{Command: []string{"sh", "-c", "while :; do echo up; sleep 0.1; done"}}
	behind, err := runs.StartIn(t.Context(), "work", talk, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	talk.Timeout = sandbox.Duration(5 * time.Minute)
	ends := make(chan sandbox.Exit, 3)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		res, err := runs.ExecIn(t.Context(), "work", talk, sandbox.Streams{})
		if err != nil {
			t.Error(err)
		}
		ends <- res.Exit
	})
	var ids []sandbox.ID
	for end := time.Now().Add(time.Minute); len(ids) < 2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		ids = nil
		infos, err := reads.Processes(t.Context(), "work")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range infos {
			ids = append(ids, p.ID)
		}
	}
	attached := make(chan bool, len(ids))
	for _, id := range ids {
		tasks.Go(func() {
			heard := sync.OnceFunc(func() { attached <- true })
			a, err := reads.AttachExec(t.Context(), "work", id, sandbox.AttachOptions{Follow: true}, writer(heard), nil)
			if err != nil || !a.Ended {
				t.Errorf("attached: %v, %+v", err, a)
			}
			ends <- a.Exit
		})
	}
	for range ids {
		<-attached
	}
	if err := watches.Reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The watcher follows no exec: it sees what they use.
	rule := sandbox.AlertRule{Name: "crowded", When: `session == "work" && process_count >= 2`, Action: sandbox.ActStopExec}
	w := watchAll(t, monitor.Config{Sandboxes: watches, Store: store, Rules: rules(rule), Every: 100 * time.Millisecond})
	w.acted(t, store, "work")
	tasks.Wait()
	if len(ids) != 2 || len(ends) != 3 {
		t.Errorf("%d execs, %d ends", len(ids), len(ends))
	}
	for range len(ends) {
		if e := <-ends; e.Reason != sandbox.ReasonCanceled || e.Cause != "alert crowded" {
			t.Errorf("ended by %s (%s)", e.Reason, e.Cause)
		}
	}
	kept, err := store.Execs(t.Context(), sandbox.ExecFilter{Session: "work"})
	if err != nil || len(kept) != 1 || kept[0].ID != behind.ID || kept[0].Exit.Cause != "alert crowded" {
		t.Errorf("in the background: %v, %+v", err, kept)
	}
	if err := runs.RemoveSession(t.Context(), "work", true); err != nil {
		t.Error(err)
	}
}

// watched are the news of a monitor, kept so that they can be awaited in any
// order.
type watched struct {
	news <-chan sandbox.AlertNews
	rest []sandbox.AlertNews

	mu    sync.Mutex
	ahead time.Duration // of the monitor's clock
}

func watchAll(t *testing.T, cfg monitor.Config) *watched {
	t.Helper()
	w := &watched{}
	cfg.Now = func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return time.Now().Add(w.ahead)
	}
	w.news, _ = start(t, cfg)
	return w
}

// forget lets so much time pass for the monitor.
func (w *watched) forget(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

// await returns the first news of a rule that was not awaited yet.
func (w *watched) await(t *testing.T, rule string, firing bool) sandbox.AlertNews {
	t.Helper()
	is := func(n sandbox.AlertNews) bool { return n.Rule == rule && n.Resolved.IsZero() == firing }
	for i, n := range w.rest {
		if is(n) {
			w.rest = append(w.rest[:i:i], w.rest[i+1:]...)
			return n
		}
	}
	late := time.After(5 * time.Minute) // a busy machine gives a sandbox less than its limit
	for {
		select {
		case n := <-w.news:
			if is(n) {
				return n
			}
			w.rest = append(w.rest, n)
		case <-late:
			t.Fatalf("rule %s: no news that it fires: %v; others: %+v", rule, firing, w.rest)
		}
	}
}

// running waits until an exec is under way in a sandbox.
func (w *watched) running(t *testing.T, m *manager.Manager, id sandbox.ID) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, l := range m.Live() {
			if s, err := m.Sample(t.Context(), id); l.ID == id && len(l.Execs) > 0 && err == nil && s.Processes > s.AgentProcesses {
				return
			}
		}
	}
	t.Fatal("nothing runs")
}

// acted waits until an action is written down, and checks that it went well.
func (w *watched) acted(t *testing.T, s *sqlite.Store, rule string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for e, err := range s.Events(t.Context(), sandbox.EventFilter{Kinds: []string{sandbox.EventAlertActed}, Session: rule}) {
			if err != nil || strings.Contains(string(e.Data), `"error"`) {
				t.Fatalf("%v, %s", err, e.Data)
			}
			return
		}
	}
	t.Fatalf("rule %s did not act", rule)
}
