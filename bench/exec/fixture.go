//go:build linux

package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// fixture is what all sets share.
type fixture struct {
	*rig.Rig
	manager *manager.Manager
	natives map[string]native // by language
	// cores is the CPU limit that stands for "not limited".
	cores float64
}

// newFixture builds caisson from this tree and opens it.
func newFixture(ctx context.Context, s *measure.Suite) (*fixture, error) {
	r, err := rig.New(ctx)
	if err != nil {
		return nil, err
	}
	f := &fixture{Rig: r, cores: float64(runtime.NumCPU()), natives: map[string]native{}}
	if f.manager, err = r.Manager(r.Config()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	v, err := f.API.ServerVersion(ctx)
	if err != nil {
		return nil, errors.Join(dockerclient.Wrap(err, "ask the engine for its version"), r.Close())
	}
	s.Note("Docker Engine %s, kernel %s; cpus is the limit of what is measured", v.Version, v.KernelVersion)
	return f, nil
}

// sandbox opens a sandbox with a CPU limit; 0 is caisson's default.
func (f *fixture) sandbox(ctx context.Context, language string, cpus float64) (*manager.Sandbox, error) {
	return f.manager.Open(ctx, manager.OpenOptions{Language: language, Limits: sandbox.Limits{CPUs: cpus}})
}

// execIn is one warm exec of a command, which must succeed.
func execIn(ctx context.Context, s *manager.Sandbox, argv ...string) error {
	res, err := s.Exec(ctx, sandbox.Run{Command: argv}, sandbox.Streams{})
	return rig.Succeeded(res, err)
}
