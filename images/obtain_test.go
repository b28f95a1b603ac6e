package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

// language is one of a test's catalogue.
type language struct {
	name, ref string
	keys      string // YAML, each line with four spaces before it
}

func newLanguage(name, keys string) language {
	return language{name, "caisson-test/" + name + sandbox.NewID().Short() + ":1", keys}
}

// storeWith makes a store for languages, whose images are removed at the end.
func storeWith(t *testing.T, tool string, languages ...language) (*Store, *lockedBuffer) {
	t.Helper()
	text := "version: 1\nbase: {suite: bookworm}\nlanguages:\n"
	for _, l := range languages {
		text += fmt.Sprintf("  %s:\n    suffixes: [.%s]\n    image: %s\n    run_code: [x, \"{file}\"]\n    run_file: [x, \"{file}\"]\n%s", l.name, l.name, l.ref, l.keys)
	}
	catalogue, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	progress := &lockedBuffer{}
	engine := dockertest.Engine(t)
	s, err := New(Config{Engine: engine, Catalogue: catalogue, StateDir: t.TempDir(), DockerConfig: t.TempDir(), Progress: progress.hear})
	if err != nil {
		t.Fatal(err)
	}
	s.tool.command = tool
	t.Cleanup(func() {
		for ref := range catalogue.images {
			(&fixture{engine: engine, ref: ref}).remove(t)
		}
	})
	return s, progress
}

// quickTool stands for mmdebstrap and makes a tree of one file.
func quickTool(t *testing.T) string {
	t.Helper()
	needRoot(t)
	name := filepath.Join(t.TempDir(), "tree.tar")
	writeFile(t, name, tarOf(t, dir("usr"), reg("usr/"+string(sandbox.NewID()), "x", 0o644, start.Add(-time.Hour))))
	return fakeTool(t, "cat "+name)
}

// dockerfile makes a folder that an image can be built from.
func dockerfile(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "Dockerfile"), []byte(text))
	writeFile(t, filepath.Join(folder, "file"), []byte(sandbox.NewID()))
	return folder
}

const plainDockerfile = "ARG BASE=nothing.invalid/x\nFROM ${BASE}\nCOPY file /file\nENV MADE=here\n"

func TestBuiltOnItsBase(t *testing.T) {
	t.Parallel()
	r, base := nativeRegistry(t, false)
	folder := dockerfile(t, plainDockerfile)
	pinned := strings.TrimSuffix(base, ":1") + "@" + r.digest()
	l := newLanguage("t", "    from: "+pinned+"\n    dockerfile: "+folder+"\n    packages: [never]\n")
	s, progress := storeWith(t, "/bin/false", l)
	t.Cleanup(func() { (&fixture{engine: s.cfg.Engine, ref: pinned}).remove(t) })
	img, err := s.Ensure(t.Context(), l.ref)
	if err != nil {
		t.Fatalf("%v; progress %q", err, progress)
	}
	if !slices.Contains(img.Env, "MADE=here") || !slices.Contains(img.Env, "FROM=registry") {
		t.Errorf("environment %q is not that of the Dockerfile on its base", img.Env)
	}
	s.Forget(img)
	if again, err := s.Ensure(t.Context(), l.ref); err != nil || again.ID != img.ID || strings.Count(progress.String(), "built in") != 1 {
		t.Errorf("a second time: %+v, %v; progress %q", again, err, progress)
	}
	writeFile(t, filepath.Join(folder, "Dockerfile"), []byte(plainDockerfile+"ENV MORE=1\n"))
	s.Forget(img)
	after, err := s.Ensure(t.Context(), l.ref)
	if err != nil || after.ID == img.ID {
		t.Errorf("after the Dockerfile changed: %+v, %v", after, err)
	}
	(&fixture{engine: s.cfg.Engine}).removeLater(t, img)
}

