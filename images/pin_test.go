package images

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestPinnedImageIsWhatRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.LockFile = filepath.Join(t.TempDir(), "images.lock")
	img, err := f.Ensure(t.Context(), f.ref)
	if err != nil {
		t.Fatal(err)
	}
	f.removeLater(t, img)
	pins, err := f.Pin(t.Context(), f.ref)
	if err != nil || len(pins) != 1 || pins[0].Ref != f.ref || pins[0].ID != img.ID {
		t.Fatalf("pins %v, %v", pins, err)
	}
	f.Forget(img)
	if _, err := f.Ensure(t.Context(), f.ref); err != nil {
		t.Errorf("the pinned image is refused: %v", err)
	}
	want := []sandbox.ImageCheck{{Ref: f.ref, State: sandbox.ImageMatches, Pinned: img.ID, Found: img.ID}}
	if got, err := f.Verify(t.Context()); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v, %v", got, err)
	}

	other := newFixture(t)
	moved, err := other.Ensure(t.Context(), other.ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := mustAPI(t, f).ImageTag(t.Context(), moved.ID, f.ref); err != nil {
		t.Fatal(err)
	}
	f.Forget(img)
	f.cfg.Catalogue = Builtin() // for the reference to be nobody's
	_, err = f.Ensure(t.Context(), f.ref)
	if !errors.Is(err, sandbox.Conflict) || !strings.Contains(err.Error(), "images.lock pins "+short(img.ID)) || sandbox.HintOf(err) == "" {
		t.Errorf("a tag that moved: %v, hint %q", err, sandbox.HintOf(err))
	}
	want = []sandbox.ImageCheck{{Ref: f.ref, State: sandbox.ImageDiffers, Pinned: img.ID, Found: moved.ID}}
	if got, err := f.Verify(t.Context()); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v, %v", got, err)
	}
	f.remove(t)
	want = []sandbox.ImageCheck{{Ref: f.ref, State: sandbox.ImageMissing, Pinned: img.ID}}
	if got, err := f.Verify(t.Context()); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v, %v", got, err)
	}
}

// pulledAndPinned is a store with an image that it pulled from a registry of the
// test's own, under ref, and then pinned.
func pulledAndPinned(t *testing.T) (s *Store, r *fakeRegistry, ref string, img sandbox.Image) {
	t.Helper()
	r, ref = nativeRegistry(t, false)
	s, _ = puller(t, ref)
	s.cfg.LockFile = filepath.Join(t.TempDir(), "images.lock")
	var err error
	if img, err = s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); err != nil {
		t.Fatal(err)
	}
	(&fixture{engine: s.cfg.Engine}).removeLater(t, img)
	if _, err := s.Pin(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	return s, r, ref, img
}

func TestPulledTagMoved(t *testing.T) {
	t.Parallel()
	s, r, ref, _ := pulledAndPinned(t)
	next, _ := nativeRegistry(t, false)
	r.manifest, r.config, r.layer = next.manifest, next.config, next.layer
	_, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{})
	if !errors.Is(err, sandbox.Conflict) || !strings.Contains(sandbox.HintOf(err), "@sha256:") {
		t.Errorf("error %v, hint %q", err, sandbox.HintOf(err))
	}
}

