package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
	"github.com/caisson-dev/caisson/store/sqlite"
)

func kEvents(n int) sandbox.Transaction {
	var c sandbox.Transaction
	for i := range n {
		c.Events = append(c.Events, sandbox.Event{Time: time.Unix(int64(i+1), 0), Kind: "k", Actor: "a"})
	}
	return c
}

func mustApply(t *testing.T, s store.Store, c sandbox.Transaction) {
	t.Helper()
	if err := s.Apply(t.Context(), c); err != nil {
		t.Fatalf("apply: %v", err)
	}
}

func openDir(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// edit runs statements on a state folder's database, as a stranger would.
func edit(t *testing.T, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range statements {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// problems are those that a new look at a state folder finds.
func problems(t *testing.T, dir string) []sandbox.AuditProblem {
	t.Helper()
	s := openDir(t, dir)
	defer s.Close()
	r, err := s.Verify(t.Context())
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return r.Problems
}

// TestOpenTwice opens a folder twice in one process: an opening that closes a
// descriptor of the database would drop the locks of the first, and another
// process would take away the write-ahead log that it goes on writing to.
func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	a := openDir(t, dir)
	mustApply(t, a, kEvents(1))
	b := openDir(t, dir)
	defer b.Close()
	wal := filepath.Join(dir, "state.db-wal")
	before, err := os.Stat(wal)
	if err != nil {
		t.Fatal(err)
	}
	cmd, out := start(t, dir, 1)
	for out.Scan() {
	}
	_ = cmd.Wait()
	after, err := os.Stat(wal)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("another process removed the log that this one writes to: %v", err)
	}
	mustApply(t, a, kEvents(1))
}

func TestTailCutAndRegrown(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	mustApply(t, s, kEvents(10))
	_ = s.Close()
	edit(t, dir, "DELETE FROM events WHERE seq > 6", "UPDATE sqlite_sequence SET seq = 6 WHERE name = 'events'")
	s = openDir(t, dir)
	for range 8 {
		mustApply(t, s, kEvents(1))
	}
	_ = s.Close()
	if p := problems(t, dir); len(p) == 0 {
		t.Error("a log that was cut, and went on, verifies")
	}
}

// TestCorrupt opens files that are no databases: the hint names what is to be
// moved aside, and no more.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(dir string) error{
		"state.db": func(dir string) error {
			_, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
			return err
		},
		"ledger.db": func(dir string) error {
			_, err := sqlite.OpenLedger(t.Context(), filepath.Join(dir, "ledger.db"))
			return err
		},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		err := open(dir)
		if hint := sandbox.HintOf(err); !errors.Is(err, sandbox.Internal) || !strings.Contains(hint, name) || !strings.Contains(hint, dir) ||
			strings.Contains(hint, "state.db") != (name == "state.db") {
			t.Errorf("%s: %v, hint %q", name, err, hint)
		}
	}
}

func TestForgedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	mustApply(t, s, kEvents(10))
	_ = s.Close()
	edit(t, dir, "INSERT OR REPLACE INTO meta SELECT 'pruned_seq', seq FROM events WHERE seq = 4",
		"INSERT OR REPLACE INTO meta SELECT 'pruned_hash', hash FROM events WHERE seq = 4", "DELETE FROM events WHERE seq <= 4")
	if p := problems(t, dir); len(p) == 0 {
		t.Error("a front that was removed without a pruning verifies")
	}
}

func TestInvalidData(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	c := kEvents(1)
	for _, bad := range []string{`{"a"`, `[1]`, `7`} {
		c.Events[0].Data = json.RawMessage(bad)
		if err := s.Apply(t.Context(), c); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("data %s: %v", bad, err)
		}
	}
	c.Events[0].Kind, c.Events[0].Data = "", nil
	if err := s.Apply(t.Context(), c); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("no kind: %v", err)
	}
}

func TestDataIsPrintedAsItIsHashed(t *testing.T) {
	s := openDir(t, t.TempDir())
	c := kEvents(1)
	c.Events[0].Data = json.RawMessage(`{ "code": "a < b && c > d" }`)
	mustApply(t, s, c)
	for e, err := range s.Events(t.Context(), sandbox.EventFilter{}) {
		b, jsonErr := json.Marshal(e)
		var back sandbox.Event
		if err := errors.Join(err, jsonErr, json.Unmarshal(b, &back)); err != nil || store.Hash(back) != e.Hash {
			t.Errorf("what is printed has another hash: %s %v", b, err)
		}
	}
}

func TestAnotherSessionOfTheName(t *testing.T) {
	s := openDir(t, t.TempDir())
	mustApply(t, s, sandbox.Transaction{CreateSession: &sandbox.Session{ID: "1", Name: "n"}})
	mustApply(t, s, sandbox.Transaction{DeleteSession: "n"})
	mustApply(t, s, sandbox.Transaction{CreateSession: &sandbox.Session{ID: "2", Name: "n"}})
	if err := s.Apply(t.Context(), sandbox.Transaction{PutSession: &sandbox.Session{ID: "1", Name: "n"}}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("the new session was overwritten by the old: %v", err)
	}
}

