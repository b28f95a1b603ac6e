package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// An engine that shares no folder with us has the agent in a volume, and its
// socket in a tmpfs of the container's that nobody but a relay reaches.
const (
	agentDir   = runDir + "/bin"
	agentName  = "caisson-agent"
	labelAgent = Label + "agent"
	// relayReserve is how many tasks a container may have for relays, beside the
	// agent's own reserve.
	relayReserve = 24
	// Where volumes are mounted to be filled.
	fillDir = "/caisson-fill"
)

// agentVolume is a volume that holds the agent for an engine.
type agentVolume struct {
	name    string
	content []byte
	filled  string // when the engine made it that this process saw filled; "" is none
}

// planRemote changes a request for an engine that shares no folder with us.
func (r *Runtime) planRemote(ctx context.Context, config *container.Config, host *container.HostConfig) error {
	v, err := r.agentFor(ctx)
	if err != nil {
		return err
	}
	config.Entrypoint = []string{path.Join(agentDir, agentName)}
	pids := *host.PidsLimit + relayReserve
	host.PidsLimit = &pids
	host.Tmpfs[ioDir] = "rw,noexec,nosuid,nodev,size=64k,mode=0700"
	for i, m := range host.Mounts {
		if m.Target == agentPath {
			host.Mounts[i] = mount.Mount{Type: mount.TypeVolume, Source: v.name, Target: agentDir, ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}
		}
	}
	return nil
}

// agentFor reads the agent for the engine's architecture, once.
func (r *Runtime) agentFor(ctx context.Context) (*agentVolume, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.volume != nil {
		return r.volume, nil
	}
	api, err := r.cfg.Engine.API(ctx)
	if err != nil {
		return nil, err
	}
	v, err := api.ServerVersion(ctx)
	if err != nil {
		return nil, dockerclient.Wrap(err, "ask the engine for its architecture")
	}
	name := r.cfg.Agent
	if v.Arch != runtime.GOARCH {
		name += "-" + v.Arch
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Unsupported, "no caisson-agent for the engine, which is linux/%s: %w", v.Arch, err).
			WithHint("build it: GOARCH=%s CGO_ENABLED=0 go build -o %s ./cmd/caisson-agent", v.Arch, name)
	}
	sum := sha256.Sum256(content)
	r.volume = &agentVolume{name: "caisson-agent-" + hex.EncodeToString(sum[:8]), content: content}
	return r.volume, nil
}

// createRemote makes and starts a container, and waits for a relay to reach its
// agent.
func (r *Runtime) createRemote(ctx context.Context, api *client.Client, inst *Instance, plan runtimes.Plan, req request) error {
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), makePatience)
	defer cancel()
	if err := r.fillAgent(making, api, plan.Spec.Image); err != nil {
		return err
	}
	if err := r.createContainer(making, api, inst.handle, plan, req); err != nil {
		return err
	}
	// Nobody can remove it any more; somebody may have before.
	if err := r.fillAgent(making, api, plan.Spec.Image); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := api.ContainerStart(ctx, inst.handle.Name, container.StartOptions{}); err != nil {
		return startError(err)
	}
	return r.awaitRelay(ctx, inst)
}

// awaitRelay opens a first relay, which waits for the agent by itself.
func (r *Runtime) awaitRelay(ctx context.Context, inst *Instance) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	c, err := inst.openRelay(ctx)
	if err == nil {
		inst.mu.Lock()
		inst.spare = c
		inst.mu.Unlock()
		return nil
	}
	if ctx.Err() != nil {
		return tooSlow(ctx)
	}
	// Why there is no relay, the container's end tells best.
	if exit, waitErr := inst.Wait(ctx); waitErr == nil {
		return r.noAgent(exit)
	}
	return err
}