// TestSaysWhatDiffers makes an image again when Debian has moved on.
func TestSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.LockFile = filepath.Join(t.TempDir(), "images.lock")
	status := func(packages ...string) {
		t.Helper()
		text := ""
		for _, p := range packages {
			name, version, _ := strings.Cut(p, "=")
			text += "Package: " + name + "\nStatus: install ok installed\nDescription: Package\n Version: 0\nVersion: " + version + "\n\n"
		}
		text += "Package: removed\nStatus: deinstall ok config-files\nVersion: 1\n"
		old := start.Add(-time.Hour)
		tree := filepath.Join(t.TempDir(), "tree.tar")
		writeFile(t, tree, tarOf(t, dir("var"), dir("var/lib"), dir("var/lib/dpkg"), reg("var/lib/dpkg/status", text, 0o644, old), reg("x", f.ref, 0o644, old)))
		f.tool = fakeTool(t, "cat "+tree)
		f.Store.tool.command = f.tool
	}
	status("libssl3=3.0.15-1", "base-files=12.4", "old=1")
	img, err := f.Ensure(t.Context(), f.ref)
	if err != nil {
		t.Fatal(err)
	}
	f.removeLater(t, img)
	pins, err := f.Pin(t.Context(), f.ref)
	if diff := cmp.Diff([]string{"base-files=12.4", "libssl3=3.0.15-1", "old=1"}, pins[0].Packages); err != nil || diff != "" {
		t.Fatalf("%v: %s", err, diff)
	}
	if err := os.RemoveAll(f.path("cache")); err != nil {
		t.Fatal(err)
	}
	status("libssl3=3.0.16-1", "base-files=12.4", "new=2")
	_, err = f.Make(t.Context(), f.ref, sandbox.MakeImageOptions{Again: true})
	const want = "libssl3 was 3.0.15-1 and is 3.0.16-1, new 2 is new, old 1 is gone"
	if !errors.Is(err, sandbox.Conflict) || !strings.HasSuffix(err.Error(), ": "+want) || !strings.Contains(sandbox.HintOf(err), "images pin") {
		t.Errorf("error %v, hint %q", err, sandbox.HintOf(err))
	}
	checks, err := f.Verify(t.Context())
	if err != nil || len(checks) != 1 || strings.Join(checks[0].Changes, ", ") != want {
		t.Errorf("%+v, %v", checks, err)
	}
}

// TestVerifyRunning starts a sandbox of an image, and pins the language to
// another one and to this one.
func TestVerifyRunning(t *testing.T) {
	t.Parallel()
	ref := shellImage(t)
	s, _ := puller(t, "caisson-test/none:1")
	s.cfg.LockFile = filepath.Join(t.TempDir(), "images.lock")
	api := mustAPI(t, &fixture{engine: s.cfg.Engine})
	made, err := api.ContainerCreate(t.Context(), &container.Config{Image: ref, Cmd: []string{"sleep", "300"}, Labels: map[string]string{labelSandboxLanguage: "shell"}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "images-test-"+string(sandbox.NewID()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true})
	})
	if err := api.ContainerStart(t.Context(), made.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	running, err := api.ContainerInspect(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	ours := func() (found []sandbox.ImageCheck) {
		t.Helper()
		checks, err := s.Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks { // other tests have sandboxes too
			if c.Sandbox == strings.TrimPrefix(running.Name, "/") || c.Sandbox == "" {
				found = append(found, c)
			}
		}
		return found
	}
	other := "sha256:" + strings.Repeat("0", 64)
	if err := (Pins{ref: {ID: other}}).write(s.cfg.LockFile); err != nil {
		t.Fatal(err)
	}
	want := []sandbox.ImageCheck{
		{Ref: ref, State: sandbox.ImageDiffers, Pinned: other, Found: running.Image},
		{Ref: ref, State: sandbox.ImageDiffers, Pinned: other, Found: running.Image, Sandbox: strings.TrimPrefix(running.Name, "/")},
	}
	if diff := cmp.Diff(want, ours()); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Pin(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]sandbox.ImageCheck{{Ref: ref, State: sandbox.ImageMatches, Pinned: running.Image, Found: running.Image}}, ours()); diff != "" {
		t.Error(diff)
	}
}

