package dockerclient

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	dcontext "github.com/docker/cli/cli/context"
	"github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/cli/opts"

	"github.com/caisson-dev/caisson/sandbox"
)

// defaultContext is docker's name for "no context": the environment and the
// default socket decide.
const defaultContext = "default"

// endpoint finds the engine as the docker command does, and returns it with
// the name of the context that named it.
func (cfg Config) endpoint() (docker.Endpoint, string, error) {
	name, err := cfg.contextName()
	if err != nil {
		return docker.Endpoint{}, "", err
	}
	if name == defaultContext {
		ep, err := cfg.environmentEndpoint()
		return ep, name, err
	}
	ep, err := contextEndpoint(filepath.Join(cfg.ConfigDir, "contexts"), name)
	return ep, name, err
}

// contextName follows docker's order: a host that is given outright beats
// every context.
func (cfg Config) contextName() (string, error) {
	if cfg.Host != "" {
		return defaultContext, nil
	}
	if cfg.Context != "" {
		return cfg.Context, nil
	}
	if cfg.Getenv("DOCKER_HOST") != "" {
		return defaultContext, nil
	}
	if name := cfg.Getenv("DOCKER_CONTEXT"); name != "" {
		return name, nil
	}
	file, err := config.Load(cfg.ConfigDir)
	if err != nil {
		return "", sandbox.Errorf(sandbox.Invalid, "read docker's configuration: %w", err).
			WithHint("mend %s, or set DOCKER_HOST", filepath.Join(cfg.ConfigDir, config.ConfigFileName))
	}
	return cmp.Or(file.CurrentContext, defaultContext), nil
}

// environmentEndpoint is the engine that DOCKER_HOST and the TLS variables
// name, or the default socket.
func (cfg Config) environmentEndpoint() (docker.Endpoint, error) {
	verify := cfg.Getenv("DOCKER_TLS_VERIFY") != ""
	useTLS := verify || cfg.Getenv("DOCKER_TLS") != ""
	given := strings.TrimSpace(cmp.Or(cfg.Host, cfg.Getenv("DOCKER_HOST")))
	host, err := opts.ParseHost(useTLS, given)
	if err != nil {
		return docker.Endpoint{}, sandbox.Errorf(sandbox.Invalid, "DOCKER_HOST %q: %w", given, err).
			WithHint("DOCKER_HOST takes unix:///path, tcp://host:port or ssh://user@host")
	}
	ep := docker.Endpoint{EndpointMeta: docker.EndpointMeta{Host: host}}
	if !useTLS || !strings.HasPrefix(host, "tcp://") {
		return ep, nil
	}
	dir := cmp.Or(cfg.Getenv("DOCKER_CERT_PATH"), cfg.ConfigDir)
	ep.SkipTLSVerify = !verify
	ep.TLSData, err = dcontext.TLSDataFromFiles(
		existing(dir, "ca.pem", verify), existing(dir, "cert.pem", false), existing(dir, "key.pem", false))
	if err != nil {
		return docker.Endpoint{}, sandbox.Errorf(sandbox.Invalid, "read the TLS files of %s: %w", host, err).
			WithHint("put ca.pem, cert.pem and key.pem into %s, or set DOCKER_CERT_PATH", dir)
	}
	return ep, nil
}

// existing names a file of dir, or "" for one that is neither there nor
// needed.
func existing(dir, name string, needed bool) string {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil && !needed {
		return ""
	}
	return path
}

func contextEndpoint(dir, name string) (docker.Endpoint, error) {
	contexts := store.New(dir, store.NewConfig(
		func() any { return &map[string]any{} },
		store.EndpointTypeGetter(docker.DockerEndpoint, func() any { return &docker.EndpointMeta{} }),
	))
	bad := func(kind sandbox.Kind, err error) error {
		return sandbox.Errorf(kind, "docker context %q: %w", name, err).
			WithHint("`docker context ls` lists the contexts; DOCKER_CONTEXT=default takes the local engine")
	}
	meta, err := contexts.GetMetadata(name)
	if err != nil {
		return docker.Endpoint{}, bad(sandbox.NotFound, err)
	}
	typed, err := docker.EndpointFromContext(meta)
	if err != nil {
		return docker.Endpoint{}, bad(sandbox.Invalid, err)
	}
	ep, err := docker.WithTLSData(contexts, name, typed)
	if err != nil {
		return docker.Endpoint{}, bad(sandbox.Invalid, err)
	}
	return ep, nil
}
