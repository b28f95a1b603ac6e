package sqlite_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/storetest"
)

// TestAnchorLost cuts a log and takes its anchor away. It stays broken, whatever
// is written after, until somebody takes it as it is, which is an event.
func TestAnchorLost(t *testing.T) {
	t.Parallel()
	cut := []string{"DELETE FROM events WHERE seq > 6", "UPDATE sqlite_sequence SET seq = 6 WHERE name = 'events'"}
	all := []string{"DELETE FROM events", "DELETE FROM sqlite_sequence"}
	remove := func(name string) error { return os.Remove(name) }
	for name, c := range map[string]struct {
		edits []string
		lose  func(name string) error
		last  int64 // that is left
	}{
		"removed":            {nil, remove, 10},
		"removed with tail":  {cut, remove, 6},
		"emptied with tail":  {cut, func(name string) error { return os.Truncate(name, 0) }, 6},
		"removed with all":   {all, remove, 0},
		"the tail alone":     {cut, func(string) error { return nil }, 6},
		"the tail, numbered": {cut[:1], remove, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openDir(t, dir)
			mustApply(t, s, kEvents(10))
			_ = s.Close()
			if err := c.lose(filepath.Join(dir, "audit.head")); err != nil {
				t.Fatal(err)
			}
			edit(t, dir, c.edits...)
			for range 7 {
				if p := problems(t, dir); len(p) == 0 {
					t.Fatal("it verifies")
				}
				s = openDir(t, dir)
				mustApply(t, s, kEvents(1))
				_ = s.Close()
			}
			s = openDir(t, dir)
			seq, err := s.Reanchor(t.Context(), "me@here", "the disk was lost")
			if err != nil || seq != c.last+8 {
				t.Fatalf("event %d, %v", seq, err)
			}
			for e, err := range s.Events(t.Context(), sandbox.EventFilter{After: seq - 1}) {
				var d struct{ Reason string }
				if err := errors.Join(err, json.Unmarshal(e.Data, &d)); err != nil || e.Kind != sandbox.EventAuditReanchored || e.Actor != "me@here" || d.Reason != "the disk was lost" {
					t.Errorf("%+v, %v", e, err)
				}
			}
			mustApply(t, s, kEvents(1))
			storetest.Sound(t, s)
			if _, err := s.Reanchor(t.Context(), "me@here", "again"); !errors.Is(err, sandbox.Conflict) {
				t.Errorf("a log with its anchor gets another: %v", err)
			}
			_ = s.Close()
			edit(t, dir, "DELETE FROM events WHERE seq > 7", "UPDATE sqlite_sequence SET seq = 7 WHERE name = 'events'")
			if p := problems(t, dir); len(p) == 0 {
				t.Error("the new anchor holds nothing")
			}
		})
	}
}

// TestAnchorOfAnother makes a state beside the anchor of one that is gone.
func TestAnchorOfAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	mustApply(t, s, kEvents(10))
	_ = s.Close()
	if err := os.Remove(filepath.Join(dir, "state.db")); err != nil {
		t.Fatal(err)
	}
	if p := problems(t, dir); len(p) == 0 {
		t.Error("a log that was removed verifies")
	}
}
