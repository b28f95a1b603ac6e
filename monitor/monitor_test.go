package monitor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// boxes are sandboxes of a test, whose samples it sets.
type boxes struct {
	mu    sync.Mutex
	live  []sandbox.LiveSandbox
	next  func(sandbox.ID) sandbox.Sample
	acted []string
}

func (b *boxes) Live() []sandbox.LiveSandbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sandbox.LiveSandbox(nil), b.live...)
}

func (b *boxes) Sample(_ context.Context, id sandbox.ID) (sandbox.Sample, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		return sandbox.Sample{}, sandbox.Errorf(sandbox.Unavailable, "gone")
	}
	return b.next(id), nil
}

func (b *boxes) Act(_ context.Context, id sandbox.ID, a sandbox.AlertAction, cause string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acted = append(b.acted, string(a)+" "+cause)
	return nil
}

func (b *boxes) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// memory is a sample with so much of its memory used.
func memory(percent float64) func(sandbox.ID) sandbox.Sample {
	return func(sandbox.ID) sandbox.Sample {
		return sandbox.Sample{Time: time.Now(), Memory: sandbox.Bytes(percent * 10), MemoryCached: 1000, MemoryLimit: 1000, Cores: 2}
	}
}

func openStore(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// start runs a monitor until the test's end, and returns its news.
func start(t *testing.T, cfg monitor.Config) (news <-chan sandbox.AlertNews, stop func()) {
	t.Helper()
	if cfg.Every == 0 {
		cfg.Every = 50 * time.Millisecond
	}
	m, err := monitor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan sandbox.AlertNews, 100)
	seq := m.Subscribe(context.Background())
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	tasks.Go(func() { m.Run(ctx) })
	tasks.Go(func() {
		for n := range seq {
			all <- n
		}
	})
	stop = sync.OnceFunc(func() { cancel(); tasks.Wait() })
	t.Cleanup(stop)
	return all, stop
}

// await returns the next news of a rule.
func await(t *testing.T, news <-chan sandbox.AlertNews, rule string, firing bool) sandbox.AlertNews {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case n := <-news:
			if n.Rule == rule && n.Resolved.IsZero() == firing {
				return n
			}
		case <-late:
			t.Fatalf("rule %s: no news that it fires: %v", rule, firing)
		}
	}
}

// rules are the built-in ones off, and those given.
func rules(given ...sandbox.AlertRule) []sandbox.AlertRule {
	for _, r := range monitor.Builtin() {
		given = append(given, sandbox.AlertRule{Name: r.Name, Off: true, Given: map[string]int{"off": 1}})
	}
	return given
}

