package bridge_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/sandbox"
)

// kept is how many bytes a folder of packs has.
func kept(t *testing.T, dir string) int64 {
	t.Helper()
	var n int64
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// TestKeepIsBounded writes more than is kept, in one exec and in many: the store
// stays below its bound, the records are whole, and an undo says what it lacks.
func TestKeepIsBounded(t *testing.T) {
	t.Parallel()
	const most, size = 1 << 20, 100 << 10
	dir := t.TempDir()
	tree, packs := filepath.Join(dir, "tree"), filepath.Join(dir, "packs")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	l := newLocal(t, tree)
	book := &bridge.Book{Ledger: &bridge.Memory{}, Packs: &bridge.Packs{Dir: packs, Most: most, MostFile: 256 << 10}}
	if _, err := book.Record(t.Context(), l, sandbox.RecordOptions{Baseline: true}); err != nil {
		t.Fatal(err)
	}
	exec := func(do func(write func(name string, b []byte))) sandbox.ChangeRecord {
		t.Helper()
		id := sandbox.NewID()
		l.t.Begin(string(id), false, false)
		do(func(name string, b []byte) {
			if err := os.WriteFile(filepath.Join(tree, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		})
		l.t.End(string(id), false)
		made, err := book.Record(t.Context(), l, sandbox.RecordOptions{Exec: id})
		if err != nil || len(made) != 1 {
			t.Fatalf("%d records, %v", len(made), err)
		}
		if n := kept(t, packs); n > most {
			t.Errorf("%d bytes are kept, of %d", n, most)
		}
		return made[0]
	}
	// The same content fifty times is kept once.
	same := exec(func(write func(string, []byte)) {
		for i := range 50 {
			write(fmt.Sprintf("same%d", i), bytes.Repeat([]byte("s"), size))
		}
	})
	if n := kept(t, packs); n != size || len(bridge.Shown(same.Changes)) != 50 {
		t.Errorf("%d bytes are kept of one content, %d changes", n, len(same.Changes))
	}
	// Thirty contents at once are more than fits.
	first := exec(func(write func(string, []byte)) {
		for i := range 30 {
			write(fmt.Sprintf("f%02d", i), bytes.Repeat([]byte{byte(i), 'x'}, size/2))
		}
		write("large", make([]byte, 300<<10))
	})
	for _, c := range first.Changes {
		if c.Path != "." && (len(c.After.SHA256) != 64 || c.After.Size < size) {
			t.Errorf("%+v", c)
		}
	}
	second := exec(func(write func(string, []byte)) {
		for i := range 30 {
			write(fmt.Sprintf("f%02d", i), []byte("short"))
		}
	})
	_, err := book.Undo(t.Context(), l, bridge.UndoOptions{Exec: second.Exec})
	if !errors.Is(err, sandbox.Conflict) || !strings.Contains(err.Error(), "not kept") {
		t.Fatalf("an undo without its contents: %v", err)
	}
	u, err := book.Undo(t.Context(), l, bridge.UndoOptions{Exec: second.Exec, Force: true})
	if err != nil || len(u.Skipped) == 0 || len(u.Skipped) == 30 {
		t.Fatalf("by force: %d skipped, %v", len(u.Skipped), err)
	}
	back := 0
	for i := range 30 {
		if b, err := os.ReadFile(filepath.Join(tree, fmt.Sprintf("f%02d", i))); err == nil && bytes.Equal(b, bytes.Repeat([]byte{byte(i), 'x'}, size/2)) {
			back++
		}
	}
	if back != 30-len(u.Skipped) {
		t.Errorf("%d are back, %d were skipped", back, len(u.Skipped))
	}
}

// full is a ledger whose disk is full.
type full struct{ bridge.Ledger }

func (full) Commit(context.Context, *bridge.Entry) error { return errors.New("no room") }

// TestPacksUnknown keeps contents for a ledger that cannot be written: they go
// again. So do those of one who died before it wrote to its ledger.
func TestPacksUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, packs := filepath.Join(dir, "tree"), filepath.Join(dir, "packs")
	dead, alive := filepath.Join(packs, "new-123"), filepath.Join(packs, string(sandbox.NewID()))
	old := time.Now().Add(-2 * time.Hour)
	err := errors.Join(os.Mkdir(tree, 0o755), os.Mkdir(packs, 0o700), os.WriteFile(dead, nil, 0o600), os.Chtimes(dead, old, old), os.WriteFile(alive, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	l, ledger := newLocal(t, tree), &bridge.Memory{}
	record := func(to bridge.Ledger, size int) error {
		t.Helper()
		if err := os.WriteFile(filepath.Join(tree, "f"), bytes.Repeat([]byte("x"), size), 0o644); err != nil {
			t.Fatal(err)
		}
		book := &bridge.Book{Ledger: to, Packs: &bridge.Packs{Dir: packs}}
		_, err := book.Record(t.Context(), l, sandbox.RecordOptions{ObserveOptions: sandbox.ObserveOptions{Exact: true}})
		return err
	}
	for i := range 3 { // one of them writes before it has all
		if err := record(full{ledger}, i*4<<20+100_000); err == nil {
			t.Fatal("it was written down")
		}
	}
	if list, err := os.ReadDir(packs); err != nil || len(list) != 1 || kept(t, packs) != 0 {
		t.Errorf("%v, %d bytes, %v", list, kept(t, packs), err)
	}
	if err := record(ledger, 100_000); err != nil || kept(t, packs) != 100_000 {
		t.Errorf("%d bytes, %v", kept(t, packs), err)
	}
	for _, f := range []string{dead, alive} {
		if _, err := os.Stat(f); (err == nil) != (f == alive) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestUndoEmptyFile takes back what was done to empty files: there is nothing to
// keep of them that could be lost.
func TestUndoEmptyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, packs := filepath.Join(dir, "tree"), filepath.Join(dir, "packs")
	names := []string{filepath.Join(tree, "gone"), filepath.Join(tree, "written")}
	err := os.Mkdir(tree, 0o755)
	for _, name := range names {
		err = errors.Join(err, os.WriteFile(name, nil, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	l := newLocal(t, tree)
	book := &bridge.Book{Ledger: &bridge.Memory{}, Packs: &bridge.Packs{Dir: packs}}
	if _, err := book.Record(t.Context(), l, sandbox.RecordOptions{Baseline: true}); err != nil {
		t.Fatal(err)
	}
	id := sandbox.NewID()
	l.t.Begin(string(id), false, false)
	err = errors.Join(os.Remove(names[0]), os.WriteFile(names[1], []byte("text"), 0o644))
	l.t.End(string(id), false)
	if _, no := book.Record(t.Context(), l, sandbox.RecordOptions{Exec: id}); err != nil || no != nil {
		t.Fatal(err, no)
	}
	if err := os.RemoveAll(packs); err != nil { // as where it grew beyond its bound
		t.Fatal(err)
	}
	if _, err := book.Undo(t.Context(), l, bridge.UndoOptions{Exec: id}); err != nil {
		t.Error(err)
	}
	for _, name := range names {
		if b, err := os.ReadFile(name); err != nil || len(b) > 0 {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// TestUndoMeetsLink has a folder become a link to the outside before an undo.
// Nothing outside is touched.
func TestUndoMeetsLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, out := filepath.Join(dir, "tree"), filepath.Join(dir, "out")
	for _, d := range []string{tree, out, filepath.Join(tree, "d")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(tree, "d/f"), filepath.Join(out, "f")} {
		if err := os.WriteFile(f, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := newLocal(t, tree)
	book := &bridge.Book{Ledger: &bridge.Memory{}, Packs: &bridge.Packs{Dir: filepath.Join(dir, "packs")}}
	if _, err := book.Record(t.Context(), l, sandbox.RecordOptions{Baseline: true}); err != nil {
		t.Fatal(err)
	}
	id := sandbox.NewID()
	l.t.Begin(string(id), false, false)
	err := errors.Join(os.WriteFile(filepath.Join(tree, "d/f"), []byte("after"), 0o644), os.WriteFile(filepath.Join(tree, "d/new"), nil, 0o644))
	l.t.End(string(id), false)
	if _, no := book.Record(t.Context(), l, sandbox.RecordOptions{Exec: id}); err != nil || no != nil {
		t.Fatal(err, no)
	}
	swap := func() error {
		return errors.Join(os.Rename(filepath.Join(tree, "d"), filepath.Join(tree, "was")), os.Symlink("../out", filepath.Join(tree, "d")))
	}
	// Behind the book's back: between its look and what it makes.
	l.restore = swap
	if _, err := book.Undo(t.Context(), l, bridge.UndoOptions{Exec: id}); err != nil {
		t.Logf("in its face: %v", err) // or the link was replaced by the folder that belongs there
	}
	untouched := func() {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(out, "f")); err != nil || string(b) != "before" {
			t.Errorf("outside: %q, %v", b, err)
		}
		if list, err := os.ReadDir(out); err != nil || len(list) != 1 {
			t.Errorf("outside holds %v, %v", list, err)
		}
	}
	untouched()
	l.restore = nil
	// The book knows of the link by now: it refuses, and by force replaces it.
	if _, err := book.Undo(t.Context(), l, bridge.UndoOptions{Exec: id}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("what was touched later: %v", err)
	}
	if _, err := book.Undo(t.Context(), l, bridge.UndoOptions{Exec: id, Force: true}); err != nil {
		t.Logf("by force: %v", err)
	}
	untouched()
}

// TestFewPacks keeps many small contents, from two who do not know of each other:
// in a few files, and each can be read.
func TestFewPacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	packs, ledger := filepath.Join(dir, "packs"), &bridge.Memory{}
	var both sync.WaitGroup
	for who := range 2 {
		tree := filepath.Join(dir, fmt.Sprint(who))
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		l := newLocal(t, tree)
		book := &bridge.Book{Ledger: ledger, Packs: &bridge.Packs{Dir: packs}}
		both.Go(func() {
			for i := range 60 {
				text := fmt.Sprintf("content %d of %d", i, who)
				if err := os.WriteFile(filepath.Join(tree, fmt.Sprintf("f%d-%d", who, i)), []byte(text), 0o644); err != nil {
					t.Error(err)
				}
				if _, err := book.Record(t.Context(), l, sandbox.RecordOptions{ObserveOptions: sandbox.ObserveOptions{Exact: true}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	book := &bridge.Book{Ledger: ledger, Packs: &bridge.Packs{Dir: packs}}
	for who := range 2 {
		for i := range 60 {
			text := fmt.Sprintf("content %d of %d", i, who)
			sum := sha256.Sum256([]byte(text))
			if got, err := book.Content(t.Context(), hex.EncodeToString(sum[:])); err != nil || string(got) != text {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
	if list, err := os.ReadDir(packs); err != nil || len(list) > 30 {
		t.Errorf("%d packs, %v", len(list), err)
	}
}
