package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// readyPatience bounds how long a started container's agent may take to listen.
const readyPatience = 30 * time.Second

// makePatience bounds the making of a container that is not started yet.
const makePatience = time.Minute

// cleanPatience bounds the removal of what a failed step left.
const cleanPatience = 30 * time.Second

// Create makes and starts a container, and returns once its agent listens.
// Errors: NotFound for the image, Conflict where inspect differs from the plan,
// Unsupported for an OCI runtime that the engine lacks, Exhausted, Unavailable,
// and the context's.
func (r *Runtime) Create(ctx context.Context, id sandbox.ID, plan runtimes.Plan) (runtimes.Instance, error) {
	inst, err := r.create(ctx, id, plan)
	if err != nil {
		return nil, err
	}
	return r.handed(inst), nil
}

func (r *Runtime) create(ctx context.Context, id sandbox.ID, plan runtimes.Plan) (_ *Instance, err error) {
	if !id.Valid() || plan.Runtime != Name {
		return nil, sandbox.Errorf(sandbox.Invalid, "create %q by a plan of runtime %q", id, plan.Runtime)
	}
	var req request
	if err := json.Unmarshal(plan.Request, &req); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read the plan: %w", err)
	}
	api, err := r.cfg.Engine.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	inst := &Instance{r: r, handle: runtimes.Handle{
		Version: runtimes.HandleVersion, Runtime: Name, Kind: runtimes.KindSandbox, ID: id, Name: containerName(id),
		Session: plan.Spec.Session, Holder: plan.Spec.Holder, Language: plan.Spec.Language, Kept: plan.Spec.Keep, Created: time.Now().UTC().Truncate(time.Second), Running: true,
	}}
	defer func() {
		if err != nil {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanPatience)
			defer cancel()
			err = errors.Join(err, inst.Destroy(clean))
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.remote {
		return inst, r.createRemote(ctx, api, inst, plan, req)
	}
	ready, err := r.listenReady(id, plan.Spec.Holder)
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	// The engine goes on with what it was asked to make when its asker is gone,
	// and a removal that comes before that finds nothing to remove. So these
	// short steps are waited for, whatever becomes of ctx.
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), makePatience)
	defer cancel()
	if err := r.createContainer(making, api, inst.handle, plan, req); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := api.ContainerStart(ctx, inst.handle.Name, container.StartOptions{}); err != nil {
		return nil, startError(err)
	}
	return inst, r.awaitReady(ctx, inst, ready)
}

func containerName(id sandbox.ID) string { return containerPrefix + string(id) }

const containerPrefix = "caisson-"

// listenReady makes the private folder and the socket in it that the agent
// rings once it listens.
func (r *Runtime) listenReady(id sandbox.ID, holder string) (*net.UnixListener, error) {
	dir, err := r.makeFolder(id, holder)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, readyName)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the agent: %w", err), ln.Close())
	}
	return ln, nil
}

// labels are what an engine object carries, so that it is found again.
func labels(h runtimes.Handle, spec sandbox.Spec) map[string]string {
	l := map[string]string{}
	for k, v := range spec.Labels {
		l[Label+"user."+k] = v
	}
	l[labelID] = string(h.ID)
	l[labelHandle] = strconv.Itoa(h.Version)
	l[labelHolder], l[labelOwner] = h.Holder, h.Holder
	l[labelCreated] = h.Created.Format(time.RFC3339)
	if spec.Keep {
		l[labelKeep] = "true"
	}
	if h.Session != "" {
		l[labelSession] = h.Session
	}
	if h.Language != "" {
		l[labelLanguage] = h.Language
	}
	return l
}

func (r *Runtime) createContainer(ctx context.Context, api *client.Client, h runtimes.Handle, plan runtimes.Plan, req request) error {
	req.Config.Labels = labels(h, plan.Spec)
	mounts, err := r.mounts(ctx, api, h, plan, req.HostConfig.Mounts)
	if err != nil {
		return err
	}
	req.HostConfig.Mounts = mounts
	_, err = api.ContainerCreate(ctx, req.Config, req.HostConfig, nil, nil, h.Name)
	if err != nil {
		return createError(err, plan.Spec)
	}
	got, err := api.ContainerInspect(ctx, h.Name)
	if err != nil {
		return dockerclient.Wrap(err, "inspect the container")
	}
	if what := differs(req, got); what != "" {
		return sandbox.Errorf(sandbox.Conflict, "the engine made another container than was planned: %s differs", what).
			WithHint("look for a plugin, proxy or default of the engine that changes containers")
	}
	if r.remote {
		return nil
	}
	return r.writeUsers(h.ID, plan.Spec, got)
}

