//go:build linux

// Package rig sets up what the benchmarks share: caisson's programs built as a
// release has them, the engine, the images, the runtime, and managers on them.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/recipe"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// Rig is what a benchmark works on. New makes it; Close takes it down. It is
// for one goroutine.
type Rig struct {
	Dir     string // its own, on a disk, and short, since sockets' paths are bounded
	Engine  *dockerclient.Client
	API     *client.Client
	Images  *images.Store
	Runtime runtimes.Runtime
	closers []func() error
}

// New builds caisson's programs from this tree into Dir and connects to the
// engine. The caller closes the rig.
func New(ctx context.Context) (_ *Rig, err error) {
	r := &Rig{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	// In the cache and not in a place that may be memory: what is durable is
	// measured.
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	if r.Dir, err = os.MkdirTemp(cache, "cais"); err != nil {
		return nil, err
	}
	r.Defer(func() error { return os.RemoveAll(r.Dir) })
	for _, name := range []string{"caisson", "caisson-agent", "caisson-scan"} {
		if err := build(ctx, name, r.Dir); err != nil {
			return nil, err
		}
	}
	if r.Engine, err = dockerclient.New(dockerclient.Config{}); err != nil {
		return nil, err
	}
	r.Defer(r.Engine.Close)
	if r.API, err = r.Engine.API(ctx); err != nil {
		return nil, err
	}
	r.Images, err = images.New(images.Config{
		Engine: r.Engine, StateDir: filepath.Join(r.Dir, "images"),
		Progress: func(p sandbox.Progress) { fmt.Fprintln(os.Stderr, p.Ref, p.Text) },
	})
	if err != nil {
		return nil, err
	}
	r.Runtime, err = docker.New(docker.Config{Engine: r.Engine, Agent: r.Program("caisson-agent"), Base: filepath.Join(r.Dir, "run")})
	return r, err
}

// build makes one of caisson's programs as a release has it.
func build(ctx context.Context, name, dir string) error {
	args, cgo := []string{"build", "-trimpath", "-ldflags", "-s -w"}, "CGO_ENABLED=0"
	if name == "caisson-scan" { // the only one with C in it; static all the same
		args, cgo = append([]string{"build"}, recipe.Scanner...), "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", filepath.Join(dir, name), "github.com/caisson-dev/caisson/cmd/"+name)...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// Program is the path of one of caisson's programs.
func (r *Rig) Program(name string) string { return filepath.Join(r.Dir, name) }

// Environ is this process's environment, with the rig's own places for what
// caisson's programs keep.
func (r *Rig) Environ() []string {
	return append(os.Environ(), "CAISSON_STATE_DIR="+r.Dir, "CAISSON_RUNTIME_DIR="+filepath.Join(r.Dir, "run"))
}

// Defer has Close call f, before what was deferred earlier.
func (r *Rig) Defer(f func() error) { r.closers = append(r.closers, f) }

// Close takes down what was made, the last first.
func (r *Rig) Close() error {
	var errs []error
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i]())
	}
	r.closers = nil
	return errors.Join(errs...)
}

// Config is that of a manager that judges nothing and remembers nothing.
func (r *Rig) Config() manager.Config {
	return manager.Config{Runtimes: runtimes.Only(docker.Name, r.Runtime), Images: r.Images, Gate: manager.Unjudged}
}

// Durable gives a configuration the rig's own state folder: what is done is
// remembered and audited there.
func (r *Rig) Durable(ctx context.Context, cfg manager.Config) (manager.Config, error) {
	st, err := sqlite.Open(ctx, sqlite.Config{Dir: r.Dir})
	if err != nil {
		return cfg, err
	}
	r.Defer(st.Close)
	cfg.Store, cfg.StateID, cfg.LockDir, cfg.Actor = st, st.ID(), filepath.Join(r.Dir, "locks"), "bench"
	return cfg, nil
}

// Manager makes a manager that goes with the rig.
func (r *Rig) Manager(cfg manager.Config) (*manager.Manager, error) {
	m, err := manager.New(cfg)
	if err != nil {
		return nil, err
	}
	r.Defer(m.Close)
	return m, nil
}

// Session makes a session of a manager that goes with the rig.
func (r *Rig) Session(ctx context.Context, m *manager.Manager, o sandbox.SessionOptions) error {
	if _, err := m.CreateSession(ctx, o); err != nil {
		return err
	}
	r.Defer(func() error { return m.RemoveSession(context.WithoutCancel(ctx), o.Name, true) })
	return nil
}

// Image makes a language's image present and returns its reference.
func (r *Rig) Image(ctx context.Context, language string) (string, error) {
	l, err := r.Images.Language(language)
	if err != nil {
		return "", err
	}
	img, err := r.Images.Ensure(ctx, l.Image)
	return img.Ref, err
}

// Container starts a plain container of a language's image that does nothing,
// for `docker exec`, and returns its id. It goes with the rig.
func (r *Rig) Container(ctx context.Context, language string, cpus float64) (string, error) {
	ref, err := r.Image(ctx, language)
	if err != nil {
		return "", err
	}
	made, err := r.API.ContainerCreate(ctx, &container.Config{Image: ref, Entrypoint: []string{"sleep", "infinity"}},
		&container.HostConfig{NetworkMode: "none", Resources: container.Resources{NanoCPUs: int64(cpus * 1e9)}}, nil, nil, "")
	if err != nil {
		return "", dockerclient.Wrap(err, "create a plain container")
	}
	r.Defer(func() error {
		return r.API.ContainerRemove(context.WithoutCancel(ctx), made.ID, container.RemoveOptions{Force: true})
	})
	return made.ID, dockerclient.Wrap(r.API.ContainerStart(ctx, made.ID, container.StartOptions{}), "start a plain container")
}

// Succeeded is an error where a run did not exit with 0 in the sandbox that it
// was given to.
func Succeeded(res sandbox.Result, err error) error {
	if err != nil {
		return err
	}
	if res.Code != 0 || res.Reason != sandbox.ReasonExited || res.Replaced {
		return fmt.Errorf("exec ended with code %d, %s %s: %s", res.Code, res.Reason, res.Cause, res.Stderr)
	}
	return nil
}

// Memory is a process's resident memory in MB, and its parent.
func Memory(pid int) (mb float64, parent int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	var kib int64
	for line := range strings.Lines(string(b)) {
		// Lines that are neither leave both as they are.
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &kib)
		_, _ = fmt.Sscanf(line, "PPid: %d", &parent)
	}
	return float64(kib) * 1024 / 1e6, parent, nil
}
