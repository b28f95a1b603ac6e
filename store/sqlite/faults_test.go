package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/store/storetest"
)

// TestKilled kills a process that writes, at moments that nobody chose. What it
// had confirmed is there, each with its event, and the chain holds.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	confirmed := map[string]bool{}
	for round := range 12 {
		cmd, lines := start(t, dir, 1<<30)
		// A busy machine may take longer than that before anything is written.
		if round%2 == 0 && lines.Scan() {
			confirmed[lines.Text()] = true
		}
		timer := time.AfterFunc(time.Duration(30+rand.IntN(120))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			confirmed[lines.Text()] = true
		}
		_ = cmd.Wait() // it was killed
		timer.Stop()
	}
	if len(confirmed) == 0 {
		t.Fatal("the helper confirmed nothing")
	}
	s := open(t, dir)
	defer s.Close()
	list, err := s.Sessions(t.Context(), sandbox.SessionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]int{}
	for _, v := range list {
		there[v.Name]++
	}
	for e, err := range s.Events(t.Context(), sandbox.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		there[e.Session]++
	}
	for name := range confirmed {
		if there[name] != 2 {
			t.Errorf("%s was confirmed, and %d of its two records are there", name, there[name])
		}
	}
	for name, n := range there {
		if n != 2 {
			t.Errorf("half of %s is there", name)
		}
	}
	storetest.Sound(t, s)
	t.Logf("%d confirmed, %d there", len(confirmed), len(list))
}

// TestProcesses lets several processes make a folder and write to it at once.
func TestProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const processes, each = 5, 30
	var wg sync.WaitGroup
	for range processes {
		cmd, lines := start(t, dir, each)
		wg.Go(func() {
			n := 0
			for lines.Scan() {
				n++
			}
			if err := cmd.Wait(); err != nil || n != each {
				t.Errorf("a process confirmed %d of %d: %v", n, each, err)
			}
		})
	}
	wg.Wait()
	s := open(t, dir)
	defer s.Close()
	if r := storetest.Sound(t, s); r.Events != processes*each {
		t.Errorf("%d events", r.Events)
	}
}

// TestOpenedTwice opens one folder twice in this process, and once in another
// that comes and goes. What this one confirms afterwards is there for all.
func TestOpenedTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, dir)
	defer a.Close()
	storetest.Fill(t, a, 1)
	b := open(t, dir)
	defer b.Close()
	cmd, lines := start(t, dir, 1)
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	storetest.Fill(t, a, 1)
	c := open(t, dir)
	defer c.Close()
	if r := storetest.Sound(t, c); r.Events != 3 {
		t.Errorf("%d events", r.Events)
	}
}