// mounts are what was planned, and what is this container's alone. Volumes are
// made.
func (r *Runtime) mounts(ctx context.Context, api *client.Client, h runtimes.Handle, plan runtimes.Plan, planned []mount.Mount) ([]mount.Mount, error) {
	mounts := slices.Clone(planned)
	for i, m := range mounts {
		if m.Type != mount.TypeVolume {
			continue
		}
		if m.Source == "" {
			mounts[i].Source = containerName(h.ID)
		}
		if m.Target != sandbox.WorkspaceDir {
			continue // the agent's, which is there
		}
		marks := volumeLabels(mounts[i].Source, h, plan.Spec)
		if plan.Spec.Workspace.Kind == sandbox.WorkspaceOverlay {
			if err := r.makeOverlay(ctx, api, plan.Spec.Workspace, marks); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.makeVolume(ctx, api, mounts[i].Source, marks, plan.Spec); err != nil {
			return nil, err
		}
	}
	if r.remote {
		return mounts, nil
	}
	return append(mounts, r.ownMounts(h.ID)...), r.makeUsers(h.ID)
}

// ownMounts are those of a container's private folder.
func (r *Runtime) ownMounts(id sandbox.ID) []mount.Mount {
	return append([]mount.Mount{{Type: mount.TypeBind, Source: r.folder(id), Target: ioDir}}, r.usersMounts(id)...)
}

// volumeLabels are a volume's. One that outlives its sandboxes carries the id
// that its name ends in, and not that of the first sandbox that it met.
func volumeLabels(name string, h runtimes.Handle, spec sandbox.Spec) map[string]string {
	if i := strings.LastIndexByte(name, '-'); i >= 0 && sandbox.ID(name[i+1:]).Valid() {
		h.ID, h.Language = sandbox.ID(name[i+1:]), ""
	}
	return labels(h, spec)
}

// makeVolume makes a volume and gives it to the sandbox's user. The engine
// makes it for root, and the agent may not change owners.
func (r *Runtime) makeVolume(ctx context.Context, api *client.Client, name string, labels map[string]string, spec sandbox.Spec) error {
	v, err := r.newVolume(ctx, api, name, labels, spec.Workspace.Size)
	if err != nil {
		return err
	}
	mapped, err := asksMapped(ctx, api)
	if err != nil {
		return err
	}
	uid := spec.Identity.UID
	if !r.remote && !mapped && os.Chown(v.Mountpoint, uid, uid) == nil {
		return nil
	}
	return r.giveVolume(ctx, api, name, spec) // who may not do it has the engine do it
}

func createError(err error, spec sandbox.Spec) error {
	wrapped := dockerclient.Wrap(err, "create a container of %s", spec.Image.Ref)
	if errors.Is(wrapped, sandbox.NotFound) {
		return sandbox.Errorf(sandbox.NotFound, "the engine has no image %s", spec.Image.Ref).
			WithHint("see what there is with: caisson images list")
	}
	return wrapped
}

func startError(err error) error {
	wrapped := dockerclient.Wrap(err, "start the container")
	if err != nil && strings.Contains(err.Error(), "seccomp") {
		return sandbox.Errorf(sandbox.Unsupported, "the engine cannot filter system calls: %w", wrapped).
			WithHint("run a kernel with CONFIG_SECCOMP_FILTER=y, and an engine that is built with seccomp; see: caisson doctor")
	}
	return wrapped
}

// awaitReady waits for the agent's ring, or for the container's end.
func (r *Runtime) awaitReady(ctx context.Context, inst *Instance, ready *net.UnixListener) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		exit, err := inst.Wait(ctx)
		if err == nil {
			err = r.noAgent(exit)
		}
		ended <- err
	}()
	rang := make(chan error, 1)
	go func() {
		c, err := ready.Accept()
		if err == nil {
			err = c.Close()
		}
		rang <- err
	}()
	select {
	case err := <-rang:
		return err
	case err := <-ended:
		if ctx.Err() != nil {
			return tooSlow(ctx)
		}
		return err
	case <-ctx.Done():
		return tooSlow(ctx)
	}
}

// noAgent says why a container that has ended has no agent.
func (r *Runtime) noAgent(exit sandbox.Exit) error {
	if exit.Code == notFirst {
		return sandbox.Errorf(sandbox.Conflict, "the engine started another process before the agent, although it was asked for none").
			WithHint("look for an init that the engine's OCI runtime, a plugin or a proxy puts into containers")
	}
	where := ""
	if !r.remote {
		where = ", and is the engine on this host"
	}
	return sandbox.Errorf(sandbox.Unavailable, "the agent did not start: %s", exit.Cause).
		WithHint("is %s a static caisson-agent for the engine's architecture%s?", r.cfg.Agent, where)
}

func tooSlow(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return sandbox.Errorf(sandbox.TimedOut, "the agent did not answer within %s of the container's start", readyPatience).
		WithHint("is the engine overloaded? see: docker ps, docker info")
}
