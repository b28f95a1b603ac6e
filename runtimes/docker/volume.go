package docker

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

var _ runtimes.SizeHolder = (*Runtime)(nil)

// optionSize is the option of a volume by which the engine sets a quota, where its
// file system has them.
const optionSize = "size"

// newVolume makes a volume that can hold so much, or one without a quota where the
// engine has none: the agent watches it then.
func (r *Runtime) newVolume(ctx context.Context, api *client.Client, name string, labels map[string]string, size sandbox.Bytes) (volume.Volume, error) {
	ask := volume.CreateOptions{Name: name, Labels: labels}
	if size > 0 && !r.noQuota.Load() {
		ask.DriverOpts = map[string]string{optionSize: strconv.FormatInt(int64(size), 10)}
	}
	v, err := api.VolumeCreate(ctx, ask)
	if err != nil && ask.DriverOpts != nil && strings.Contains(err.Error(), "quota") {
		r.noQuota.Store(true)
		ask.DriverOpts = nil
		v, err = api.VolumeCreate(ctx, ask)
	}
	return v, dockerclient.Wrap(err, "create volume %s", name)
}

// HeldBy implements [runtimes.SizeHolder].
func (r *Runtime) HeldBy(ctx context.Context, w sandbox.Workspace) (sandbox.HeldBy, error) {
	name := w.Source
	switch w.Kind {
	case sandbox.WorkspaceTmpfs:
		return sandbox.HeldByFileSystem, nil
	case sandbox.WorkspaceOverlay:
		name = upperOf(w.Source)
	case sandbox.WorkspaceVolume:
	default:
		return "", nil
	}
	api, err := r.cfg.Engine.API(ctx)
	if err != nil {
		return "", err
	}
	v, err := api.VolumeInspect(ctx, name)
	switch err = dockerclient.Wrap(err, "find volume %s", name); {
	case errors.Is(err, sandbox.NotFound):
		return "", nil // it is made with the first sandbox
	case err != nil:
		return "", err
	case v.Options[optionSize] != "":
		return sandbox.HeldByFileSystem, nil
	}
	return sandbox.HeldByAgent, nil
}
