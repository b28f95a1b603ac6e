package images

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestMain is also the main function of the processes that TestProcesses and
// TestKilled start.
func TestMain(m *testing.M) {
	if ref := os.Getenv("IMAGES_TEST_ENSURE"); ref != "" {
		os.Exit(ensureAndTell(ref))
	}
	os.Exit(m.Run())
}

func ensureAndTell(ref string) int {
	engine, err := dockerclient.New(dockerclient.Config{})
	if err == nil {
		var s *Store
		language := cmp.Or(os.Getenv("IMAGES_TEST_LANGUAGE"), ref)
		if s, err = storeFor(engine, os.Getenv("IMAGES_TEST_STATE"), os.Getenv("IMAGES_TEST_TOOL"), language); err == nil {
			var img sandbox.Image
			if img, err = s.Ensure(context.Background(), ref); err == nil {
				fmt.Println(img.ID)
				return 0
			}
		}
	}
	fmt.Println(err)
	return 1
}

// storeFor makes a store whose catalogue is one language with the image ref,
// assembled by tool.
func storeFor(engine *dockerclient.Client, state, tool, ref string) (*Store, error) {
	catalogue, err := Parse([]byte("version: 1\nbase: {suite: bookworm}\nlanguages:\n  test:\n    suffixes: [.t]\n    packages: [thing]\n    image: " +
		ref + "\n    run_code: [t, \"{file}\"]\n    run_file: [t, \"{file}\"]\n"))
	if err != nil {
		return nil, err
	}
	s, err := New(Config{Engine: engine, Catalogue: catalogue, StateDir: state})
	if err != nil {
		return nil, err
	}
	s.tool.command = tool
	return s, nil
}

// fixture is a store of its own with a quick tool in place of mmdebstrap.
type fixture struct {
	*Store
	engine     *dockerclient.Client
	state      string
	ref        string
	tool       string
	runs, gate string // a line for each run of the tool; it waits while gate is there
	progress   *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

// hear keeps the lines of a store's progress.
func (l *lockedBuffer) hear(p sandbox.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Text != "" {
		fmt.Fprintf(&l.b, "%s: %s\n", p.Ref, p.Text)
	}
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	needRoot(t)
	f := &fixture{engine: dockertest.Engine(t), state: t.TempDir(), ref: "caisson-test/" + string(sandbox.NewID()) + ":1", progress: &lockedBuffer{}}
	data := t.TempDir()
	f.runs, f.gate = filepath.Join(data, "runs"), filepath.Join(data, "gate")
	old := start.Add(-time.Hour)
	bottom, top := filepath.Join(data, "bottom.tar"), filepath.Join(data, "top.tar")
	writeFile(t, bottom, tarOf(t, dir("usr"), reg("usr/base", "b", 0o644, old)))
	writeFile(t, top, tarOf(t, dir("usr"), reg("usr/base", "b", 0o644, old), reg("usr/thing", string(f.ref), 0o644, old)))
	f.tool = fakeTool(t, fmt.Sprintf(`printf '%%s\n' "$*" >> %s
while [ -e %s ]; do sleep 0.02; done
case "$*" in *--variant=custom*) cat %s;; *) cat %s;; esac`, f.runs, f.gate, top, bottom))
	s, err := storeFor(f.engine, f.state, f.tool, f.ref)
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Progress = f.progress.hear
	f.Store = s
	t.Cleanup(func() { f.remove(t) })
	return f
}

// remove takes the image out of the engine.
func (f *fixture) remove(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	api, err := f.engine.API(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = api.ImageRemove(ctx, f.ref, image.RemoveOptions{Force: true, PruneChildren: true})
}

// removeLater takes an image that loses its name out of the engine at the
// test's end.
func (f *fixture) removeLater(t *testing.T, img sandbox.Image) {
	t.Helper()
	t.Cleanup(func() { (&fixture{engine: f.engine, ref: img.ID}).remove(t) })
}

// run runs a command in a container of an image, and returns what it prints.
func (f *fixture) run(t *testing.T, img string, argv []string) string {
	t.Helper()
	ctx, api := t.Context(), mustAPI(t, f)
	made, err := api.ContainerCreate(ctx, &container.Config{Image: img, Cmd: argv}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = api.ContainerRemove(context.WithoutCancel(ctx), made.ID, container.RemoveOptions{Force: true})
	}()
	exited, failed := api.ContainerWait(ctx, made.ID, container.WaitConditionNextExit)
	if err := api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failed:
		t.Fatal(err)
	case <-exited:
	}
	logs, err := api.ContainerLogs(ctx, made.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = logs.Close() }()
	var out strings.Builder
	if _, err := stdcopy.StdCopy(&out, &out, logs); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// runCount is how often the tool was run.
func (f *fixture) runCount(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(f.runs)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// leftovers lists what stands in the work folder.
func (f *fixture) leftovers(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(f.state, "work", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// fakeTool writes a command that stands for mmdebstrap.
func fakeTool(t testing.TB, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// needRoot skips a test that makes namespaces, where this user may not.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, as assembling does")
	}
}

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

// buildImage builds a Dockerfile as somebody else does, and removes the image at
// the test's end. An empty ref gives it no name.
func buildImage(t *testing.T, f *fixture, text, ref string) {
	t.Helper()
	var folder bytes.Buffer
	folder.Write(tarOf(t, reg(dockerfileName, text, 0o644, start)))
	opts := build.ImageBuildOptions{Remove: true, ForceRemove: true, Version: build.BuilderV1}
	if ref != "" {
		opts.Tags = []string{ref}
	}
	resp, err := mustAPI(t, f).ImageBuild(t.Context(), &folder, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var out buildOutput
	if err := out.read(resp.Body); err != nil || len(out.steps) == 0 {
		t.Fatalf("build %q: %v", text, err)
	}
	for _, step := range out.steps {
		f.removeLater(t, sandbox.Image{ID: step})
	}
}
