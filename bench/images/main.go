//go:build linux

// Command images measures how fast images are made present: looked up where
// they are there, assembled from Debian packages beside bare mmdebstrap and
// docker import, and pulled from a registry on loopback beside docker pull:
//
//	go run ./bench/images            tables, and exit code 1 where a bar does not hold
//	go run ./bench/images -json      one object a line
//	go run ./bench/images -smoke     a few samples and one language, to see that all of it works
//
// It needs a Docker Engine on this host, Go to build caisson, mmdebstrap with a
// Debian mirror, docker-registry, and root. Its images are removed at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/docker/docker/api/types/image"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("images", run)) }

// fixture is an engine, and names in it that nobody else has.
type fixture struct {
	*rig.Rig
	unique string
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f := &fixture{Rig: r, unique: sandbox.NewID().Short()}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{ensure, pull, assemble} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

// remove takes an image out of the engine; one that is not there is none.
func (f *fixture) remove(ctx context.Context, ref string) error {
	_, err := f.API.ImageRemove(context.WithoutCancel(ctx), ref, image.RemoveOptions{Force: true, PruneChildren: true})
	if err = dockerclient.Wrap(err, "remove %s", ref); errors.Is(err, sandbox.NotFound) {
		return nil
	}
	return err
}

// command runs a program, and tells what it said where it fails.
func (f *fixture) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = f.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
