package images

import (
	"context"
	"encoding/base64"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

// puller makes a store whose image ref is removed at the test's end.
func puller(t *testing.T, ref string) (*Store, *lockedBuffer) {
	t.Helper()
	progress := &lockedBuffer{}
	s, err := New(Config{Engine: dockertest.Engine(t), StateDir: t.TempDir(), DockerConfig: t.TempDir(), Progress: progress.hear})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{engine: s.cfg.Engine, ref: ref}
	t.Cleanup(func() { f.remove(t) })
	return s, progress
}

func TestPull(t *testing.T) {
	t.Parallel()
	for name, tls := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ref := nativeRegistry(t, tls)
			s, progress := puller(t, ref)
			s.cfg.NoPull = true
			if _, err := s.Ensure(t.Context(), ref); !errors.Is(err, sandbox.NotFound) {
				t.Fatalf("before the pull: %v", err)
			}
			img, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if again, err := s.Ensure(t.Context(), ref); err != nil || again.ID != img.ID || !slices.Contains(again.Env, "FROM=registry") {
				t.Errorf("after the pull: %+v, %v", again, err)
			}
			if _, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); err != nil {
				t.Errorf("a second pull: %v", err)
			}
			if n, _ := r.counts(); n != 1 || !strings.Contains(progress.String(), "pulled") {
				t.Errorf("the layer was fetched %d times; progress %q", n, progress)
			}
		})
	}
}

func TestPullRefused(t *testing.T) {
	t.Parallel()
	_, ref := nativeRegistry(t, false)
	const gone = "127.0.0.1:1/test/image:1"
	liar, lied := nativeRegistry(t, false)
	liar.lie = true
	private, hidden := nativeRegistry(t, false)
	private.user, private.password = "ann", "secret"
	_, foreign := newRegistry(t, "s390x", false)
	tests := []struct {
		name, ref  string
		kind       sandbox.Kind
		text, hint string
	}{
		{"no such tag", strings.TrimSuffix(ref, "1") + "2", sandbox.NotFound, "manifest unknown", "check the name"},
		{"no such name", strings.Replace(ref, "test/image", "test/other", 1), sandbox.NotFound, "", "docker login"},
		{"no registry", gone, sandbox.Unavailable, "connection refused", "the network"},
		{"no credentials", hidden, sandbox.Denied, "", "docker login"},
		{"lying", lied, sandbox.Unavailable, "", "other bytes"},
		{"another architecture", foreign, sandbox.Unsupported, "s390x", "--platform"},
		{"no reference", "a b", sandbox.Invalid, `"a b"`, "REPOSITORY:TAG"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.name == "lying" && testing.Short() {
				t.Skip("the engine tries five times: left out of -short")
			}
			s, _ := puller(t, tc.ref)
			_, err := s.Pull(t.Context(), tc.ref, sandbox.PullImageOptions{})
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) || !strings.Contains(sandbox.HintOf(err), tc.hint) {
				t.Errorf("error %v (%v), hint %q", err, sandbox.KindOf(err), sandbox.HintOf(err))
			}
		})
	}
}

func TestPullWithCredentials(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	r.user, r.password = "ann", "secret"
	s, _ := puller(t, ref)
	auth := base64.StdEncoding.EncodeToString([]byte("ann:secret"))
	host, _, _ := strings.Cut(ref, "/")
	writeFile(t, filepath.Join(s.cfg.DockerConfig, "config.json"), []byte(`{"auths":{"`+host+`":{"auth":"`+auth+`"}}}`))
	if _, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); err != nil {
		t.Error(err)
	}
}

func TestPullWithBrokenHelper(t *testing.T) {
	t.Parallel()
	_, ref := nativeRegistry(t, false)
	s, _ := puller(t, ref)
	writeFile(t, filepath.Join(s.cfg.DockerConfig, "config.json"), []byte(`{"credsStore":"no-such-helper-of-caisson"}`))
	_, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{})
	if !errors.Is(err, sandbox.Denied) || !strings.Contains(sandbox.HintOf(err), "credential helper") {
		t.Errorf("error %v, hint %q", err, sandbox.HintOf(err))
	}
}

func TestPullTriesAgain(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	r.failManifests = 1
	s, progress := puller(t, ref)
	if _, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); err != nil {
		t.Errorf("%v; progress %q", err, progress)
	}
}

// TestPullResumes cuts the layer off half-way: the rest alone is fetched.
func TestPullResumes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the engine waits five seconds: left out of -short")
	}
	r, ref := nativeRegistry(t, false)
	r.cutBlobs = 1
	s, _ := puller(t, ref)
	if _, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); err != nil {
		t.Fatal(err)
	}
	if n, ranges := r.counts(); n != 2 || !strings.Contains(ranges, "bytes=") {
		t.Errorf("%d fetches with ranges %q, want the second to go on where the first ended", n, ranges)
	}
}

func TestPullOnceForMany(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	s, _ := puller(t, ref)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, _ := r.counts(); n != 1 {
		t.Errorf("the layer was fetched %d times", n)
	}
}

func TestPullCanceled(t *testing.T) {
	t.Parallel()
	r, ref := nativeRegistry(t, false)
	r.hold = make(chan struct{})
	s, _ := puller(t, ref)
	t.Cleanup(func() { close(r.hold) }) // the engine may hang on to its connection
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Pull(ctx, ref, sandbox.PullImageOptions{})
		ended <- err
	}()
	eventually(t, "the layer to be asked for", func() bool { n, _ := r.counts(); return n > 0 })
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v does not wrap context.Canceled", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the pull goes on after its cancel")
	}
	s.cfg.NoPull = true
	if _, err := s.Ensure(t.Context(), ref); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("the engine has the image: %v", err)
	}
}

func TestProgressIsSummedUp(t *testing.T) {
	t.Parallel()
	sum := layers{}
	add := func(id, status string, current, total sandbox.Bytes) (sandbox.Bytes, sandbox.Bytes, bool) {
		m := pullMessage{ID: id, Status: status}
		m.Progress.Current, m.Progress.Total = current, total
		return sum.add(m)
	}
	add("a", "Downloading", 1, 4)
	add("b", "Downloading", 1, 6)
	if current, total, changed := add("a", "Downloading", 3, 4); current != 4 || total != 10 || !changed {
		t.Errorf("%d of %d, changed %v", current, total, changed)
	}
	if _, _, changed := add("a", "Extracting", 1, 9); changed {
		t.Error("what is unpacked was counted as fetched")
	}
}
