package images

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

func mustAPI(t *testing.T, f *fixture) *client.Client {
	t.Helper()
	api, err := f.engine.API(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func drain(in io.Reader) error {
	_, err := io.Copy(io.Discard, in)
	return err
}

func TestToolFailures(t *testing.T) {
	t.Parallel()
	needRoot(t)
	tests := []struct {
		name, script string
		kind         sandbox.Kind
		text, hint   string
	}{
		{"no such package", "echo 'E: Unable to locate package nosuch' >&2; exit 1", sandbox.Invalid, "no package nosuch", "catalogue"},
		{"no network", "echo \"E: Failed to fetch x  Could not resolve 'mirror'\" >&2; exit 25", sandbox.Unavailable, "mirror cannot be reached", "CAISSON_DEBIAN_MIRROR"},
		{"disk full", "echo 'tar: x: Cannot write: No space left on device' >&2; exit 2", sandbox.Exhausted, "No space left", "CAISSON_STATE_DIR"},
		{"disk full, tar cut short", "head -c 700 /dev/zero; echo 'No space left on device' >&2; exit 2", sandbox.Exhausted, "No space left", ""},
		{"anything else", "echo noise >&2; echo 'E: boom' >&2; echo noise >&2; exit 3", sandbox.Internal, "E: boom", ""},
		{"says nothing", "exit 3", sandbox.Internal, "exit status 3", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := mmdebstrap{command: fakeTool(t, tc.script)}.run(t.Context(), tree{suite: "s", work: t.TempDir()}, drain)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) || !strings.Contains(sandbox.HintOf(err), tc.hint) {
				t.Errorf("error %v (%v), hint %q", err, sandbox.KindOf(err), sandbox.HintOf(err))
			}
		})
	}
}

func TestToolIsCutOff(t *testing.T) {
	t.Parallel()
	needRoot(t)
	// It ignores what can be ignored, and has a child of its own.
	tool := fakeTool(t, "trap '' TERM INT HUP; sleep 1000 & echo up; wait; sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	err := mmdebstrap{command: tool}.run(ctx, tree{suite: "s", work: t.TempDir()}, func(in io.Reader) error {
		_, err := io.ReadFull(in, make([]byte, 3))
		cancel()
		return errors.Join(err, drain(in))
	})
	if err == nil || time.Since(began) > 10*time.Second || running(t, tool) {
		t.Errorf("error %v after %s, running: %v", err, time.Since(began), running(t, tool))
	}
}

func TestToolReaderFails(t *testing.T) {
	t.Parallel()
	needRoot(t)
	boom := errors.New("boom")
	err := mmdebstrap{command: fakeTool(t, "cat /dev/zero")}.run(t.Context(), tree{suite: "s", work: t.TempDir()}, func(io.Reader) error { return boom })
	if !errors.Is(err, boom) {
		t.Errorf("error %v, want the reader's own", err)
	}
}

func TestToolEnvironment(t *testing.T) {
	t.Parallel()
	env := strings.Join(environment([]string{"HOME=/h", "SOURCE_DATE_EPOCH=1", "LC_TIME=de", "PYTHONPATH=x", "http_proxy=p", "TMPDIR=/t"}), " ")
	if env != "HOME=/h http_proxy=p LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive" {
		t.Errorf("environment %q", env)
	}
}

func TestToolMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := mmdebstrap{}.check()
	if !errors.Is(err, sandbox.Unsupported) || !strings.Contains(sandbox.HintOf(err), "apt-get install mmdebstrap") {
		t.Errorf("error %v, hint %q", err, sandbox.HintOf(err))
	}
}

// needTool skips a test of the real mmdebstrap where it cannot work.
func needTool(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("assembles for real: left out of -short")
	}
	if err := (mmdebstrap{}).check(); err != nil {
		t.Skipf("needs mmdebstrap: %v (%s)", err, sandbox.HintOf(err))
	}
}

// TestNewLanguage adds Ruby as a user would, by data alone. It is assembled
// twice, and both must give the same image ID; then it runs. The base is
// assembled once for both, and twice with CAISSON_LONG_TESTS=1.
func TestNewLanguage(t *testing.T) {
	t.Parallel()
	needTool(t)
	f := &fixture{engine: dockertest.Engine(t), ref: "caisson-test/ruby:" + sandbox.NewID().Short()}
	catalogue, err := Builtin().Extend([]byte("languages:\n  ruby:\n    suffixes: [.rb]\n    packages: [ruby]\n    image: "+f.ref+
		"\n    run_code: [ruby, -e, \"{code}\"]\n    run_file: [ruby, \"{file}\"]\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.remove(t) })
	var ids []string
	states := []string{t.TempDir(), t.TempDir()}
	for i, state := range states {
		if i > 0 && os.Getenv("CAISSON_LONG_TESTS") != "1" {
			if err := os.Rename(filepath.Join(states[0], "cache"), filepath.Join(state, "cache")); err != nil {
				t.Fatal(err)
			}
		}
		s, err := New(Config{Engine: f.engine, Catalogue: catalogue, StateDir: state})
		if err != nil {
			t.Fatal(err)
		}
		f.remove(t)
		img, err := s.Ensure(t.Context(), f.ref)
		if errors.Is(err, sandbox.Unavailable) {
			t.Skipf("needs a Debian mirror: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, img.ID)
	}
	if ids[0] != ids[1] {
		t.Errorf("two assemblies differ: %v", ids)
	}
	ruby, err := catalogue.Language("ruby")
	if err != nil {
		t.Fatal(err)
	}
	if out := f.run(t, ids[0], ruby.Argv(ruby.RunCode, "puts [6, 7].reduce(:*)", "", nil)); out != "42\n" {
		t.Errorf("ruby says %q", out)
	}
}

// TestAssemblyOnAFullDisk gives the real mmdebstrap 24 MiB.
func TestAssemblyOnAFullDisk(t *testing.T) {
	t.Parallel()
	needTool(t)
	f := newFixture(t)
	small := smallDisk(t, "24m")
	s, err := storeFor(f.engine, small, "", f.ref)
	if err != nil {
		t.Fatal(err)
	}
	s.need = 0
	_, err = s.Ensure(t.Context(), f.ref)
	if errors.Is(err, sandbox.Unavailable) {
		t.Skipf("needs a Debian mirror: %v", err)
	}
	if !errors.Is(err, sandbox.Exhausted) {
		t.Errorf("error %v (%v)", err, sandbox.KindOf(err))
	}
	if left, _ := filepath.Glob(filepath.Join(small, "work", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), small+"/") {
		t.Errorf("mounts are left below %s: %v", small, err)
	}
}
