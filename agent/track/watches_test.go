//go:build linux

package track_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/agent/track"
)

// TestWatchBudget has more folders than may be watched: the tree is walked, and
// everything is found. With fewer again, it is not. All watches are given back.
func TestWatchBudget(t *testing.T) {
	t.Parallel()
	const most = 4
	tree, w := t.TempDir(), &track.Watches{Most: most}
	tr := track.New(track.Config{Root: tree, Watch: true, Watches: w})
	folder := func(i int) string { return filepath.Join(tree, fmt.Sprint(i)) }
	left := func() int {
		n := 0
		for w.Take() {
			n++
		}
		w.Give(n)
		return n
	}
	observed(t, tr, false)
	for i := range 10 {
		fill(t, folder(i), 1)
	}
	for range 2 {
		o, entries := observed(t, tr, false)
		if o.Walked != "there are too many folders to watch" || left() != 0 {
			t.Errorf("walked %q, %d watches are left", o.Walked, left())
		}
		for i := range 10 {
			if p := fmt.Sprintf("%d/0", i); entries[p].Path != p {
				t.Errorf("%s is not told of", p)
			}
			if err := os.WriteFile(filepath.Join(folder(i), "0"), []byte("more"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := 2; i < 10; i++ {
		if err := os.RemoveAll(folder(i)); err != nil {
			t.Fatal(err)
		}
	}
	observed(t, tr, false)
	if err := os.WriteFile(filepath.Join(folder(1), "0"), []byte("again"), 0o644); err != nil {
		t.Fatal(err)
	}
	if o, entries := observed(t, tr, false); o.Walked != "" || entries["1/0"].Size != 5 || left() != most-3 {
		t.Errorf("with few folders: walked %q, %+v, %d watches are left", o.Walked, entries["1/0"], left())
	}
	if err := os.Rename(folder(1), folder(3)); err != nil {
		t.Fatal(err)
	}
	if observed(t, tr, false); left() != most-3 {
		t.Errorf("after a rename %d watches are left", left())
	}
	if err := tr.Close(); err != nil || left() != most {
		t.Errorf("closed, %d watches are left, %v", left(), err)
	}
}
