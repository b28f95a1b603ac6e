package main

import (
	"context"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/doctor"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/runtimes/docker"
)

// newDoctor makes a doctor of whatever can be had: what cannot is for it to
// report. broken is why there is no service, or nil.
func (a *app) newDoctor(broken error) *doctor.Doctor {
	cfg := doctor.Config{MaxRuntimeDir: docker.MaxBase, Broken: broken}
	cfg.StateDir, cfg.StateErr = a.stateDir()
	cfg.RuntimeDir = a.runtimeDir(cfg.StateDir)
	cfg.Agent, cfg.AgentErr = a.helper("caisson-agent", "CAISSON_AGENT")
	if engine, err := dockerclient.New(dockerclient.Config{Getenv: a.getenv}); err != nil {
		cfg.EngineErr = err
	} else {
		cfg.Engine = engine
		a.closers = append(a.closers, engine.Close)
	}
	return doctor.New(cfg)
}

// doctor examines without a service.
func (a *app) doctor(ctx context.Context, broken error) ([]api.Check, error) {
	return a.newDoctor(broken).Examine(ctx, nil)
}
