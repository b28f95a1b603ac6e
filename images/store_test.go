package images

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestEnsureMakesOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	img, err := f.Ensure(t.Context(), f.ref)
	if err != nil {
		t.Fatal(err)
	}
	if img.Ref != f.ref || !strings.HasPrefix(img.ID, "sha256:") || !slices.ContainsFunc(img.Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }) {
		t.Errorf("image %+v", img)
	}
	if n := f.runCount(t); n != 2 { // the base, and the language
		t.Errorf("the tool ran %d times, want 2", n)
	}
	if got := f.progress.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "assembling") || !strings.Contains(got, "assembled in") {
		t.Errorf("progress %q", got)
	}
	if left := f.leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	again, err := storeFor(f.engine, f.state, f.tool, f.ref)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := again.Ensure(t.Context(), f.ref); err != nil || other.ID != img.ID {
		t.Errorf("another store got %+v, %v", other, err)
	}
	if n := f.runCount(t); n != 2 {
		t.Errorf("the tool ran again for an image that is present")
	}
}

// TestSeenCostsNothing closes the way to the engine before it asks again.
func TestSeenCostsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.Ensure(t.Context(), f.ref); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // any call would fail
	img, err := f.Ensure(ctx, f.ref)
	if err != nil {
		t.Fatal(err)
	}
	img.Env[0] = "altered"
	if again, _ := f.Ensure(ctx, f.ref); again.Env[0] == "altered" {
		t.Error("the store's own copy was altered through its answer")
	}
	f.remove(t)
	f.Forget(img)
	if img, err := f.Ensure(t.Context(), f.ref); err != nil || img.ID == "" {
		t.Errorf("after Forget: %+v, %v", img, err)
	}
	if n := f.runCount(t); n != 3 {
		t.Errorf("the tool ran %d times, want 3: the base is kept", n)
	}
}

func TestGoroutinesMakeOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := f.Ensure(t.Context(), f.ref); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := f.runCount(t); n != 2 {
		t.Errorf("the tool ran %d times, want 2", n)
	}
}

// child starts a process that ensures the fixture's image.
func (f *fixture) child(t *testing.T, env ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "IMAGES_TEST_ENSURE="+f.ref, "IMAGES_TEST_STATE="+f.state, "IMAGES_TEST_TOOL="+f.tool)
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out := new(bytes.Buffer)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func TestProcessesMakeOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outputs := map[string]bool{}
	var cmds []*exec.Cmd
	var outs []*bytes.Buffer
	for range 3 {
		cmd, out := f.child(t)
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, outs[i])
		}
		outputs[outs[i].String()] = true
	}
	if n := f.runCount(t); n != 2 || len(outputs) != 1 {
		t.Errorf("the tool ran %d times, want 2; IDs %v", n, outputs)
	}
}

