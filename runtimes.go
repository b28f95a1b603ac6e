package caisson

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// places is what New finds out once, when it is needed.
type places struct {
	engine   func() (*dockerclient.Client, error)
	registry func() (*runtimes.Registry, error)
}

func (c *Caisson) newPlaces() places {
	return places{engine: sync.OnceValues(c.openEngine), registry: sync.OnceValues(c.newRegistry)}
}

// openEngine makes the client of the Docker engine, which does not connect yet.
func (c *Caisson) openEngine() (*dockerclient.Client, error) {
	engine, err := dockerclient.New(dockerclient.Config{Getenv: c.getenv})
	if err != nil {
		return nil, err
	}
	c.atEnd(engine.Close)
	return engine, nil
}

// newRegistry has the runtimes that come with caisson, docker first, and those
// of the Config. What they all need and is not there is told by who opens one.
func (c *Caisson) newRegistry() (*runtimes.Registry, error) {
	state, noState := c.stateDir()
	agent, noAgent := c.helper("caisson-agent", "CAISSON_AGENT")
	holder, noHolder := manager.ProcessHolder()
	missing := cmp.Or(noState, noAgent, noHolder)
	r := runtimes.NewRegistry(runtimes.Host{Agent: agent, Base: c.runtimeDir(state), State: filepath.Join(state, "runtimes"), Images: filepath.Join(state, "images"), Holder: holder})
	var errs []error
	add := func(name string, open runtimes.Opener) {
		errs = append(errs, r.Register(name, func(h runtimes.Host) (runtimes.Runtime, error) {
			if missing != nil {
				return nil, missing
			}
			return open(h)
		}))
	}
	add(docker.Name, c.openDocker)
	for _, o := range ownHost {
		add(o.name, o.open)
	}
	for _, name := range slices.Sorted(maps.Keys(c.cfg.Runtimes)) {
		add(name, c.cfg.Runtimes[name])
	}
	return r, errors.Join(errs...)
}

// named is a runtime that comes with caisson.
type named struct {
	name string
	open runtimes.Opener
}

func (c *Caisson) openDocker(h runtimes.Host) (runtimes.Runtime, error) {
	engine, err := c.places.engine()
	if err != nil {
		return nil, err
	}
	rt, err := docker.New(docker.Config{Engine: engine, Agent: h.Agent, Base: h.Base, Remote: c.getenv("CAISSON_REMOTE") != "", Holder: h.Holder})
	if err != nil {
		return nil, err
	}
	return rt, nil
}

// defaultRuntime is the one of who asks for none.
func (c *Caisson) defaultRuntime() string { return cmp.Or(c.getenv("CAISSON_RUNTIME"), docker.Name) }

// NoEngine reports whether nothing names a Docker Engine, and there is none at the usual
// place. An engine that does not answer is one.
func (c *Caisson) NoEngine() bool {
	engine, err := c.places.engine()
	return err == nil && engine.Missing()
}

// Runtimes says of each runtime whether it can be used here, in the order of
// their registration. It opens no service. What is wrong stands with the
// runtime; the error is that of the Config.
func (c *Caisson) Runtimes(ctx context.Context) ([]api.RuntimeInfo, error) {
	r, err := c.places.registry()
	if err != nil {
		return nil, err
	}
	var infos []api.RuntimeInfo
	for _, name := range r.Names() {
		info := api.RuntimeInfo{Name: name, Default: name == c.defaultRuntime()}
		caps, err := capabilities(ctx, r, name)
		if err != nil {
			info.Error, info.Hint = err.Error(), sandbox.HintOf(err)
		} else {
			info.Available, info.Engine, info.Isolation, info.NotEnforced = true, caps.Engine, caps.Isolation, caps.NotEnforced()
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// askPatience bounds how long one runtime is asked whether it is there.
const askPatience = 10 * time.Second

func capabilities(ctx context.Context, r *runtimes.Registry, name string) (runtimes.Capabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	rt, err := r.Runtime(name)
	if err != nil {
		return runtimes.Capabilities{}, err
	}
	return rt.Capabilities(ctx)
}
