package manager_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// lookScript prints everything about a tree that a copy has to keep.
const lookScript = `cd /workspace; (find . -type d -printf '%P %y %m %T@\n'; find . ! -type d -printf '%P %y %m %s %l %n %T@\n') | sed 's/\.[0-9]*$//' | sort; find . -type f -exec sha256sum {} + | sort -k2`

// branching calls test with a place that copies by overlays and with one that
// copies bytes.
func branching(t *testing.T, test func(*testing.T, *place, sandbox.CopiedBy)) {
	t.Parallel()
	t.Run("overlay", func(t *testing.T) {
		t.Parallel()
		test(t, newPlace(t), sandbox.CopiedByOverlay)
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		test(t, newPlaceOn(t, enginetest.NewRemote(t, "shell")), sandbox.CopiedByBytes)
	})
}

// TestFork forks a live session, goes on in both, and removes the origin.
func TestFork(t *testing.T) {
	branching(t, func(t *testing.T, p *place, by sandbox.CopiedBy) {
		p.create(t, sandbox.SessionOptions{Name: "a"})
		sh(t, p.Manager, "a", `mkdir -p d/e; echo one > d/f; ln d/f hard; ln -s d/f soft; echo x > 'odd
name'; chmod 640 d/f; chmod 2750 d/e; mkfifo p; touch -d 2001-02-03 d/f d; truncate -s 3M sparse; echo gone > gone`)
		undoable := sh(t, p.Manager, "a", "rm gone; echo two > two")
		before := string(sh(t, p.Manager, "a", lookScript).Stdout)
		sh(t, p.Manager, "a", "nohup sleep 300 >/dev/null 2>&1 & true") // in the background: it ends with the sandbox
		f, how, err := p.Fork(t.Context(), "a", sandbox.ForkOptions{Name: "b"})
		if err != nil || how != by || f.Name != "b" {
			t.Fatalf("%+v, %s, %v", f, how, err)
		}
		for _, name := range []string{"a", "b"} {
			res := sh(t, p.Manager, name, lookScript)
			if string(res.Stdout) != before {
				t.Errorf("%s after the fork:\n%s\nbefore:\n%s", name, res.Stdout, before)
			}
			if res.Replaced != (name == "a") || len(res.Changes) != 0 {
				t.Errorf("%s: replaced %v, changes %s", name, res.Replaced, summary(res.Changes))
			}
		}
		if got := string(sh(t, p.Manager, "a", "cat /proc/[0-9]*/comm | grep -c sleep || true").Stdout); got != "0\n" {
			t.Errorf("%s survived in the origin", got)
		}
		// What the origin's exec did can be taken back in the fork alone.
		_, tree, err := p.Tree(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.books.Undo(t.Context(), f.ID, "b", tree, bridge.UndoOptions{Exec: undoable.ExecID}); err != nil {
			t.Error(err)
		}
		sh(t, p.Manager, "b", "grep gone gone; test ! -e two; echo B > hard; test $(cat d/f) = B; mv d moved; rm soft")
		res := sh(t, p.Manager, "a", "test ! -e gone; cat two; grep one hard; test -e soft; echo A > only-a")
		if got := summary(res.Changes); got != "created only-a own" {
			t.Errorf("the origin's change: %s", got)
		}
		// A fork of the fork outlives both.
		// It was copied, since a file with two names was written on an overlay.
		if _, how, err := p.Fork(t.Context(), "b", sandbox.ForkOptions{Name: "c"}); err != nil || how != sandbox.CopiedByBytes {
			t.Fatalf("%s, %v", how, err)
		}
		for _, name := range []string{"a", "b"} {
			if err := p.RemoveSession(t.Context(), name, true); err != nil {
				t.Fatal(err)
			}
		}
		sh(t, p.Manager, "c", "test ! -e only-a; grep B moved/f; grep gone gone; test $(stat -c %a moved/e) = 2750")
		if _, err := p.Sweep(t.Context(), false, false); err != nil {
			t.Fatal(err)
		}
		sh(t, p.Manager, "c", "grep B moved/f")
	})
}

// TestSnapshot keeps workspaces and brings them back.
func TestSnapshot(t *testing.T) {
	branching(t, func(t *testing.T, p *place, by sandbox.CopiedBy) {
		p.create(t, sandbox.SessionOptions{Name: "a"})
		empty, err := p.Snapshot(t.Context(), "a", "")
		if err != nil || empty.Copied != by {
			t.Fatalf("%+v, %v", empty, err)
		}
		sh(t, p.Manager, "a", "echo 1 > f; mkdir d; echo 1 > d/f")
		first, err := p.Snapshot(t.Context(), "a", "first")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Snapshot(t.Context(), "a", "first"); !errors.Is(err, sandbox.Conflict) {
			t.Errorf("the name again: %v", err)
		}
		sh(t, p.Manager, "a", "echo 2 > f; rm -r d; echo 2 > g")
		for range 2 { // twice, with work in between: the snapshot stays as it is
			if _, err := p.Restore(t.Context(), "a", string(first.ID[:6])); err != nil {
				t.Fatal(err)
			}
			res := sh(t, p.Manager, "a", "cat f d/f; test ! -e g")
			if string(res.Stdout) != "1\n1\n" || len(res.Changes) != 0 {
				t.Errorf("restored: %q, %s", res.Stdout, summary(res.Changes))
			}
			sh(t, p.Manager, "a", "echo 3 > f; rm -r d; echo 3 > g")
		}
		if _, _, err := p.Fork(t.Context(), "a", sandbox.ForkOptions{Name: "b", Snapshot: "first"}); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, p.Manager, "b", "cat f d/f; echo B > f"); string(got.Stdout) != "1\n1\n" {
			t.Errorf("a fork of the snapshot has %q", got.Stdout)
		}
		if got := sh(t, p.Manager, "a", "cat f"); string(got.Stdout) != "3\n" {
			t.Errorf("the origin has %q", got.Stdout)
		}
		if err := p.RemoveSnapshot(t.Context(), "a", "first"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Restore(t.Context(), "a", "first"); !errors.Is(err, sandbox.NotFound) {
			t.Errorf("a snapshot that is gone: %v", err)
		}
		if _, err := p.Restore(t.Context(), "a", string(empty.ID)); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, p.Manager, "a", "find . -mindepth 1; echo new > n"); len(got.Stdout) != 0 {
			t.Errorf("the first snapshot holds %q", got.Stdout)
		}
	})
}

// TestForkRefused asks for copies that cannot be.
func TestForkRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "a"})
	p.create(t, sandbox.SessionOptions{Name: "m", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}})
	rec, err := p.StartIn(t.Context(), "a", sandbox.Run{Command: []string{"sleep", "300"}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		session, name, snapshot string
		want                    error
	}{
		{"a", "b", "", sandbox.Conflict},
		{"a", "m", "", sandbox.Conflict},
		{"a", "b", "none", sandbox.NotFound},
		{"a", "../x", "", sandbox.Invalid},
		{"m", "b", "", sandbox.Unsupported},
		{"none", "b", "", sandbox.NotFound},
	} {
		if _, _, err := p.Fork(t.Context(), tc.session, sandbox.ForkOptions{Name: tc.name, Snapshot: tc.snapshot}); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	if got := sh(t, p.Manager, "a", "cat /proc/[0-9]*/comm | grep -c sleep"); got.Replaced || !strings.HasPrefix(string(got.Stdout), "1") {
		t.Errorf("a refusal ended something: %q", got.Stdout)
	}
	if err := p.KillExec(t.Context(), "a", rec.ID); err != nil {
		t.Fatal(err)
	}
}
