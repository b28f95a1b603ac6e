package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Instance is one container. It is safe for concurrent use.
type Instance struct {
	r *Runtime

	mu     sync.Mutex
	handle runtimes.Handle // its id, name and kind stay as they are, and are read without the lock
	spare  *relay          // made to see that the agent listens, for who dials first
}

var (
	_ runtimes.Instance = (*Instance)(nil)
	_ runtimes.Pauser   = (*Instance)(nil)
	_ runtimes.Sampler  = (*Instance)(nil)
)

// Handle says how to find the container again.
func (i *Instance) Handle() runtimes.Handle {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.handle
}

// Dial connects to the agent's socket. Errors: Unavailable.
func (i *Instance) Dial(ctx context.Context) (net.Conn, error) {
	if i.r.remote {
		return i.dialRemote(ctx)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", filepath.Join(i.r.folder(i.handle.ID), socketName))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, sandbox.Errorf(sandbox.Unavailable, "connect to the agent of sandbox %s: %w", i.handle.ID.Short(), err)
	}
	return c, nil
}

// Wait returns once the container does not run any more, or is gone.
func (i *Instance) Wait(ctx context.Context) (sandbox.Exit, error) {
	exit := sandbox.Exit{Code: 137, Reason: sandbox.ReasonInfra}
	api, err := i.r.cfg.Engine.API(ctx)
	if err != nil {
		return exit, err
	}
	waited, failed := api.ContainerWait(ctx, i.handle.Name, container.WaitConditionNotRunning)
	select {
	case err := <-failed:
		err = dockerclient.Wrap(err, "wait for the container")
		if errors.Is(err, sandbox.NotFound) {
			exit.Cause = "the container was removed"
			return exit, nil
		}
		return exit, err
	case w := <-waited:
		exit.Code = int(w.StatusCode)
	}
	got, err := api.ContainerInspect(ctx, i.handle.Name)
	if err != nil {
		err = dockerclient.Wrap(err, "inspect the container")
		if errors.Is(err, sandbox.NotFound) {
			exit.Cause = "the container was removed"
			return exit, nil
		}
		return exit, err
	}
	switch {
	case got.State != nil && (got.State.Status == container.StateRemoving || got.State.Dead):
		exit.Cause = "the container was removed"
	case got.State != nil && got.State.OOMKilled && exit.Code == 137:
		exit.Cause = "the container's agent was killed, and the container had run out of memory"
	case exit.Code == 137:
		exit.Cause = "the container was killed"
	default:
		exit.Cause = fmt.Sprintf("the container ended with code %d", exit.Code)
	}
	return exit, nil
}

// freezeAttempts is how often the engine is asked to freeze a container. With cgroup
// v1 a freeze fails where a process is just being made, and the engine's runtime
// gives up after some tries of its own and lets all processes go on.
const freezeAttempts = 5

// Pause freezes every process of the container. Errors: Unavailable where they are
// too busy to be frozen.
func (i *Instance) Pause(ctx context.Context) error {
	api, err := i.r.cfg.Engine.API(ctx)
	if err != nil {
		return err
	}
	for range freezeAttempts {
		err = api.ContainerPause(ctx, i.handle.Name)
		if err == nil || !strings.Contains(err.Error(), "unable to freeze") {
			return dockerclient.Wrap(err, "pause the container")
		}
	}
	return sandbox.Errorf(sandbox.Unavailable, "pause the container: %w", err).WithHint("its processes are busy: pause it again")
}

// Resume lets them go on.
func (i *Instance) Resume(ctx context.Context) error {
	api, err := i.r.cfg.Engine.API(ctx)
	if err != nil {
		return err
	}
	return dockerclient.Wrap(api.ContainerUnpause(ctx, i.handle.Name), "resume the container")
}

// Destroy kills and removes the container, its own volume and its folder, or
// the volume or folder that the handle stands for. What is gone already is no
// error.
func (i *Instance) Destroy(ctx context.Context) error {
	api, err := i.r.cfg.Engine.API(ctx)
	if err != nil {
		return err
	}
	i.dropSpare()
	vols := []string{containerName(i.handle.ID)}
	switch i.handle.Kind {
	case runtimes.KindVolume:
		vols = []string{i.handle.Name}
		if ws := runtimes.VolumePrefix + string(i.handle.ID); i.handle.Name == ws || i.handle.Name == upperOf(ws) {
			vols = []string{ws, upperOf(ws)} // an overlay, or what is left of one
		}
	case runtimes.KindSandbox:
		if err := i.removeContainer(ctx, api); err != nil {
			return err
		}
	}
	var errs []error
	for _, vol := range vols {
		errs = append(errs, removeVolume(ctx, api, vol))
	}
	return errors.Join(append(errs, i.r.removeFolder(i.handle.ID))...)
}

// removeContainer has the container removed. Where the engine fails for a reason
// that passes, the end of it is waited for, but nobody is told how it ended: a
// removal that somebody else began, such as a process that was killed while it
// cleaned up, may fail where the container was just being started. So the engine
// is asked again.
func (i *Instance) removeContainer(ctx context.Context, api *client.Client) error {
	for end := time.Now().Add(removePatience); ; {
		err := api.ContainerRemove(ctx, i.handle.Name, container.RemoveOptions{Force: true, RemoveVolumes: true})
		err = dockerclient.Wrap(err, "remove the container")
		switch {
		case errors.Is(err, sandbox.NotFound):
			return nil
		case !passes(err) || time.Now().After(end):
			return err
		}
		if gone, err := i.awaitRemoval(ctx, api); gone || err != nil {
			return err
		}
	}
}

// passes reports a removal that failed for a reason that passes, after which the
// container is still known and may be removed:
//   - somebody else is at it;
//   - the engine wrote into the container's own folder while it emptied it: it
//     saves what it knows of one when news of it come late, of memory that ran out
//     say (moby/moby#52161);
//   - the container outlived its kill by more than the ten seconds that the engine
//     waits: a flood of processes takes longer than that to die where there is
//     little of a processor to be had. The signal stands.
func passes(err error) bool {
	if err == nil {
		return false
	}
	told := err.Error()
	return errors.Is(err, sandbox.Conflict) ||
		strings.Contains(told, "unable to remove filesystem") && strings.Contains(told, "directory not empty") ||
		strings.Contains(told, "did not receive an exit event")
}

const (
	// removePatience bounds how long a reason that passes is waited for.
	removePatience = 30 * time.Second
	// removeAgain is when the engine is asked again meanwhile.
	removeAgain = 500 * time.Millisecond
)

// awaitRemoval waits for a removal that somebody else has begun, for a while.
func (i *Instance) awaitRemoval(ctx context.Context, api *client.Client) (gone bool, err error) {
	short, cancel := context.WithTimeout(ctx, removeAgain)
	defer cancel()
	waited, failed := api.ContainerWait(short, i.handle.Name, container.WaitConditionRemoved)
	select {
	case end := <-waited:
		return end.Error == nil, nil // that it failed is told those who wait by then
	case err = <-failed:
	}
	switch err = dockerclient.Wrap(err, "wait for the container's removal"); {
	case errors.Is(err, sandbox.NotFound):
		return true, nil
	case short.Err() != nil && ctx.Err() == nil:
		return false, nil
	}
	return false, err
}
