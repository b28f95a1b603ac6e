package sqlite_test

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// TestLedger holds the ledger in a file to what the one in memory does.
func TestLedger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s", "ledger.db")
	file, err := sqlite.OpenLedger(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	memory := &bridge.Memory{}
	a, b := sandbox.NewID(), sandbox.NewID()
	odd := "x\xff\n/y"
	state := sandbox.FileState{Kind: sandbox.KindFile, Mode: 0o644, Size: 3, MTime: 9, CTime: 8, BTime: 7, Inode: 1 << 63, SHA256: "aa", Text: true, Links: 2}
	entries := []func() *bridge.Entry{
		func() *bridge.Entry {
			return &bridge.Entry{
				Set:  map[string]sandbox.FileState{".": {Kind: sandbox.KindDir}, "d": {Kind: sandbox.KindDir}, "d/f": state, "d0": state, odd: state},
				Pack: &bridge.Pack{Name: "p1", Size: 3}, Places: map[string]bridge.Place{"aa": {Pack: "p1", Size: 3}},
				Records: []*sandbox.ChangeRecord{{Exec: a, Time: time.Unix(5, 0).UTC(), Changes: []sandbox.FileChange{
					{Path: odd, Op: sandbox.OpCreated, By: sandbox.ByShared, Execs: []sandbox.ID{a, b}, After: state},
				}}},
			}
		},
		func() *bridge.Entry {
			return &bridge.Entry{
				Set:  map[string]sandbox.FileState{"d": {}, "d/f": {}},
				Pack: &bridge.Pack{Name: "p2", Size: 5}, Places: map[string]bridge.Place{"bb": {Pack: "p2", Offset: 1, Size: 4}}, Drop: []string{"p1"},
				Records: []*sandbox.ChangeRecord{{Time: time.Unix(6, 0).UTC(), Undoes: []int64{1}}, {Exec: b, Time: time.Unix(7, 0).UTC()}},
			}
		},
		func() *bridge.Entry { // more in the same pack
			return &bridge.Entry{Pack: &bridge.Pack{Name: "p2", Size: 9}, Places: map[string]bridge.Place{"cc": {Pack: "p2", Offset: 5, Size: 4}}}
		},
	}
	for i, e := range entries {
		for _, l := range []bridge.Ledger{file, memory} {
			if err := l.Commit(t.Context(), e()); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1 { // as another process would see it
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			if file, err = sqlite.OpenLedger(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
		same(t, file, memory, "states", func(l bridge.Ledger) (any, error) { return l.States(t.Context(), []string{".", "d/f", odd, "none"}) })
		same(t, file, memory, "below", func(l bridge.Ledger) (any, error) { return l.Below(t.Context(), "d") })
		same(t, file, memory, "all", func(l bridge.Ledger) (any, error) { return l.Below(t.Context(), ".") })
		same(t, file, memory, "same file", func(l bridge.Ledger) (any, error) { return l.SameFile(t.Context(), 1<<63) })
		same(t, file, memory, "find", func(l bridge.Ledger) (any, error) { return l.Find(t.Context(), []string{"aa", "bb", "cc"}) })
		same(t, file, memory, "kept", func(l bridge.Ledger) (any, error) { return l.Kept(t.Context()) })
		for _, f := range []bridge.RecordFilter{{}, {Exec: a}, {Exec: b}, {From: 2}, {Until: 2}, {From: 2, Until: 3}, {Exec: a, Until: 1}, {Limit: 1}} {
			same(t, file, memory, "records", func(l bridge.Ledger) (any, error) { return l.Records(t.Context(), f) })
		}
	}
	other := filepath.Join(t.TempDir(), "copy.db")
	if err := file.Copy(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	copied, err := sqlite.OpenLedger(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	same(t, copied, file, "copied states", func(l bridge.Ledger) (any, error) { return l.Below(t.Context(), ".") })
	same(t, copied, file, "copied records", func(l bridge.Ledger) (any, error) { return l.Records(t.Context(), bridge.RecordFilter{}) })
	if err := errors.Join(file.Close(), copied.Close()); err != nil {
		t.Error(err)
	}
}

// TestLedgerIsBounded writes more records than are kept. The newest stays.
func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it writes 200 MiB")
	}
	l, err := sqlite.OpenLedger(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var last sandbox.ID
	for range 6 {
		last = sandbox.NewID()
		r := &sandbox.ChangeRecord{Exec: last}
		for i := range 400 {
			r.Changes = append(r.Changes, sandbox.FileChange{Path: strings.Repeat("x", 60<<10) + strconv.Itoa(i), Op: sandbox.OpCreated, By: sandbox.ByOwn})
		}
		if err := l.Commit(t.Context(), &bridge.Entry{Records: []*sandbox.ChangeRecord{r}}); err != nil {
			t.Fatal(err)
		}
	}
	records, err := l.Records(t.Context(), bridge.RecordFilter{})
	if err != nil || len(records) == 0 || len(records) == 6 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if r := records[len(records)-1]; r.Exec != last || r.ID != 6 || len(r.Changes) != 400 {
		t.Errorf("the newest is %d", r.ID)
	}
}

func same(t *testing.T, a, b bridge.Ledger, what string, ask func(bridge.Ledger) (any, error)) {
	t.Helper()
	x, err := ask(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := ask(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(y, x); d != "" {
		t.Errorf("%s: memory, file:\n%s", what, d)
	}
}
