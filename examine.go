package caisson

import (
	"context"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/doctor"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// newDoctor makes a doctor of whatever can be had: what cannot is for it to
// report. broken is why there is no service, or nil.
func (c *Caisson) newDoctor(broken error) *doctor.Doctor {
	cfg := doctor.Config{MaxRuntimeDir: docker.MaxBase, Watches: wire.MaxWatches, Broken: broken, Runtimes: c.Runtimes}
	cfg.StateDir, cfg.StateErr = c.stateDir()
	cfg.RuntimeDir = c.runtimeDir(cfg.StateDir)
	cfg.Agent, cfg.AgentErr = c.helper("caisson-agent", "CAISSON_AGENT")
	if cfg.StateErr == nil {
		cfg.Unpacked = func() ([]sandbox.ImageRoot, error) { return images.Roots(cfg.StateDir) }
	}
	if engine, err := c.places.engine(); err != nil {
		cfg.EngineErr = err
	} else {
		cfg.Engine = engine
	}
	return doctor.New(cfg)
}

// Examine says what caisson stands on without a service: broken is why there is
// none, or nil. It is what [api.Doctor] says of one that was opened.
func (c *Caisson) Examine(ctx context.Context, broken error) ([]api.Check, error) {
	return c.newDoctor(broken).Examine(ctx, nil)
}