func TestBuildIsJudged(t *testing.T) {
	t.Parallel()
	l := newLanguage("t", "    dockerfile: "+dockerfile(t, "FROM scratch\nCOPY file /\n")+"\n")
	s, _ := storeWith(t, "/bin/false", l)
	var seen Build
	s.cfg.Judge = func(_ context.Context, b Build) error {
		seen = b
		return sandbox.Errorf(sandbox.Denied, "no")
	}
	if _, err := s.Ensure(t.Context(), l.ref); !errors.Is(err, sandbox.Denied) {
		t.Errorf("error %v", err)
	}
	if seen.Ref != l.ref || seen.Language != "t" || !strings.Contains(string(seen.Dockerfile), "COPY file") {
		t.Errorf("asked about %+v", seen)
	}
	if _, err := s.present(t.Context(), mustAPI(t, &fixture{engine: s.cfg.Engine}), l.ref); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("it was built all the same: %v", err)
	}
}

// What is built is the Dockerfile that was judged, and not the one that lies
// there by then.
func TestBuildsWhatWasJudged(t *testing.T) {
	t.Parallel()
	dir := dockerfile(t, "FROM scratch\nCOPY file /\nLABEL which=judged\n")
	l := newLanguage("t", "    dockerfile: "+dir+"\n")
	s, _ := storeWith(t, "/bin/false", l)
	s.cfg.Judge = func(context.Context, Build) error {
		return os.WriteFile(filepath.Join(dir, dockerfileName), []byte("FROM scratch\nCOPY file /\nLABEL which=swapped\n"), 0o600)
	}
	img, err := s.Ensure(t.Context(), l.ref)
	if err != nil {
		t.Fatal(err)
	}
	(&fixture{engine: s.cfg.Engine}).removeLater(t, img)
	made, err := mustAPI(t, &fixture{engine: s.cfg.Engine}).ImageInspect(t.Context(), img.ID)
	if err != nil || made.Config.Labels["which"] != "judged" {
		t.Errorf("%v, labels %v", err, made.Config.Labels)
	}
}