func TestReadPins(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "images.lock")
	if pins, err := ReadPins(name); err != nil || len(pins) != 0 {
		t.Errorf("a file that is not there: %v, %v", pins, err)
	}
	want := Pins{"a:1": {ID: "sha256:1", Packages: []string{"x=1"}}, "b:1": {ID: "sha256:2", Digest: "b@sha256:3"}}
	if err := want.write(name); err != nil {
		t.Fatal(err)
	}
	got, err := ReadPins(name)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if left, _ := os.ReadDir(filepath.Dir(name)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	for _, bad := range []string{"", "{", `{"version":2}`, `{"version":1,"imgs":{}}`, `{"version":1,"images":{"a":{"id":"x"}}}`} {
		writeFile(t, name, []byte(bad))
		if _, err := ReadPins(name); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestPrune is alone while it runs: it would take the others' images for old.
func TestPrune(t *testing.T) {
	f := newFixture(t)
	img, err := f.Ensure(t.Context(), f.ref)
	if err != nil {
		t.Fatal(err)
	}
	prune := func(dry bool) []sandbox.PrunedImage {
		t.Helper()
		got, err := f.Prune(t.Context(), dry)
		if err != nil {
			t.Fatal(err)
		}
		var ours []sandbox.PrunedImage // other tests prune their own
		for _, p := range got {
			if p.Name == img.ID || strings.HasPrefix(p.Name, f.state) {
				ours = append(ours, p)
			}
		}
		return ours
	}
	if got := prune(false); got != nil {
		t.Errorf("pruned what is current: %v", got)
	}
	e := f.cfg.Catalogue.entries["test"]
	e.Packages, e.Suite = []string{"other"}, "later"
	f.cfg.Catalogue.entries["test"] = e
	if got := prune(true); len(got) != 2 {
		t.Errorf("dry run %v, want the image and its base", got)
	}
	if _, err := f.pinOf(t.Context(), f.ref); err != nil {
		t.Errorf("a dry run removed something: %v", err)
	}
	api := mustAPI(t, f)
	made, err := api.ContainerCreate(t.Context(), &container.Config{Image: img.ID, Cmd: []string{"x"}}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := prune(false); len(got) != 2 || !got[0].InUse {
		t.Errorf("pruned %v, want the image left for its container", got)
	}
	if err := api.ContainerRemove(t.Context(), made.ID, container.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	prune(false)
	if _, err := f.pinOf(t.Context(), f.ref); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("the image is there still: %v", err)
	}
}

// TestPruneLeavesTheirs is alone while it runs, as TestPrune is. Who builds on
// an image of ours inherits its labels.
func TestPruneLeavesTheirs(t *testing.T) {
	f := newFixture(t)
	img, err := f.Ensure(t.Context(), f.ref)
	if err != nil {
		t.Fatal(err)
	}
	api := mustAPI(t, f)
	text := "FROM " + f.ref + "\nENV MORE=1\n"
	mine, moved := f.ref+"-mine", "caisson-test/"+sandbox.NewID().Short()+":1"
	buildImage(t, f, text, mine)
	buildImage(t, f, text+"ENV MORE=2\n", "") // without a name
	buildImage(t, f, text+"ENV MORE=3\n", f.ref)
	f.Forget(img)
	theirs, err := f.Ensure(t.Context(), f.ref)
	if err != nil || theirs.ID == img.ID {
		t.Fatalf("a name that was given to another image is still %s: %v", theirs.ID, err)
	}
	if err := api.ImageTag(t.Context(), img.ID, moved); err != nil {
		t.Fatal(err)
	}
	e := f.cfg.Catalogue.entries["test"]
	e.Packages = []string{"other"}
	f.cfg.Catalogue.entries["test"] = e
	pruned, err := f.Prune(t.Context(), true)
	if err != nil || len(pruned) > 0 {
		t.Errorf("would prune %+v (%v), and all of it is theirs", pruned, err)
	}
	f.Forget(theirs)
	if again, err := f.Ensure(t.Context(), f.ref); err != nil || again.ID != theirs.ID {
		t.Errorf("made %s anew over %s: %v", again.ID, theirs.ID, err)
	}
}