func TestLeastRecords(t *testing.T) {
	s := openDir(t, t.TempDir())
	mustApply(t, s, sandbox.Transaction{CreateSession: &sandbox.Session{ID: "1", Name: "n"},
		PutSandboxes: []sandbox.SandboxRecord{{ID: "b", Session: "n"}}, PutExecs: []sandbox.ExecRecord{{ID: "e", Session: "n"}}})
}

func TestPathsWithSigns(t *testing.T) {
	for _, name := range []string{"a b", "a?b", "a%20b", "a#b", "é"} {
		dir := filepath.Join(t.TempDir(), name)
		s := openDir(t, dir)
		mustApply(t, s, kEvents(1))
		if info, err := os.Stat(filepath.Join(dir, "state.db")); err != nil || info.Size() == 0 {
			t.Errorf("%q: the state is elsewhere: %v, %v", name, info, err)
		}
		_ = s.Close()
	}
}

// TestGroupOnFullDisk has one caller ask for more than there is room for, in
// one group with others: those have room.
func TestGroupOnFullDisk(t *testing.T) {
	dir := small(t, "size=8m")
	s := openDir(t, dir)
	mustApply(t, s, kEvents(1))
	huge := kEvents(1)
	huge.Events[0].Data = json.RawMessage(`{"a":"` + strings.Repeat("x", 12<<20) + `"}`)
	type outcome struct {
		huge bool
		err  error
	}
	outcomes := make(chan outcome, 64)
	for i := range 32 {
		go func() {
			if i%8 == 3 {
				outcomes <- outcome{true, s.Apply(t.Context(), huge)}
			} else {
				outcomes <- outcome{false, s.Apply(t.Context(), kEvents(1))}
			}
		}()
	}
	for range 32 {
		o := <-outcomes
		if o.huge && !errors.Is(o.err, sandbox.Exhausted) {
			t.Errorf("the change without room: %v (%v)", o.err, sandbox.KindOf(o.err))
		}
		if !o.huge && o.err != nil {
			t.Errorf("a small change beside it: %v (%v)", o.err, sandbox.KindOf(o.err))
		}
	}
}

// TestGivenUpInTheQueue gives a change up whose turn has not come, since
// another process holds the lock: it is never made.
func TestGivenUpInTheQueue(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	mustApply(t, s, kEvents(1))
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	go func() { first <- s.Apply(t.Context(), kEvents(1)) }()
	time.Sleep(50 * time.Millisecond) // it has its turn, and waits for the lock
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	second := s.Apply(ctx, kEvents(1))
	if !errors.Is(second, context.DeadlineExceeded) {
		t.Errorf("given up: %v", second)
	}
	if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Errorf("first: %v", err)
	}
	mustApply(t, s, kEvents(1))
	if r, err := s.Verify(t.Context()); err != nil || r.Last != 3 || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestPruneAfterClose(t *testing.T) {
	s := openDir(t, t.TempDir())
	mustApply(t, s, kEvents(3))
	_ = s.Close()
	if _, err := s.Prune(t.Context(), sandbox.Retention{Bytes: 1}); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("prune: %v", err)
	}
	if _, err := s.Verify(t.Context()); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("verify: %v", err)
	}
	if _, err := s.Sessions(t.Context(), sandbox.SessionFilter{}); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("sessions: %v", err)
	}
}

// TestFilterBounds has times that lie closer together than SQLite can tell.
func TestFilterBounds(t *testing.T) {
	s := openDir(t, t.TempDir())
	at := time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)
	var c sandbox.Transaction
	for i := range 4 {
		c.Events = append(c.Events, sandbox.Event{Kind: "k", Time: at.Add(time.Duration(i))})
	}
	mustApply(t, s, c)
	n := 0
	for e, err := range s.Events(t.Context(), sandbox.EventFilter{Since: at.Add(1), Until: at.Add(3)}) {
		if err != nil || e.Seq < 2 || e.Seq > 3 {
			t.Errorf("%v %v", e.Seq, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d events", n)
	}
}

// TestGivenUpInTheMiddle gives reads and takes up at every moment of them. None
// holds the state afterwards: another process writes, and what it wrote is read.
func TestGivenUpInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, other := openDir(t, dir), openDir(t, dir)
	var letters sandbox.Transaction
	for range 200 {
		letters.PostLetters = append(letters.PostLetters, sandbox.Letter{To: "hook", Body: []byte("{}"), Posted: time.Now()})
	}
	if err := s.Apply(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Microsecond)
		_, _ = s.TakeLetters(ctx, "hook", time.Now().Add(time.Hour), time.Now(), 200)
		_, _ = s.Alerts(ctx, sandbox.AlertFilter{})
		cancel()
	}
	a := sandbox.Alert{ID: sandbox.NewID(), Rule: "full", Severity: sandbox.High, Fired: time.Now()}
	if err := other.Apply(t.Context(), sandbox.Transaction{FireAlert: &a}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 { // of each of its connections
		all.Go(func() {
			if got, err := s.Alerts(t.Context(), sandbox.AlertFilter{}); err != nil || len(got) != 1 {
				t.Errorf("%d alerts, %v", len(got), err)
			}
		})
	}
	all.Wait()
}