// TestFailedBuildLeavesNothing fails in its second step, and once is canceled
// in it: no image of its first step and no container stays.
func TestFailedBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	shell := shellImage(t)
	for name, last := range map[string]string{"fails": "RUN echo because >&2; exit 7", "canceled": "RUN touch /begun; sleep 60"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := "left-" + string(sandbox.NewID())
			l := newLanguage("t", "    dockerfile: "+dockerfile(t, "FROM "+shell+"\nLABEL mark="+mark+"\n"+last+"\n")+"\n")
			s, _ := storeWith(t, "/bin/false", l)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			api := mustAPI(t, &fixture{engine: s.cfg.Engine})
			marked := func() (n int) {
				found, err := api.ContainerList(context.Background(), container.ListOptions{All: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range found {
					if c.Labels["mark"] == mark && strings.Contains(c.Command, "sleep") == (name == "canceled") {
						n++
					}
				}
				return n
			}
			ended := make(chan error, 1)
			go func() {
				_, err := s.Ensure(ctx, l.ref)
				ended <- err
			}()
			if name == "canceled" {
				eventually(t, "the step to run", func() bool { return marked() > 0 })
				cancel()
			}
			err := <-ended
			if name == "canceled" && !errors.Is(err, context.Canceled) || name == "fails" && !strings.Contains(err.Error(), "because") {
				t.Errorf("error %v", err)
			}
			eventually(t, "its container to go", func() bool { return marked() == 0 })
			all, err := api.ImageList(t.Context(), image.ListOptions{All: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, img := range all {
				if img.Labels["mark"] == mark {
					t.Errorf("an image of a step is left: %+v", img)
				}
			}
		})
	}
}

// shellImage is the image for shell scripts, where it is present.
func shellImage(t *testing.T) string {
	t.Helper()
	s, err := New(Config{Engine: dockertest.Engine(t), StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	img, _, err := s.Lookup(t.Context(), Builtin().entries["shell"].Image)
	if err != nil {
		t.Skipf("needs the image for shell: %v", err)
	}
	return img.Ref
}

// silentRegistry takes connections and says nothing.
func silentRegistry(t *testing.T) (addr string, asked *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), asked
}

// TestSilentRegistry: it is found out within five seconds, said in one line, and
// not found out again for another language, by this process or the next.
func TestSilentRegistry(t *testing.T) {
	t.Parallel()
	addr, asked := silentRegistry(t)
	from := "    from: " + addr + "/base:1\n    dockerfile: " + dockerfile(t, plainDockerfile) + "\n    packages: []\n"
	one, two := newLanguage("one", from), newLanguage("two", from)
	s, progress := storeWith(t, quickTool(t), one, two)
	began := time.Now()
	if _, err := s.Ensure(t.Context(), one.ref); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("took %s; five seconds are given", took)
	}
	if got := progress.String(); strings.Count(got, "does not answer") != 1 || !strings.Contains(got, "assembling from Debian packages instead") {
		t.Errorf("progress %q", got)
	}
	before := asked.Load()
	next, err := New(Config{Engine: s.cfg.Engine, Catalogue: s.cfg.Catalogue, StateDir: s.cfg.StateDir, Progress: progress.hear})
	if err != nil {
		t.Fatal(err)
	}
	next.tool.command = s.tool.command
	if _, err := next.Ensure(t.Context(), two.ref); err != nil {
		t.Fatal(err)
	}
	if got := progress.String(); asked.Load() != before || strings.Count(got, "does not answer") != 1 {
		t.Errorf("asked again: %d connections before, %d after; progress %q", before, asked.Load(), got)
	}
	// Ten minutes later it is asked again.
	next.cfg.Now = func() time.Time { return time.Now().Add(silence + time.Minute) }
	if next.silent(addr) {
		t.Error("the registry is given up for ever")
	}
}

// TestStandsIn takes the version that is assembled where the usual one would be
// pulled.
func TestStandsIn(t *testing.T) {
	t.Parallel()
	l := newLanguage("t", "    from: 127.0.0.1:1/base:1\n    dockerfile: "+dockerfile(t, plainDockerfile)+"\n    offline: \"1\"\n    versions:\n      \"1\": {image: caisson-test/old"+
		sandbox.NewID().Short()+":1, packages: []}\n")
	s, _ := storeWith(t, quickTool(t), l)
	other := s.cfg.Catalogue.entries["t@1"].Image
	for _, ref := range []string{l.ref, other} {
		img, err := s.Ensure(t.Context(), ref)
		if err != nil || img.Ref != other {
			t.Errorf("Ensure(%s) is %+v, %v; want what stands in", ref, img, err)
		}
	}
	if img, _, err := s.Lookup(t.Context(), l.ref); err != nil || img.Ref != other {
		t.Errorf("Lookup is %+v, %v", img, err)
	}
	if _, err := s.Make(t.Context(), l.ref, sandbox.MakeImageOptions{Way: sandbox.ImageBuilt}); !errors.Is(err, sandbox.Unavailable) {
		// It is present, in the form of what stands in: only Again asks for more.
		if err != nil {
			t.Errorf("error %v", err)
		}
	}
	if _, err := s.Make(t.Context(), l.ref, sandbox.MakeImageOptions{Way: sandbox.ImageBuilt, Again: true}); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("built without its base: %v", err)
	}
	if _, err := s.Make(t.Context(), l.ref, sandbox.MakeImageOptions{Way: sandbox.ImagePulled, Again: true}); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("pulled from nowhere: %v", err)
	}
}

