package images

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
		{"no such package", "echo 'E: Unable to locate package nosuch' >&2; exit 1", sandbox.Invalid, "no package nosuch", "names of the packages"},
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
	err := mmdebstrap{command: tool}.run(ctx, tree{suite: "s", work: t.TempDir()}, func(in io.Reader) error {
		_, err := io.ReadFull(in, make([]byte, 3))
		cancel()
		return errors.Join(err, drain(in))
	})
	if err == nil || running(t, tool) {
		t.Errorf("error %v, running: %v", err, running(t, tool))
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

// keptBase puts a base that was assembled before into a store's state folder:
// by make images, or by an earlier run of these tests. The first one assembles
// it. With CAISSON_SOAK=1 every store assembles its own.
func keptBase(t *testing.T, s *Store) {
	t.Helper()
	if os.Getenv("CAISSON_SOAK") == "1" {
		return
	}
	name := recipe{Base: s.cfg.Catalogue.base, Format: recipeFormat}.baseName() + ".tar"
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local/state")), "caisson/images/cache", name)
	if _, err := os.Stat(kept); err != nil {
		shared, err := New(Config{Engine: s.cfg.Engine, Catalogue: s.cfg.Catalogue, StateDir: filepath.Join(home, ".cache/caisson/imagestest")})
		if err != nil {
			t.Fatal(err)
		}
		l, err := shared.base(t.Context(), recipe{Base: s.cfg.Catalogue.base, Format: recipeFormat})
		if errors.Is(err, sandbox.Unavailable) {
			t.Skipf("needs a Debian mirror: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept = l.file
	}
	data, err := os.ReadFile(kept)
	if err == nil {
		err = os.MkdirAll(s.path("cache"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.path("cache", name), data)
}

// TestNewLanguage adds Ruby as a user would, by data alone. Two machines
// assemble it, and both must get the same image; then it runs code, a file, and
// tests.
func TestNewLanguage(t *testing.T) {
	t.Parallel()
	needTool(t)
	f := &fixture{engine: dockertest.Engine(t), ref: "caisson-test/ruby:" + sandbox.NewID().Short()}
	catalogue, err := Builtin().Extend([]byte("languages:\n  mine:\n    suffixes: [.mine]\n    packages: [ruby]\n    image: "+f.ref+
		"\n    link: /home/me\n    programs: {/usr/local/bin/hi: \"#!/bin/sh\\necho hi\\n\"}\n    run_code: [ruby, -e, \"{code}\"]\n    run_file: [ruby, \"{file}\"]\n    run_tests: [ruby, -r, minitest/autorun, \"{file}\"]\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.remove(t) })
	var wg sync.WaitGroup
	var ids [2]string
	var errs [2]error
	for i := range ids {
		s, err := New(Config{Engine: f.engine, Catalogue: catalogue, StateDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		keptBase(t, s)
		wg.Go(func() {
			var img sandbox.Image
			img, errs[i] = s.Make(t.Context(), f.ref, sandbox.MakeImageOptions{Again: true})
			ids[i] = img.ID
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); errors.Is(err, sandbox.Unavailable) {
		t.Skipf("needs a Debian mirror: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if ids[0] != ids[1] {
		t.Errorf("two assemblies differ: %v", ids)
	}
	ruby, err := catalogue.Language("mine")
	if err != nil {
		t.Fatal(err)
	}
	if out := f.run(t, ids[0], []string{"sh", "-c", "hi; readlink /home/me"}); out != "hi\n/workspace\n" {
		t.Errorf("what the catalogue adds says %q", out)
	}
	known, err := New(Config{Engine: f.engine, Catalogue: catalogue, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if img, err := known.Ensure(t.Context(), f.ref); err != nil || img.Link != "/home/me" {
		t.Errorf("%+v, %v", img, err)
	}
	if out := f.run(t, ids[0], ruby.Argv(ruby.RunCode, "puts [6, 7].reduce(:*)", "", nil)); out != "42\n" {
		t.Errorf("ruby says %q", out)
	}
	file := func(template []string, text string) string {
		return f.run(t, ids[0], append([]string{"sh", "-c", `printf %s "$0" >/tmp/x.rb; exec "$@"`, text}, ruby.Argv(template, "", "/tmp/x.rb", nil)...))
	}
	if out := file(ruby.RunFile, "puts __FILE__"); out != "/tmp/x.rb\n" {
		t.Errorf("a file says %q", out)
	}
	const tests = "class T < Minitest::Test\n def test_good; assert true; end\n def test_bad; assert_equal 1, 2; end\nend\n"
	if out := file(ruby.RunTests, tests); !strings.Contains(out, "2 runs, 2 assertions, 1 failures, 0 errors") {
		t.Errorf("the test runner says %q", out)
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
