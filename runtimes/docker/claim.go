package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// claimable is an [Instance] that can be made before anybody asks for it: its engine
// shares the folder where it is noted whose it has become.
type claimable struct{ *Instance }

var _ runtimes.Claimer = claimable{}

// handed is what users of the runtime get.
func (r *Runtime) handed(i *Instance) runtimes.Instance {
	if r.remote {
		return i
	}
	return claimable{i}
}

// Claim sets the container's limits, and notes whose it is: labels stay as they were
// made. What the engine has then is compared with the plan, as it is after a
// creation. Errors: Unsupported where it differs, and those of the engine.
func (i claimable) Claim(ctx context.Context, plan runtimes.Plan) error {
	var req request
	if err := json.Unmarshal(plan.Request, &req); err != nil {
		return sandbox.Errorf(sandbox.Invalid, "read the plan: %w", err)
	}
	if id := plan.Spec.Image.ID; id != "" && id != req.Config.Image {
		return sandbox.Errorf(sandbox.Unsupported, "sandbox %s has another image", i.handle.ID.Short())
	}
	req.HostConfig.Mounts = i.mounted(req.HostConfig.Mounts)
	api, err := i.r.cfg.Engine.API(ctx)
	if err != nil {
		return err
	}
	got, err := api.ContainerInspect(ctx, i.handle.Name)
	if err != nil {
		return dockerclient.Wrap(err, "inspect the container")
	}
	arrives := asMade(&req, got, plan.Spec)
	what, err := i.settle(ctx, api, req, got)
	if err != nil {
		return err
	}
	if what != "" {
		return sandbox.Errorf(sandbox.Unsupported, "sandbox %s was made with another %s", i.handle.ID.Short(), what)
	}
	if arrives {
		if err := i.arrive(ctx, api, got, plan.Spec); err != nil {
			return err
		}
	}
	return i.note(plan.Spec)
}

// mounted are the mounts that a plan's have become.
func (i claimable) mounted(planned []mount.Mount) (mounts []mount.Mount) {
	for _, m := range planned {
		if m.Type == mount.TypeVolume && m.Source == "" {
			m.Source = containerName(i.handle.ID)
		}
		mounts = append(mounts, m)
	}
	return append(mounts, i.r.ownMounts(i.handle.ID)...)
}

// settle gives the container its limits where they are others, and names what else
// differs.
func (i claimable) settle(ctx context.Context, api *client.Client, req request, got container.InspectResponse) (what string, err error) {
	if what = differs(req, got); what == "" || got.ContainerJSONBase == nil || got.HostConfig == nil {
		return what, nil
	}
	want := req.HostConfig.Resources
	limits := container.Resources{
		Memory: want.Memory, MemorySwap: want.MemorySwap, CPUPeriod: want.CPUPeriod, CPUQuota: want.CPUQuota, PidsLimit: want.PidsLimit,
	}
	has := got.HostConfig
	has.Memory, has.MemorySwap, has.CPUPeriod, has.CPUQuota, has.PidsLimit = limits.Memory, limits.MemorySwap, limits.CPUPeriod, limits.CPUQuota, limits.PidsLimit
	if what = differs(req, got); what != "" {
		return what, nil // no limit would mend it
	}
	if _, err := api.ContainerUpdate(ctx, i.handle.Name, container.UpdateConfig{Resources: limits}); err != nil {
		return "", dockerclient.Wrap(err, "change the container's limits")
	}
	if got, err = api.ContainerInspect(ctx, i.handle.Name); err != nil {
		return "", dockerclient.Wrap(err, "inspect the container")
	}
	return differs(req, got), nil
}

// claimed is who has claimed a sandbox, as it is noted.
type claimed struct {
	Session  string `json:"session,omitempty"`
	Holder   string `json:"holder"`
	Language string `json:"language,omitempty"`
}

// claimSuffix follows the name of a private folder: it is noted beside that.
const claimSuffix = ".claim"

// claimFile is where it is noted.
func (r *Runtime) claimFile(id sandbox.ID) string { return r.folder(id) + claimSuffix }

// note writes down whose the sandbox is, whole or not at all.
func (i claimable) note(spec sandbox.Spec) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	text, err := json.Marshal(claimed{spec.Session, spec.Holder, spec.Language})
	if err != nil {
		return err
	}
	name := i.r.claimFile(i.handle.ID)
	if err = os.WriteFile(name+".new", text, 0o600); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return fmt.Errorf("note whose a sandbox is: %w", err)
	}
	i.handle.Session, i.handle.Holder, i.handle.Language = spec.Session, spec.Holder, spec.Language
	return nil
}

// withClaim is a handle with what is noted, in a file, of who claimed the sandbox. Where
// the note may not be read nobody knows who holds it.
func withClaim(h runtimes.Handle, file string) runtimes.Handle {
	var c claimed
	text, err := os.ReadFile(file)
	switch {
	case err == nil:
		if json.Unmarshal(text, &c) == nil {
			h.Session, h.Holder, h.Language = c.Session, c.Holder, c.Language
		}
	case !errors.Is(err, fs.ErrNotExist):
		h.Holder = ""
	}
	return h
}