func TestEpisodes(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	b := &boxes{next: memory(95)}
	l := sandbox.LiveSandbox{ID: sandbox.NewID(), Session: "work", Owner: "ann", Labels: sandbox.Labels{"a": "b"}, Language: "python", Execs: []sandbox.LiveExec{{ID: sandbox.NewID(), Started: time.Now()}}}
	b.live = []sandbox.LiveSandbox{l}
	rule := sandbox.AlertRule{
		Name: "full", When: `memory > 90 && session == "work" && language == "python" && execs == 1`, Clear: "memory < 50", Severity: sandbox.Critical,
		Labels: map[string]string{"team": "x"}, Action: sandbox.ActStopExec,
	}
	posted := make(chan struct{}, 100)
	news, stop := start(t, monitor.Config{Sandboxes: b, Store: store, Rules: rules(rule), Actor: "me", Receivers: []string{"hook"}, Posted: func() { posted <- struct{}{} }})
	fired := await(t, news, "full", true)
	if fired.Sandbox != l.ID || fired.Session != "work" || fired.Exec != l.Execs[0].ID || fired.Owner != "ann" || fired.Sample.Memory != 950 || fired.Figures.Memory != 95 || fired.Labels["team"] != "x" || fired.Severity != sandbox.Critical {
		t.Errorf("fired: %+v", fired)
	}
	b.set(func() { b.next = memory(70) }) // between the two: hysteresis
	seen := 0
	for seen < 3 {
		r, err := store.Readings(t.Context(), sandbox.ReadingFilter{Live: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(r) == 1 && r[0].Now.Memory == 70 && r[0].Owner == "ann" && r[0].Labels["a"] == "b" {
			seen++
		}
		time.Sleep(20 * time.Millisecond)
	}
	if firing, err := store.Alerts(t.Context(), sandbox.AlertFilter{Firing: true}); err != nil || len(firing) != 1 {
		t.Errorf("between when and clear: %v, %+v", err, firing)
	}
	b.set(func() { b.next = memory(10) })
	if resolved := await(t, news, "full", false); resolved.ID != fired.ID || resolved.Why != "" {
		t.Errorf("resolved: %+v", resolved)
	}
	b.set(func() { b.next = memory(99) })
	if again := await(t, news, "full", true); again.ID == fired.ID {
		t.Error("a new episode is the old alert")
	}
	stop()
	// Once for each episode: in the audit, the outbox, and what was done.
	counts := map[string]int{}
	for e, err := range store.Events(t.Context(), sandbox.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		counts[e.Kind]++
		if e.Actor != "me" || e.Session != "work" {
			t.Errorf("event %+v", e)
		}
	}
	if counts[sandbox.EventAlertFired] != 2 || counts[sandbox.EventAlertResolved] != 1 || counts[sandbox.EventAlertActed] != 2 {
		t.Errorf("events: %v", counts)
	}
	letters, err := store.TakeLetters(t.Context(), "hook", time.Now(), time.Now(), 10)
	if err != nil || len(letters) != 3 || len(posted) != 3 || !strings.Contains(string(letters[0].Body), string(fired.ID)) {
		t.Errorf("letters: %v, %d, posted %d", err, len(letters), len(posted))
	}
	if len(b.acted) != 2 || b.acted[0] != "stop-exec alert full" {
		t.Errorf("acted: %q", b.acted)
	}
}

// TestFor waits until a condition has held for long enough, at every sample.
func TestFor(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	n, at := 0, time.Now()
	b := &boxes{live: []sandbox.LiveSandbox{{ID: sandbox.NewID()}}}
	b.next = func(id sandbox.ID) sandbox.Sample { // each sample a second after the one before
		n++
		s := memory(95)(id)
		if s.Time = at.Add(time.Duration(n) * time.Second); n == 3 {
			s.Memory = 0
		}
		return s
	}
	news, _ := start(t, monitor.Config{Sandboxes: b, Store: store, Rules: rules(sandbox.AlertRule{Name: "long", When: "memory > 90", For: sandbox.Duration(3 * time.Second)})})
	fired := await(t, news, "long", true)
	if got := fired.Sample.Time.Sub(at); got != 7*time.Second { // clear at 3, held from 4 on
		t.Errorf("it fired with the sample of second %v", got)
	}
}

// TestTwoProcesses sample the same sandbox: one fires, one resolves.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := sandbox.LiveSandbox{ID: sandbox.NewID(), Session: "work"}
	rule := rules(sandbox.AlertRule{Name: "full", When: "memory > 90"})
	b := &boxes{live: []sandbox.LiveSandbox{l}, next: memory(95)}
	one, two := openStore(t, dir), openStore(t, dir)
	newsOne, stopOne := start(t, monitor.Config{Sandboxes: b, Store: one, Rules: rule})
	fired := await(t, newsOne, "full", true)
	newsTwo, _ := start(t, monitor.Config{Sandboxes: b, Store: two, Rules: rule})
	stopOne() // its process ends; the session's sandbox goes on
	b.set(func() { b.next = memory(1) })
	// The other one has to have seen that it fires: only then it resolves it.
	for {
		b.set(func() { b.next = memory(95) })
		time.Sleep(150 * time.Millisecond)
		b.set(func() { b.next = memory(1) })
		select {
		case n := <-newsTwo:
			if n.ID == fired.ID && !n.Resolved.IsZero() {
				all, err := one.Alerts(t.Context(), sandbox.AlertFilter{Rule: "full"})
				if err != nil || len(all) == 0 || all[len(all)-1].ID != fired.ID || all[len(all)-1].Resolved.IsZero() {
					t.Errorf("%v, %+v", err, all)
				}
				return
			}
			t.Errorf("a second alert of one episode: %+v", n)
			return
		case <-time.After(200 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("never resolved")
		}
	}
}

// TestGone keeps what a one-shot used, and resolves what fired for it.
func TestGone(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	b := &boxes{live: []sandbox.LiveSandbox{{ID: sandbox.NewID()}}, next: memory(95)}
	news, _ := start(t, monitor.Config{Sandboxes: b, Store: store, Rules: rules(sandbox.AlertRule{Name: "full", When: "memory > 90"})})
	await(t, news, "full", true)
	b.set(func() { b.next = nil }) // it dies between two samples
	b.set(func() { b.live = nil })
	if n := await(t, news, "full", false); n.Why != "its sandbox is gone" {
		t.Errorf("resolved: %+v", n)
	}
	for {
		list, err := store.Readings(t.Context(), sandbox.ReadingFilter{})
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		if r := list[0]; !r.Ended.IsZero() {
			if r.Peak.Memory != 95 || r.Mean.Memory != 95 || r.Samples < 1 {
				t.Errorf("%+v", r)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestDenials counts refused runs, also where there is no sandbox.
func TestDenials(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	news, _ := start(t, monitor.Config{Sandboxes: &boxes{}, Store: store})
	var c sandbox.Transaction
	for range 5 {
		c.Events = append(c.Events, sandbox.Event{Time: time.Now(), Kind: sandbox.EventExecDenied, Session: "work"})
	}
	if err := store.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if n := await(t, news, "denials", true); n.Session != "work" || n.Sandbox != "" || n.Figures.Denials != 5 {
		t.Errorf("%+v", n)
	}
}

// TestRefusedConnections fires at a burst of connections that were refused.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	l := sandbox.LiveSandbox{ID: sandbox.NewID(), Refused: 19}
	b := &boxes{live: []sandbox.LiveSandbox{l}, next: memory(1)}
	store := openStore(t, t.TempDir())
	news, _ := start(t, monitor.Config{Sandboxes: b, Store: store})
	for list := []sandbox.Reading(nil); len(list) == 0 || list[0].Samples < 2; {
		var err error
		if list, err = store.Readings(t.Context(), sandbox.ReadingFilter{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.set(func() { b.live = []sandbox.LiveSandbox{{ID: l.ID, Refused: 20}} })
	if n := await(t, news, "connections", true); n.Sandbox != l.ID || n.Figures.RefusedConnections != 20 {
		t.Errorf("%+v", n)
	}
	b.set(func() { b.live = []sandbox.LiveSandbox{{ID: l.ID}} })
	await(t, news, "connections", false)
}

func TestRefusedRules(t *testing.T) {
	t.Parallel()
	given := map[string]int{"": 3, "when": 4, "clear": 5, "for": 6, "action": 7}
	for text, r := range map[string]sandbox.AlertRule{
		"line 4: rule x: when":    {Name: "x", When: "cpuu > 80"},
		"line 4: rule x: when: e": {Name: "x", When: "cpu"},
		"line 4: rule x: it has":  {Name: "x"},
		"line 5: rule x: clear":   {Name: "x", When: "cpu > 1", Clear: "cpu <"},
		"line 6: rule x: for":     {Name: "x", When: "cpu > 1", For: sandbox.Duration(2 * time.Hour)},
		"line 7: rule x: action":  {Name: "x", When: "cpu > 1", Action: "explode"},
		"line 7: rule cpu: actio": {Name: "cpu", Action: "explode"},
	} {
		r.Given = given
		if r.Name == "cpu" {
			r.Given = map[string]int{"": 3, "action": 7}
		}
		_, err := monitor.New(monitor.Config{Sandboxes: &boxes{}, Store: openStore(t, t.TempDir()), Rules: []sandbox.AlertRule{r}})
		bad, ok := errors.AsType[*monitor.RuleError](err)
		if !ok || !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		line, want, _ := strings.Cut(strings.TrimPrefix(text, "line "), ": ")
		if string(rune('0'+bad.Line)) != line || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("line %d: %v, want %s", bad.Line, err, text)
		}
	}
}
