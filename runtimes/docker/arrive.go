package docker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/mountns"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// A sandbox that was made for nobody gets the users and the workspace of who claims
// it from outside: this process enters the container's mount namespace, mounts the
// workspace over the empty one, and gives the folders of its user to that. The engine
// knows nothing of it, and it goes with the container.

var _ runtimes.Adopter = (*Runtime)(nil)

// Adopts implements [runtimes.Adopter]: for root on the engine's host, whose numbers
// of users are the containers'.
func (r *Runtime) Adopts(w sandbox.Workspace) bool {
	return !r.remote && os.Geteuid() == 0 && !r.noEntry.Load() && w.Kind != sandbox.WorkspaceOverlay
}

// asMade makes a request what a container was asked for that is to become it, and
// reports whether something has to arrive in it for that: the workspace, or its user.
func asMade(req *request, got container.InspectResponse, spec sandbox.Spec) bool {
	if got.ContainerJSONBase == nil || got.HostConfig == nil {
		return false // it differs all the same
	}
	uid, has, asked := spec.Identity.UID, got.HostConfig.Tmpfs, req.HostConfig.Tmpfs
	if _, theirs, ok := strings.Cut(has[sandbox.HomeDir], ",uid="); ok {
		theirs, _, _ = strings.Cut(theirs, ",")
		uid, _ = strconv.Atoi(theirs) // 0 is nobody's, and differs
	}
	asked[sandbox.HomeDir] = ownedTmpfs(spec.Limits.Tmp, uid)
	at := slices.IndexFunc(req.HostConfig.Mounts, func(m mount.Mount) bool { return m.Target == sandbox.WorkspaceDir })
	empty, mounts := has[sandbox.WorkspaceDir], at >= 0
	switch {
	case mounts && empty != "" && spec.Workspace.Source != "":
		req.HostConfig.Mounts = slices.Delete(req.HostConfig.Mounts, at, at+1)
		asked[sandbox.WorkspaceDir] = empty
		return true
	case !mounts:
		asked[sandbox.WorkspaceDir] = ownedTmpfs(spec.Workspace.Size, uid)
	}
	return uid != spec.Identity.UID
}

// arrive makes a container that nobody has used that of a spec's user and workspace.
// Errors: Unsupported where it cannot be entered, and those of the engine.
func (i claimable) arrive(ctx context.Context, api *client.Client, got container.InspectResponse, spec sandbox.Spec) error {
	if got.State == nil || got.State.Pid == 0 {
		return sandbox.Errorf(sandbox.Unavailable, "sandbox %s has ended", i.handle.ID.Short())
	}
	if !ownNumbers(got.State.Pid) {
		return i.r.noWay(errors.New("its users are others on this host"))
	}
	dir := ""
	switch w := spec.Workspace; w.Kind {
	case sandbox.WorkspaceVolume:
		h := i.Handle()
		h.Session, h.Holder = spec.Session, spec.Holder
		v, err := i.r.newVolume(ctx, api, w.Source, volumeLabels(w.Source, h, spec), w.Size)
		if err != nil {
			return err
		}
		if dir = v.Mountpoint; os.Chown(dir, spec.Identity.UID, spec.Identity.UID) != nil {
			return i.r.noWay(errors.New("the engine's volumes are not on this host"))
		}
	case sandbox.WorkspaceHost:
		dir = w.Source
	default: // what was made with the container
	}
	var workspace *os.File
	if dir != "" {
		var err error
		if workspace, err = mountns.Clone(dir); err != nil {
			return i.r.noWay(err)
		}
		defer workspace.Close()
	}
	if err := i.r.writeUsers(i.handle.ID, spec, got); err != nil {
		return err
	}
	private, err := os.Stat(i.r.folder(i.handle.ID))
	if err != nil {
		return sandbox.Errorf(sandbox.Unavailable, "sandbox %s has ended: %w", i.handle.ID.Short(), err)
	}
	if err := mountns.Move(got.State.Pid, ioDir, private, workspace, spec.Identity.UID); err != nil {
		return i.r.noWay(err)
	}
	return nil
}

// noWay has no more workspaces arrive with this engine.
func (r *Runtime) noWay(why error) error {
	r.noEntry.Store(true)
	return sandbox.Errorf(sandbox.Unsupported, "give a workspace to a sandbox that runs: %w", why)
}

// ownNumbers reports whether a process's users have the numbers that they have here.
func ownNumbers(pid int) bool {
	theirs, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "uid_map"))
	ours, failed := os.ReadFile("/proc/self/uid_map")
	return err == nil && failed == nil && bytes.Equal(theirs, ours)
}