// TestProcessesPullOnce has processes want an image of a registry's.
func TestProcessesPullOnce(t *testing.T) {
	t.Parallel()
	one, other := nativeRegistry(t, false) // says how often one pull asks
	s, _ := puller(t, other)
	if _, err := s.Ensure(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	r, ref := nativeRegistry(t, false)
	r.drip = 20 * time.Millisecond
	puller(t, ref) // removes it at the end
	f := &fixture{ref: ref, state: t.TempDir(), tool: "/bin/false"}
	var cmds []*exec.Cmd
	var outs []*bytes.Buffer
	for range 3 {
		cmd, out := f.child(t, "IMAGES_TEST_LANGUAGE=caisson-test/none:1")
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil || outs[i].String() != outs[0].String() {
			t.Errorf("%v: %s", err, outs[i])
		}
	}
	if one.asked() == 0 || r.asked() != one.asked() {
		t.Errorf("three processes asked %d times, one asks %d times", r.asked(), one.asked())
	}
}

// TestKilled kills a process amid an assembly: the tool dies with it, and the
// next process is not in its way.
func TestKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	writeFile(t, f.gate, nil)
	cmd, _ := f.child(t)
	eventually(t, "the tool to run", func() bool { return f.runCount(t) == 1 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the tool to die", func() bool { return !running(t, f.tool) })
	if err := os.Remove(f.gate); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Ensure(t.Context(), f.ref); err != nil {
		t.Error(err)
	}
	if left := f.leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCancelLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	writeFile(t, f.gate, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := f.Ensure(ctx, f.ref)
		ended <- err
	}()
	eventually(t, "the tool to run", func() bool { return f.runCount(t) == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap context.Canceled", err)
	}
	if left := f.leftovers(t); len(left) > 0 || running(t, f.tool) {
		t.Errorf("left behind: %v, tool running: %v", left, running(t, f.tool))
	}
	if _, err := f.inspect(t.Context(), mustAPI(t, f), f.ref, recipe{}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("the engine has the image: %v", err)
	}
}

// TestWaiterGivesUp ends the wait of one caller while another works.
func TestWaiterGivesUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	writeFile(t, f.gate, nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if _, err := f.Ensure(t.Context(), f.ref); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the tool to run", func() bool { return f.runCount(t) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := f.Ensure(ctx, f.ref); !errors.Is(err, sandbox.TimedOut) {
		t.Errorf("error %v, want timed_out", err)
	}
	if err := os.Remove(f.gate); err != nil {
		t.Error(err)
	}
}

// running reports whether a process has name in its command line.
func running(t *testing.T, name string) bool {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(found, func(p string) bool {
		data, _ := os.ReadFile(p)
		return bytes.Contains(data, []byte(name))
	})
}

func TestNewRecipeIsMadeAnew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before, err := f.Ensure(t.Context(), f.ref)
	if err != nil {
		t.Fatal(err)
	}
	f.removeLater(t, before)
	f.cfg.Catalogue.entries["test"] = func(e entry) entry {
		e.Packages = append(e.Packages, "more")
		return e
	}(f.cfg.Catalogue.entries["test"])
	f.Forget(before)
	after, err := f.Ensure(t.Context(), f.ref)
	if err != nil {
		t.Fatal(err)
	}
	if after.ID == before.ID {
		t.Error("the image of an older recipe was taken")
	}
}

func TestEnsureRefuses(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Engine: dockertest.Engine(t), StateDir: t.TempDir(), NoPull: true})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, ref  string
		kind       sandbox.Kind
		text, hint string
	}{
		{"absent", "caisson-test/absent:1", sandbox.NotFound, "caisson-test/absent:1 is not in the engine", "caisson images pull caisson-test/absent:1"},
		{"nothing", "", sandbox.Invalid, "no image", "--image"},
		{"not a reference", "UPPER case", sandbox.Invalid, "UPPER case", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := s.Ensure(t.Context(), tc.ref)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) || !strings.Contains(sandbox.HintOf(err), tc.hint) {
				t.Errorf("error %v (%v), hint %q", err, sandbox.KindOf(err), sandbox.HintOf(err))
			}
		})
	}
}

func TestNewChecksItsConfig(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{StateDir: "/x"}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("no engine: %v", err)
	}
	if _, err := New(Config{Engine: dockertest.Engine(t), StateDir: "relative"}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("relative state folder: %v", err)
	}
}

// TestDiskFull assembles on a file system of 64 KiB. The tree does not fit as
// a layer, and nothing of it stays.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	small := smallDisk(t, "64k")
	s, err := storeFor(f.engine, small, fakeTool(t, "cat "+bigTar(t)), f.ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(t.Context(), f.ref); !errors.Is(err, sandbox.Exhausted) || !strings.Contains(err.Error(), "512.0 MiB are needed") {
		t.Errorf("begun without room: %v", err)
	}
	s.need = 0
	_, err = s.Ensure(t.Context(), f.ref)
	if !errors.Is(err, sandbox.Exhausted) || !strings.Contains(sandbox.HintOf(err), "CAISSON_STATE_DIR") {
		t.Errorf("error %v (%v), hint %q", err, sandbox.KindOf(err), sandbox.HintOf(err))
	}
	if left, _ := filepath.Glob(filepath.Join(small, "*", "*.tar")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(small, "work", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// smallDisk mounts a tmpfs of a size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("needs to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func bigTar(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "big.tar")
	writeFile(t, name, tarOf(t, reg("big", strings.Repeat("x", 4<<20), 0o644, start)))
	return name
}