func TestPulledLanguage(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	repository := strings.TrimSuffix(ref, ":1")
	l := newLanguage("t", "    pull: "+repository+"@"+r.digest()+"\n")
	s, progress := storeWith(t, "/bin/false", l)
	img, err := s.Ensure(t.Context(), l.ref)
	if err != nil {
		t.Fatalf("%v; progress %q", err, progress)
	}
	(&fixture{engine: s.cfg.Engine}).removeLater(t, img)
	// The catalogue names another one now: what is there is not the right one.
	next, _ := nativeRegistry(t, false)
	r.manifest, r.config, r.layer = next.manifest, next.config, next.layer
	s.cfg.Catalogue.entries["t"] = func(e entry) entry {
		e.Pull = repository + "@" + r.digest()
		return e
	}(s.cfg.Catalogue.entries["t"])
	s.Forget(img)
	after, err := s.Ensure(t.Context(), l.ref)
	if err != nil || after.ID == img.ID {
		t.Errorf("%+v, %v; it is what was pulled before", after, err)
	}
	(&fixture{engine: s.cfg.Engine}).removeLater(t, after)
}

// TestUsedImageIsPulled pulls what a user names with --image, once.
func TestUsedImageIsPulled(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	s, _ := puller(t, ref)
	if _, err := s.Ensure(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	s.Forget(sandbox.Image{Ref: ref})
	if _, err := s.Ensure(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if n, _ := r.counts(); n != 1 {
		t.Errorf("pulled %d times", n)
	}
}

// TestMirror asks the mirror first, and takes nothing from it under its name.
func TestMirror(t *testing.T) {
	t.Parallel()
	r, mirrored := nativeRegistry(t, false)
	addr, asked := silentRegistry(t)
	mirror, _, _ := strings.Cut(mirrored, "/")
	for name, ref := range map[string]string{"tag": addr + "/test/image:1", "digest": addr + "/test/image@" + r.digest()} {
		t.Run(name, func(t *testing.T) {
			s, _ := puller(t, ref)
			s.cfg.Mirrors = map[string][]string{addr: {"127.0.0.1:1", mirror}}
			if name == "digest" {
				l := newLanguage("t", "    from: "+ref+"\n    dockerfile: "+dockerfile(t, plainDockerfile)+"\n")
				s2, _ := storeWith(t, "/bin/false", l)
				s2.cfg.Mirrors = s.cfg.Mirrors
				known := mirror + "/test/image@" + r.digest()
				t.Cleanup(func() { (&fixture{engine: s.cfg.Engine, ref: known}).remove(t) })
				if _, err := s2.Ensure(t.Context(), l.ref); err != nil {
					t.Error(err)
				}
				mirroredByDigest(t, s, ref, known)
				return
			}
			img, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{})
			if err != nil || img.Ref != ref {
				t.Fatalf("%+v, %v", img, err)
			}
			if _, err := s.inspect(t.Context(), mustAPI(t, &fixture{engine: s.cfg.Engine}), mirrored, recipe{}); !errors.Is(err, sandbox.NotFound) {
				t.Errorf("it is there under the mirror's name: %v", err)
			}
		})
	}
	if asked.Load() != 0 {
		t.Errorf("the registry itself was asked %d times", asked.Load())
	}
}

// mirroredByDigest uses and pins an image that no more than a mirror's name with
// its digest is known of: the name that it was asked for cannot be given.
func mirroredByDigest(t *testing.T, s *Store, ref, known string) {
	t.Helper()
	img, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{})
	if err != nil || img.Ref != ref {
		t.Fatalf("%+v, %v", img, err)
	}
	s.Forget(img)
	if again, err := s.Ensure(t.Context(), ref); err != nil || again.ID != img.ID {
		t.Errorf("used: %+v, %v", again, err)
	}
	s.cfg.LockFile = filepath.Join(t.TempDir(), "images.lock")
	if pins, err := s.Pin(t.Context(), ref); err != nil || pins[0].Ref != ref || pins[0].ID != img.ID || pins[0].Digest != known {
		t.Errorf("pinned: %+v, %v", pins, err)
	}
}

func TestFolderWithoutDockerfile(t *testing.T) {
	t.Parallel()
	l := newLanguage("t", "    dockerfile: "+t.TempDir()+"\n")
	s, _ := storeWith(t, "/bin/false", l)
	if _, err := s.Ensure(t.Context(), l.ref); !errors.Is(err, sandbox.Invalid) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