// TestAltered alters the log behind the store's back in each way.
func TestAltered(t *testing.T) {
	t.Parallel()
	const copied = "time, kind, actor, session, sandbox, exec, data"
	for name, statements := range map[string][]string{
		"data":     {"UPDATE events SET data = '{}' WHERE seq = 50"},
		"time":     {"UPDATE events SET time = '2020-01-01T00:00:00Z' WHERE seq = 50"},
		"kind":     {"UPDATE events SET kind = 'other' WHERE seq = 1"},
		"actor":    {"UPDATE events SET actor = 'other' WHERE seq = 50"},
		"moved":    {"UPDATE events SET session = session || 'x', actor = 'me@her' WHERE seq = 3"},
		"hash":     {"UPDATE events SET hash = 'ff' WHERE seq = 100"},
		"removed":  {"DELETE FROM events WHERE seq = 50"},
		"first":    {"DELETE FROM events WHERE seq = 1"},
		"cut off":  {"DELETE FROM events WHERE seq > 90"},
		"renumber": {"DELETE FROM events WHERE seq > 90", "UPDATE sqlite_sequence SET seq = 90 WHERE name = 'events'"},
		"emptied":  {"DELETE FROM events"},
		"reordered": {"UPDATE events SET seq = -1 WHERE seq = 10", "UPDATE events SET seq = 10 WHERE seq = 11",
			"UPDATE events SET seq = 11 WHERE seq = -1"},
		"given away": {"UPDATE events SET owner = 'somebody' WHERE seq = 10"},
		"inserted":   {"INSERT INTO events SELECT 101, " + copied + ", prev, hash, owner FROM events WHERE seq = 100"},
		"squeezed in": {"UPDATE events SET seq = -seq WHERE seq > 50", "UPDATE events SET seq = 1 - seq WHERE seq < 0",
			"INSERT INTO events SELECT 51, " + copied + ", prev, hash, owner FROM events WHERE seq = 50"},
		"before":     {"INSERT INTO events SELECT 0, " + copied + ", prev, hash, owner FROM events WHERE seq = 1"},
		"checkpoint": {"DELETE FROM events WHERE seq <= 5", "INSERT INTO meta VALUES ('pruned_seq', '5'), ('pruned_hash', 'ff')"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			defer s.Close()
			storetest.Fill(t, s, 100)
			storetest.Sound(t, s)
			db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, text := range statements {
				if _, err := db.Exec(text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
			r, err := s.Verify(t.Context())
			if err != nil || r.OK || len(r.Problems) == 0 {
				t.Fatalf("not found: %+v, %v", r, err)
			}
			t.Logf("%+v", r.Problems[0])
		})
	}
}

// small makes a file system of its own, of a few pages.
func small(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("needs to mount a tmpfs, which root may: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// TestFullDisk fills the disk. What was confirmed stays, what was not is
// refused as Exhausted, and all goes on once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := small(t, "size=2m")
	s := open(t, dir)
	defer s.Close()
	confirmed := 0
	var err error
	for range 100_000 {
		err = s.Apply(t.Context(), sandbox.Transaction{CreateSession: &sandbox.Session{Name: fmt.Sprintf("s%d", confirmed)},
			Events: []sandbox.Event{{Kind: "k", Data: []byte(`{"text":"` + strings.Repeat("x", 4000) + `"}`)}}})
		if err != nil {
			break
		}
		confirmed++
	}
	if !errors.Is(err, sandbox.Exhausted) || sandbox.HintOf(err) == "" {
		t.Fatalf("a full disk gives %v", err)
	}
	list, err := s.Sessions(t.Context(), sandbox.SessionFilter{})
	if r := storetest.Sound(t, s); err != nil || len(list) != confirmed || r.Events != int64(confirmed) {
		t.Errorf("%d confirmed, %d sessions and %d events there: %v", confirmed, len(list), r.Events, err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), sandbox.Transaction{Events: []sandbox.Event{{Kind: "k"}}}); err != nil {
		t.Errorf("with room again: %v", err)
	}
	storetest.Sound(t, s)
}

// TestReadOnly takes the right to write away before and while a store is open.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir := small(t, "size=4m")
	s := open(t, dir)
	storetest.Fill(t, s, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Another test's helper that is just being forked holds our files for a
	// moment.
	err := error(syscall.EBUSY)
	for range 100 {
		err = syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=4m")
		if !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, opening := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if opening == nil {
		_ = got.Close()
		t.Fatal("a folder that cannot be written opens")
	}
	if k := sandbox.KindOf(opening); k != sandbox.Unavailable && k != sandbox.Denied || sandbox.HintOf(opening) == "" {
		t.Errorf("kind %v: %v", k, opening)
	}
}

// TestUnusable opens what is no state.
func TestUnusable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// broken makes a good state and spoils it.
	broken := func(spoil func(path string) error) string {
		dir := t.TempDir()
		s := open(t, dir)
		storetest.Fill(t, s, 300)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := spoil(filepath.Join(dir, "state.db")); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, c := range map[string]struct {
		dir  string
		kind sandbox.Kind
	}{
		"a file": {file, sandbox.Unavailable},
		"no database": {broken(func(p string) error {
			return os.WriteFile(p, []byte(strings.Repeat("this is no database ", 1000)), 0o600)
		}), sandbox.Internal},
		"cut off": {broken(func(p string) error { return os.Truncate(p, 8192) }), sandbox.Internal},
		"newer": {broken(func(p string) error {
			db, err := sql.Open("sqlite", "file:"+p)
			if err != nil {
				return err
			}
			_, err = db.Exec("PRAGMA user_version = 1000")
			return errors.Join(err, db.Close())
		}), sandbox.Unsupported},
	} {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: c.dir})
		if err == nil {
			// What is damaged further in is met by what reads it.
			err = s.Apply(t.Context(), sandbox.Transaction{Events: []sandbox.Event{{Kind: "k"}}})
			_ = s.Close()
		}
		if !errors.Is(err, c.kind) || sandbox.HintOf(err) == "" {
			t.Errorf("%s: error %v (hint %q), not of kind %v", name, err, sandbox.HintOf(err), c.kind)
		}
	}
}

// TestPrivate checks that nobody else can read the state.
func TestPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir)
	defer s.Close()
	storetest.Fill(t, s, 10)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}
