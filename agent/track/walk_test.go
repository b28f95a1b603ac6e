//go:build linux

package track_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/agent/track"
	"github.com/caisson-dev/caisson/agent/wire"
)

func newTree(t *testing.T) (string, *track.Tracker) {
	t.Helper()
	tree := t.TempDir()
	tr := track.New(track.Config{Root: tree, Watch: true})
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree, tr
}

// observed takes what was touched, by path.
func observed(t *testing.T, tr *track.Tracker, exact bool) (*track.Observation, map[string]wire.Entry) {
	t.Helper()
	o, err := tr.Observe(exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Done(true)
	entries := map[string]wire.Entry{}
	for _, e := range o.Entries {
		entries[e.Path] = e
	}
	return o, entries
}

func fill(t *testing.T, dir string, files int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNobodyWaitsForWalk begins and ends an exec in the middle of a walk. What it
// touches is booked to it, by that observation or the next.
func TestNobodyWaitsForWalk(t *testing.T) {
	t.Parallel()
	tree, tr := newTree(t)
	fill(t, filepath.Join(tree, "d"), 3)
	observed(t, tr, false)
	walking, walked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(walked)
		stops := 0
		o, err := tr.Observe(true, func() bool {
			if stops++; stops == 1 {
				walking <- struct{}{}
				<-walking
			}
			return false
		})
		if err != nil {
			t.Error(err)
			return
		}
		defer o.Done(true)
		for _, e := range o.Entries {
			if e.Path == "new" && (o.Actors[1] != "exec" || e.Actors&2 == 0) {
				t.Errorf("booked to %b of %q", e.Actors, o.Actors)
			}
		}
	}()
	<-walking
	passed := make(chan int)
	go func() {
		tr.Begin("exec", false, false)
		if err := os.WriteFile(filepath.Join(tree, "new"), nil, 0o644); err != nil {
			t.Error(err)
		}
		tr.Touched()
		passed <- tr.End("exec", false)
	}()
	select {
	case n := <-passed:
		if n == 0 {
			t.Error("an exec that wrote has touched nothing")
		}
	case <-time.After(10 * time.Second):
		t.Error("an exec waits for a walk")
	}
	walking <- struct{}{}
	<-walked
	if o, entries := observed(t, tr, false); entries["new"].Kind != wire.KindFile || o.Actors[1] != "exec" || entries["new"].Actors != 2 {
		t.Errorf("afterwards: %+v of %q", entries["new"], o.Actors)
	}
}

// TestWhoBeganLater begins an exec in the middle of a walk that no watch helps.
// What it makes may be its own, and what is older cannot be.
func TestWhoBeganLater(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	tr := track.New(track.Config{Root: tree})
	fill(t, filepath.Join(tree, "d"), 3)
	time.Sleep(50 * time.Millisecond) // the clock of the file system tells what is older
	begun := false
	o, err := tr.Observe(true, func() bool {
		if !begun {
			begun = true
			tr.Begin("exec", false, false)
			fill(t, tree, 1)
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Done(true)
	for _, e := range o.Entries {
		if own := e.Actors&2 != 0; e.Path != "." && own != (e.Path == "0") {
			t.Errorf("%s is booked to %b of %q", e.Path, e.Actors, o.Actors)
		}
	}
}

// TestWalkStopped gives up a walk: what was not looked at is found by the next.
func TestWalkStopped(t *testing.T) {
	t.Parallel()
	tree, tr := newTree(t)
	for i := range 4 {
		fill(t, filepath.Join(tree, fmt.Sprint(i)), 50)
	}
	seen := map[string]bool{}
	for looks := range 3 {
		o, err := tr.Observe(false, func() bool { looks--; return looks < 0 })
		if err != nil {
			t.Fatal(err)
		}
		if o.Partial == "" {
			t.Error("a walk that was given up does not say so")
		}
		for _, e := range o.Entries {
			seen[e.Path] = true
		}
		o.Done(true)
		if tr.Touched() == 0 {
			t.Error("nothing is left to be looked at")
		}
	}
	o, entries := observed(t, tr, false)
	for p := range entries {
		seen[p] = true
	}
	if o.Partial != "" || len(seen) != 4*51+1 {
		t.Errorf("%d of %d entries were seen; partial %q", len(seen), 4*51+1, o.Partial)
	}
	if n := tr.Touched(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestMoreThanRemembered touches, by one name, more paths than are remembered:
// each is told of, also to the next who asks where the first did not take it.
func TestMoreThanRemembered(t *testing.T) {
	t.Parallel()
	const files = 33_000
	tree, tr := newTree(t)
	fill(t, filepath.Join(tree, "a"), files)
	time.Sleep(20 * time.Millisecond) // the clock of the file system tells the last from what follows
	observed(t, tr, false)
	if err := os.Rename(filepath.Join(tree, "a"), filepath.Join(tree, "b")); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{true, false} {
		o, err := tr.Observe(false, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, e := range o.Entries {
			if filepath.Dir(e.Path) == "b" {
				found++
			}
		}
		if found != files {
			t.Errorf("%d of %d are told of", found, files)
		}
		o.Done(!lost)
	}
}
