package images

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestSlowRegistry: one that answers and takes its time is waited for, and what
// has come so far is told.
func TestSlowRegistry(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	r.drip = 700 * time.Millisecond
	s, _ := puller(t, ref)
	s.patience, s.pullPatience = 10*time.Second, 10*time.Second
	var news []sandbox.Progress
	s.cfg.Progress = func(p sandbox.Progress) { news = append(news, p) } // of one pull: from one goroutine
	began := time.Now()
	if _, err := s.Ensure(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 15*r.drip {
		t.Errorf("took %s: the registry was not slow", took)
	}
	partly := 0
	for _, p := range news {
		if p.Current > 0 && p.Current < p.Total && !p.Done {
			partly++
		}
	}
	if last := news[len(news)-1]; partly < 3 || !last.Done {
		t.Errorf("%d of %d pieces of news tell a part, the last is %+v", partly, len(news), last)
	}
}

// TestFailingRegistry: it is asked a few times, and then given up for another
// way, or with what to do.
func TestFailingRegistry(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	r.failManifests = 1 << 20
	s, _ := puller(t, ref)
	began := time.Now()
	_, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{})
	if !errors.Is(err, sandbox.Unavailable) || !strings.Contains(sandbox.HintOf(err), "the registry") {
		t.Errorf("error %v, hint %q, after %s", err, sandbox.HintOf(err), time.Since(began))
	}
	r.mu.Lock()
	asked := 1<<20 - r.failManifests
	r.mu.Unlock()
	if asked < pullTries || asked > 10*pullTries {
		t.Errorf("asked %d times", asked)
	}
	l := newLanguage("t", "    from: "+ref+"\n    dockerfile: "+dockerfile(t, plainDockerfile)+"\n    packages: []\n")
	other, progress := storeWith(t, quickTool(t), l)
	if _, err := other.Ensure(t.Context(), l.ref); err != nil || !strings.Contains(progress.String(), "assembling from Debian packages instead") {
		t.Errorf("%v; progress %q", err, progress)
	}
}

// TestLyingRegistry gives another manifest than it was asked for.
func TestLyingRegistry(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	other, _ := nativeRegistry(t, false)
	r.other = other.manifest
	pinned := strings.TrimSuffix(ref, ":1") + "@" + r.digest()
	s, _ := puller(t, pinned)
	_, err := s.Pull(t.Context(), pinned, sandbox.PullImageOptions{})
	if !errors.Is(err, sandbox.Unavailable) || !strings.Contains(sandbox.HintOf(err), "other bytes") {
		t.Errorf("error %v (%v), hint %q", err, sandbox.KindOf(err), sandbox.HintOf(err))
	}
	s.cfg.NoPull = true
	if _, err := s.Ensure(t.Context(), pinned); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("the engine has something under that digest: %v", err)
	}
}

// TestCredentialHelper asks a helper that docker's configuration names for a
// registry, as the docker command would.
func TestCredentialHelper(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	r, ref := nativeRegistry(t, false)
	r.user, r.password = "ann", "of the helper"
	host, _, _ := strings.Cut(ref, "/")
	helper := fakeTool(t, `[ "$1" = get ] && [ "$(cat)" = `+host+` ] && echo '{"ServerURL":"`+host+`","Username":"ann","Secret":"of the helper"}'`)
	if err := os.Rename(helper, filepath.Join(folder, "docker-credential-caissontest")); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]string{
		"for the registry": `{"credHelpers":{"` + host + `":"caissontest"}}`, "for all": `{"credsStore":"caissontest"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := puller(t, ref)
			writeFile(t, filepath.Join(s.cfg.DockerConfig, "config.json"), []byte(config))
			if _, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPinnedTagMoved: what is pinned is brought back by its digest, wherever the
// tag points, until somebody takes what is new.
func TestPinnedTagMoved(t *testing.T) {
	t.Parallel()
	s, r, ref, img := pulledAndPinned(t)
	next, _ := nativeRegistry(t, false)
	r.moved = next
	(&fixture{engine: s.cfg.Engine, ref: img.ID}).remove(t)
	fresh, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := fresh.Ensure(t.Context(), ref); err != nil || again.ID != img.ID {
		t.Errorf("the pinned one comes back as %+v, %v; want %s", again, err, img.ID)
	}
	if _, err := fresh.Pull(t.Context(), ref, sandbox.PullImageOptions{}); !errors.Is(err, sandbox.Conflict) || !strings.Contains(sandbox.HintOf(err), "--repin") {
		t.Errorf("the tag that moved: %v, hint %q", err, sandbox.HintOf(err))
	}
	moved, err := fresh.Pull(t.Context(), ref, sandbox.PullImageOptions{Repin: true})
	if err != nil || moved.ID == img.ID {
		t.Fatalf("with --repin: %+v, %v", moved, err)
	}
	pins, err := ReadPins(s.cfg.LockFile)
	if err != nil || pins[ref].ID != moved.ID || !strings.HasSuffix(pins[ref].Digest, next.digest()) {
		t.Errorf("pins after it: %+v, %v", pins, err)
	}
}

// TestEnsureCostsOneCall counts what the first look at a present image asks of
// the engine, and the second.
func TestEnsureCostsOneCall(t *testing.T) {
	t.Parallel()
	calls := 0
	engine := dockertest.Fake(t, "1.41", func(w http.ResponseWriter, _ *http.Request) {
		calls++
		_, _ = w.Write(mustJSON(t, map[string]any{"Id": "sha256:1", "Os": "linux", "Architecture": runtime.GOARCH, "Config": map[string]any{}}))
	})
	s, err := New(Config{Engine: engine, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Ensure(t.Context(), "somebody/else:1"); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 {
		t.Errorf("two looks cost %d calls", calls)
	}
}
