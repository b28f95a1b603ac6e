package bridge_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/sandbox"
)

// small is a budget that a file of more than 1 KiB is beyond.
var small = sandbox.ObserveOptions{Budget: sandbox.Budget{Bytes: sandbox.KiB}}

// unreadPlace is a tree with a book, in which nothing large is read.
type unreadPlace struct {
	*local
	book *bridge.Book
}

func newUnreadPlace(t *testing.T) *unreadPlace {
	t.Helper()
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	p := &unreadPlace{newLocal(t, tree), &bridge.Book{Ledger: &bridge.Memory{}, Packs: &bridge.Packs{Dir: filepath.Join(dir, "packs")}}}
	p.record(t, sandbox.RecordOptions{Baseline: true})
	return p
}

func (p *unreadPlace) record(t *testing.T, opts sandbox.RecordOptions) []sandbox.FileChange {
	t.Helper()
	opts.Budget = small.Budget
	records, err := p.book.Record(t.Context(), p, opts)
	if err != nil {
		t.Fatal(err)
	}
	return bridge.Shown(bridge.Merge(records))
}

// exec writes each of names with n bytes, and records that.
func (p *unreadPlace) exec(t *testing.T, n int, names ...string) (sandbox.ID, []sandbox.FileChange) {
	t.Helper()
	id := sandbox.NewID()
	p.t.Begin(string(id), false, false)
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(strings.Repeat("x", n)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.t.End(string(id), false)
	return id, p.record(t, sandbox.RecordOptions{Exec: id})
}

func (p *unreadPlace) undo(t *testing.T, id sandbox.ID, force bool) error {
	t.Helper()
	_, err := p.book.Undo(t.Context(), p, bridge.UndoOptions{Exec: id, Force: force})
	return err
}

// TestUnread looks at what is told of files that a record had no time to read.
func TestUnread(t *testing.T) {
	t.Parallel()
	p := newUnreadPlace(t)
	_, changes := p.exec(t, 2048, "0large")
	if len(changes) != 1 || changes[0].Op != sandbox.OpCreated || !changes[0].After.Unread() {
		t.Fatalf("%+v", changes)
	}
	b, err := json.Marshal(changes[0])
	if err != nil || !strings.Contains(string(b), `"unread":true`) || strings.Contains(string(b), "sha256") {
		t.Errorf("%s, %v", b, err)
	}
	if diffs, err := p.book.Diffs(t.Context(), changes); err != nil || diffs[0].Note != "not read" {
		t.Errorf("%+v, %v", diffs, err)
	}
	for _, exact := range []bool{true, false} {
		if again := p.record(t, sandbox.RecordOptions{ObserveOptions: sandbox.ObserveOptions{Exact: exact}}); len(again) != 0 {
			t.Errorf("nothing happened, and %+v was recorded", again)
		}
	}
	// A change that leaves no sign but the one that no program can take away.
	path := filepath.Join(p.dir, "0large")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // the file system's clock goes on
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteAt([]byte("y"), 7); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), os.Chtimes(path, st.ModTime(), st.ModTime())); err != nil {
		t.Fatal(err)
	}
	if changes = p.record(t, sandbox.RecordOptions{}); len(changes) != 1 || changes[0].Op != sandbox.OpModified {
		t.Errorf("a file was changed in secret, and %+v was recorded", changes)
	}
	// Without any time to read, an empty file is known all the same.
	for name, data := range map[string][]byte{"empty": nil, "full": []byte("x")} {
		if err := os.WriteFile(filepath.Join(p.dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		records, err := p.book.Record(t.Context(), p, sandbox.RecordOptions{ObserveOptions: sandbox.ObserveOptions{Budget: sandbox.Budget{Time: 1}}})
		if changes = bridge.Shown(bridge.Merge(records)); err != nil || len(changes) != 1 || changes[0].After.Unread() != (name == "full") {
			t.Errorf("%s: %+v, %v", name, changes, err)
		}
	}
	_, changes = p.exec(t, 10, "0large", "small")
	for _, c := range changes {
		if len(changes) != 2 || c.After.Unread() {
			t.Errorf("now that it is small: %+v", c)
		}
	}
}

// TestUndoUnread takes back what is certain, and refuses the rest by name.
func TestUndoUnread(t *testing.T) {
	t.Parallel()
	p := newUnreadPlace(t)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
	// What it made is as it was left.
	made, _ := p.exec(t, 2048, "made")
	if err := p.undo(t, made, false); err != nil || read("made") != "" {
		t.Errorf("what nobody touched since: %v", err)
	}
	// What it overwrote was read.
	p.exec(t, 10, "grown")
	grew, _ := p.exec(t, 2048, "grown")
	if err := p.undo(t, grew, false); err != nil || len(read("grown")) != 10 {
		t.Errorf("what was known before: %v", err)
	}
	// What it overwrote was not.
	p.exec(t, 2048, "large")
	shrank, _ := p.exec(t, 10, "large", "new")
	err := p.undo(t, shrank, false)
	if !errors.Is(err, sandbox.Conflict) || !strings.Contains(err.Error(), `"large"`) || !strings.Contains(sandbox.HintOf(err), "never read") {
		t.Errorf("what was never known: %v (%s)", err, sandbox.HintOf(err))
	}
	if err := p.undo(t, shrank, true); err != nil || len(read("large")) != 10 || read("new") != "" {
		t.Errorf("the rest: %v", err)
	}
	// What it left was touched later.
	later, _ := p.exec(t, 2048, "later")
	time.Sleep(20 * time.Millisecond) // the file system's clock goes on
	p.exec(t, 2048, "later")
	if err := p.undo(t, later, false); !errors.Is(err, sandbox.Conflict) || !strings.Contains(err.Error(), `"later"`) {
		t.Errorf("what was touched since: %v", err)
	}
}
