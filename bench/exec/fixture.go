//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// fixture is what all sets share: caisson as a program and as a library, and
// the engine.
type fixture struct {
	dir     string // temporary
	bin     string // caisson and its agent
	engine  *dockerclient.Client
	api     *client.Client
	images  *images.Store
	manager *manager.Manager
	natives map[string]native // by language
	// cores is the CPU limit that stands for "not limited".
	cores   float64
	closers []func() error
}

// newFixture builds caisson from this tree and opens it.
func newFixture(ctx context.Context, s *measure.Suite) (_ *fixture, err error) {
	f := &fixture{cores: float64(runtime.NumCPU()), natives: map[string]native{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	// Short, since sockets' paths are bounded.
	if f.dir, err = os.MkdirTemp("", "caisson-bench"); err != nil {
		return nil, err
	}
	f.closers = append(f.closers, func() error { return os.RemoveAll(f.dir) })
	f.bin = filepath.Join(f.dir, "bin")
	for _, name := range []string{"caisson", "caisson-agent", "caisson-scan"} {
		if err := build(ctx, name, f.bin); err != nil {
			return nil, err
		}
	}
	if err := f.open(ctx); err != nil {
		return nil, err
	}
	v, err := f.api.ServerVersion(ctx)
	if err != nil {
		return nil, dockerclient.Wrap(err, "ask the engine for its version")
	}
	s.Note("Docker Engine %s, kernel %s; cpus is the limit of what is measured", v.Version, v.KernelVersion)
	return f, nil
}

// build makes one of caisson's programs as a release has it.
func build(ctx context.Context, name, dir string) error {
	args, cgo := []string{"build", "-trimpath", "-ldflags", "-s -w"}, "CGO_ENABLED=0"
	if name == "caisson-scan" { // the only one with C in it; static all the same
		args, cgo = []string{"build", "-trimpath", "-tags", "netgo,osusergo", "-ldflags", `-s -w -linkmode external -extldflags "-static"`}, "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", filepath.Join(dir, name), "github.com/caisson-dev/caisson/cmd/"+name)...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

func (f *fixture) open(ctx context.Context) (err error) {
	if f.engine, err = dockerclient.New(dockerclient.Config{}); err != nil {
		return err
	}
	f.closers = append(f.closers, f.engine.Close)
	if f.api, err = f.engine.API(ctx); err != nil {
		return err
	}
	if f.images, err = images.New(images.Config{Engine: f.engine, StateDir: f.dir, Progress: func(p sandbox.Progress) { fmt.Fprintln(os.Stderr, p.Ref, p.Text) }}); err != nil {
		return err
	}
	agent := filepath.Join(f.bin, "caisson-agent")
	rt, err := docker.New(docker.Config{Engine: f.engine, Agent: agent, Base: filepath.Join(f.dir, "run")})
	if err != nil {
		return err
	}
	if f.manager, err = manager.New(manager.Config{Runtime: rt, Images: f.images, Gate: manager.Unjudged}); err != nil {
		return err
	}
	f.closers = append(f.closers, f.manager.Close)
	return nil
}

// close takes down what was made, the last first.
func (f *fixture) close() error {
	var errs []error
	for i := len(f.closers) - 1; i >= 0; i-- {
		errs = append(errs, f.closers[i]())
	}
	return errors.Join(errs...)
}

// sandbox opens a sandbox with a CPU limit; 0 is caisson's default.
func (f *fixture) sandbox(ctx context.Context, language string, cpus float64) (*manager.Sandbox, error) {
	return f.manager.Open(ctx, manager.OpenOptions{Language: language, Limits: sandbox.Limits{CPUs: cpus, MaxOutput: 2 * flood}})
}

// image makes a language's image present and returns its reference.
func (f *fixture) image(ctx context.Context, language string) (string, error) {
	l, err := f.images.Language(language)
	if err != nil {
		return "", err
	}
	img, err := f.images.Ensure(ctx, l.Image)
	return img.Ref, err
}

// container starts a plain container of a language's image that does nothing,
// for `docker exec`, and returns its id. It goes with the fixture.
func (f *fixture) container(ctx context.Context, language string, cpus float64) (string, error) {
	ref, err := f.image(ctx, language)
	if err != nil {
		return "", err
	}
	made, err := f.api.ContainerCreate(ctx, &container.Config{Image: ref, Entrypoint: []string{"sleep", "infinity"}},
		&container.HostConfig{NetworkMode: "none", Resources: container.Resources{NanoCPUs: int64(cpus * 1e9)}}, nil, nil, "")
	if err != nil {
		return "", dockerclient.Wrap(err, "create a plain container")
	}
	f.closers = append(f.closers, func() error {
		return f.api.ContainerRemove(context.WithoutCancel(ctx), made.ID, container.RemoveOptions{Force: true})
	})
	return made.ID, dockerclient.Wrap(f.api.ContainerStart(ctx, made.ID, container.StartOptions{}), "start a plain container")
}

// execIn is one warm exec of a command, which must succeed.
func execIn(ctx context.Context, s *manager.Sandbox, argv ...string) error {
	res, err := s.Exec(ctx, sandbox.Run{Command: argv}, sandbox.Streams{})
	return succeeded(res, err)
}

func succeeded(res sandbox.Result, err error) error {
	if err != nil {
		return err
	}
	if res.Code != 0 || res.Reason != sandbox.ReasonExited || res.Replaced {
		return fmt.Errorf("exec ended with code %d, %s %s: %s", res.Code, res.Reason, res.Cause, res.Stderr)
	}
	return nil
}