// fillAgent puts the agent into its volume. What another process of this host
// does at the same time, it waits for.
func (r *Runtime) fillAgent(ctx context.Context, api *client.Client, image sandbox.Image) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.volume
	if v == nil {
		return sandbox.Errorf(sandbox.Invalid, "create by a plan that this runtime has not made")
	}
	if v.filled != "" {
		// Somebody may have removed it since: a container that is made gets an empty one.
		if is, err := api.VolumeInspect(ctx, v.name); err == nil && is.CreatedAt == v.filled {
			return nil
		}
		v.filled = ""
	}
	if err := os.MkdirAll(filepath.Dir(r.cfg.Base), 0o700); err != nil {
		return sandbox.Errorf(sandbox.Denied, "make the folder for locks: %w", err).WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	unlock, err := filelock.Lock(ctx, r.cfg.Base+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	is, err := api.VolumeCreate(ctx, volume.CreateOptions{Name: v.name, Labels: map[string]string{labelAgent: agentName}})
	if err != nil {
		return dockerclient.Wrap(err, "create volume %s", v.name)
	}
	err = r.withVolume(ctx, api, v.name, "", image, func(helper string) error {
		there, err := api.ContainerStatPath(ctx, helper, path.Join(fillDir, agentName))
		if err == nil && there.Size == int64(len(v.content)) && there.Mode&0o111 != 0 {
			return nil
		}
		entry := tar.Header{Typeflag: tar.TypeReg, Name: agentName, Mode: 0o755, Size: int64(len(v.content)), ModTime: time.Unix(0, 0)}
		return send(ctx, api, helper, fillDir, entry, v.content)
	})
	if err == nil {
		v.filled = is.CreatedAt
	}
	return err
}

// giveVolume gives a volume to a sandbox's user. Only the engine can, on a
// machine that is not ours.
func (r *Runtime) giveVolume(ctx context.Context, api *client.Client, name string, spec sandbox.Spec) error {
	uid := spec.Identity.UID
	return r.withVolume(ctx, api, name, spec.Session, spec.Image, func(helper string) error {
		// One that was used before keeps its mode and time.
		is, err := api.ContainerStatPath(ctx, helper, fillDir)
		if err != nil {
			return dockerclient.Wrap(err, "look at volume %s", name)
		}
		mode := int64(is.Mode.Perm())
		for _, bit := range []struct {
			has os.FileMode
			tar int64
		}{{os.ModeSetuid, 0o4000}, {os.ModeSetgid, 0o2000}, {os.ModeSticky, 0o1000}} {
			if is.Mode&bit.has != 0 {
				mode |= bit.tar
			}
		}
		entry := tar.Header{Typeflag: tar.TypeDir, Name: path.Base(fillDir) + "/", Mode: mode, Uid: uid, Gid: uid, ModTime: is.Mtime, Format: tar.FormatPAX}
		return send(ctx, api, helper, path.Dir(fillDir), entry, nil)
	})
}

// withVolume calls use with a container that has a volume at fillDir and is
// never started. It is this process's, and listed like a sandbox.
func (r *Runtime) withVolume(ctx context.Context, api *client.Client, name, session string, image sandbox.Image, use func(helper string) error) error {
	h := runtimes.Handle{
		Version: runtimes.HandleVersion, ID: sandbox.NewID(), Holder: r.cfg.Holder, Session: session, Created: time.Now().UTC().Truncate(time.Second),
	}
	marks := labels(h, sandbox.Spec{})
	marks[labelAgent] = "helper"
	ref := image.ID
	if ref == "" {
		ref = image.Ref
	}
	made, err := api.ContainerCreate(ctx, &container.Config{
		Image: ref, Entrypoint: []string{"/never"}, Cmd: []string{}, Labels: marks, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}, &container.HostConfig{
		NetworkMode: "none", LogConfig: container.LogConfig{Type: "none"},
		Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: name, Target: fillDir, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}},
	}, nil, nil, containerName(h.ID))
	if err != nil {
		return createError(err, sandbox.Spec{Image: image})
	}
	err = use(made.ID)
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanPatience)
	defer cancel()
	gone := (&Instance{r: r, handle: runtimes.Handle{Name: made.ID}}).removeContainer(clean, api)
	return errors.Join(err, gone)
}

// send unpacks one entry into a container.
func send(ctx context.Context, api *client.Client, name, dir string, entry tar.Header, content []byte) error {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	err := w.WriteHeader(&entry)
	if err == nil {
		_, err = w.Write(content)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return sandbox.Errorf(sandbox.Internal, "pack %s: %w", entry.Name, err)
	}
	return dockerclient.Wrap(api.CopyToContainer(ctx, name, dir, &buf, container.CopyToContainerOptions{}), "fill a volume")
}
