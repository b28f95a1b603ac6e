package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// List returns the containers, volumes and folders that carry caisson's label,
// and volumes that carry the name of a sandbox's alone: an engine that makes a
// container makes what volumes are missing, without labels. A volume or folder
// stands for itself only where its container is gone. A volume with the agent,
// which is kept for the next sandbox, is listed where no sandbox has it.
func (r *Runtime) List(ctx context.Context) ([]runtimes.Handle, error) {
	api, err := r.cfg.Engine.API(ctx)
	if err != nil {
		return nil, err
	}
	mine := filters.NewArgs(filters.Arg("label", labelID))
	// Folders and volumes come before their containers and go after them: they
	// are listed first, so that one of a sandbox that is just being made is
	// never seen alone.
	folders, err := os.ReadDir(r.cfg.Base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, sandbox.Errorf(sandbox.Denied, "list sockets: %w", err)
	}
	volumes, err := api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", containerPrefix))})
	if err != nil {
		return nil, dockerclient.Wrap(err, "list volumes")
	}
	containers, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	if err != nil {
		return nil, dockerclient.Wrap(err, "list containers")
	}
	var handles []runtimes.Handle
	seen := map[sandbox.ID]bool{}
	add := func(h runtimes.Handle) {
		if h.ID.Valid() && !seen[h.ID] {
			seen[h.ID] = true
			handles = append(handles, h)
		}
	}
	used := map[string]bool{}
	for _, c := range containers {
		h := fromLabels(c.Labels, runtimes.KindSandbox)
		note := r.claimFile(h.ID)
		for _, m := range c.Mounts {
			used[m.Name] = true
			if m.Destination == ioDir && m.Type == mount.TypeBind { // which may be another caisson's
				note = m.Source + claimSuffix
			}
		}
		h = withClaim(h, note)
		h.Name, h.Running = containerName(h.ID), c.State == container.StateRunning || c.State == container.StatePaused
		add(h)
	}
	for _, v := range volumes.Volumes {
		if h := fromVolume(v); !used[v.Name] || !isAgent(v) {
			add(h)
		}
	}
	for _, f := range folders {
		if h, ok := r.fromFolder(f); ok {
			add(h)
		}
	}
	return handles, nil
}

func fromLabels(l map[string]string, kind string) runtimes.Handle {
	version, _ := strconv.Atoi(l[labelHandle])              // 0 is a version that nobody writes
	created, _ := time.Parse(time.RFC3339, l[labelCreated]) // the zero time is "long ago"
	return runtimes.Handle{
		Version: version, Runtime: Name, Kind: kind, ID: sandbox.ID(l[labelID]), Session: l[labelSession],
		Holder: cmp.Or(l[labelHolder], l[labelOwner]), Language: l[labelLanguage], Created: created, Kept: l[labelKeep] != "",
	}
}

// fromVolume takes what labels do not tell from the name and the engine.
func fromVolume(v *volume.Volume) runtimes.Handle {
	h := fromLabels(v.Labels, runtimes.KindVolume)
	h.Name = v.Name
	id, named := strings.CutPrefix(v.Name, containerPrefix)
	switch {
	case isAgent(v):
		sum := sha256.Sum256([]byte(v.Name)) // it is nobody's in particular, and has no id
		h.ID, h.Kept = sandbox.ID(hex.EncodeToString(sum[:16])), true
	case named && len(v.Labels) == 0:
		h.ID = sandbox.ID(id)
	default:
		return h
	}
	h.Version = runtimes.HandleVersion
	h.Created, _ = time.Parse(time.RFC3339, v.CreatedAt) // the zero time is "long ago"
	return h
}

// isAgent reports whether a volume holds the agent for an engine.
func isAgent(v *volume.Volume) bool { return v.Labels[labelAgent] == agentName }

// fromFolder stands for a private folder, or the note of one.
func (r *Runtime) fromFolder(f fs.DirEntry) (runtimes.Handle, bool) {
	id := sandbox.ID(strings.TrimSuffix(f.Name(), noteSuffix))
	info, err := f.Info()
	if err != nil || !id.Valid() {
		return runtimes.Handle{}, false
	}
	holder, err := os.Readlink(r.note(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return runtimes.Handle{}, false
	}
	return withClaim(runtimes.Handle{
		Version: runtimes.HandleVersion, Runtime: Name, Kind: runtimes.KindFolder, ID: id, Name: r.folder(id),
		Holder: holder, Created: info.ModTime(),
	}, r.claimFile(id)), true
}

// remains reports whether a sandbox whose container is gone left a volume of its
// own or a folder.
func (r *Runtime) remains(ctx context.Context, api *client.Client, id sandbox.ID) bool {
	for _, path := range []string{r.folder(id), r.note(id)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	_, err := api.VolumeInspect(ctx, containerName(id))
	return err == nil
}

// Attach finds a sandbox by its handle. Errors: NotFound where neither
// container nor volume nor folder is left, Unsupported for a handle of another
// version.
func (r *Runtime) Attach(ctx context.Context, h runtimes.Handle) (runtimes.Instance, error) {
	inst, err := r.attach(ctx, h)
	if err != nil {
		return nil, err
	}
	return r.handed(inst), nil
}

func (r *Runtime) attach(ctx context.Context, h runtimes.Handle) (*Instance, error) {
	if h.Runtime != Name || !h.ID.Valid() {
		return nil, sandbox.Errorf(sandbox.Invalid, "handle %q of runtime %q", h.ID, h.Runtime)
	}
	if h.Version != runtimes.HandleVersion {
		return nil, sandbox.Errorf(sandbox.Unsupported, "handle of version %d; this caisson knows %d", h.Version, runtimes.HandleVersion).
			WithHint("remove it with the caisson that made it, or with docker rm")
	}
	inst := &Instance{r: r, handle: h}
	if h.Kind != runtimes.KindSandbox {
		return inst, nil // there is a part to destroy: the listing saw it
	}
	inst.handle.Name = containerName(h.ID)
	if _, err := os.Lstat(filepath.Join(r.folder(h.ID), socketName)); err == nil {
		// Its agent has listened: whether it still does, Dial finds out sooner
		// than the engine can say.
		return inst, nil
	}
	api, err := r.cfg.Engine.API(ctx)
	if err != nil {
		return nil, err
	}
	got, err := api.ContainerInspect(ctx, inst.handle.Name)
	if err != nil {
		err = dockerclient.Wrap(err, "find sandbox %s", h.ID.Short())
		if errors.Is(err, sandbox.NotFound) && r.remains(ctx, api, h.ID) {
			return inst, nil // somebody took the container alone: the rest can be destroyed
		}
		return nil, err
	}
	inst.handle.Running = got.State != nil && got.State.Running
	return inst, nil
}
