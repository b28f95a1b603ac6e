package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

var _ runtimes.Brancher = (*Runtime)(nil)

// maxLayers bounds how many layers an overlay lies on: the kernel takes their
// names in one page. A workspace with more is copied, and begins anew.
const maxLayers = 24

// Branch implements [runtimes.Brancher]: with overlays where this process is
// root on the engine's host, its volumes lie on a file system that takes
// them and nobody holds the workspace, by a stream through the engine elsewhere.
func (r *Runtime) Branch(ctx context.Context, of runtimes.BranchOf) (kept, made sandbox.Workspace, how sandbox.CopiedBy, err error) {
	w := of.Workspace
	if w.Kind != sandbox.WorkspaceVolume && w.Kind != sandbox.WorkspaceOverlay {
		return w, made, "", sandbox.Errorf(sandbox.Unsupported, "a workspace of kind %q cannot be copied", w.Kind).
			WithHint("create the session with --workspace volume, and bring the folder in with: caisson files push")
	}
	api, err := r.cfg.Engine.API(ctx)
	if err != nil {
		return w, made, "", err
	}
	if err := r.makeUsed(ctx, api, of); err != nil {
		return w, made, "", err
	}
	var layered []string
	if !of.Used {
		if layered, err = r.layers(ctx, api, w); err != nil {
			return w, made, "", err
		}
	}
	if layered == nil {
		made = sandbox.Workspace{Kind: sandbox.WorkspaceVolume, Source: runtimes.VolumePrefix + string(of.Made), Size: w.Size}
		return w, made, sandbox.CopiedByBytes, r.copyVolume(ctx, api, made.Source, of)
	}
	if w.Kind == sandbox.WorkspaceOverlay {
		// Its upper folder is a layer now, and not to be written any more.
		if err := removeVolume(ctx, api, w.Source); err != nil {
			return w, made, "", err
		}
	}
	on := func(id sandbox.ID) sandbox.Workspace {
		return sandbox.Workspace{Kind: sandbox.WorkspaceOverlay, Source: runtimes.VolumePrefix + string(id), Layers: layered, Size: w.Size}
	}
	return on(of.Kept), on(of.Made), sandbox.CopiedByOverlay, nil
}

// removeVolume removes a volume. A container takes hold of its volumes before it
// is listed, and lets go of them after: while one that is not listed holds the
// volume, its beginning or end is waited for.
func removeVolume(ctx context.Context, api *client.Client, name string) error {
	for end := time.Now().Add(removePatience); ; {
		err := dockerclient.Wrap(api.VolumeRemove(ctx, name, true), "remove volume %s", name)
		switch {
		case errors.Is(err, sandbox.NotFound):
			return nil
		case !errors.Is(err, sandbox.Conflict):
			return err
		}
		err = sandbox.Errorf(sandbox.Conflict, "%w", err).WithHint("remove what dead processes left with: caisson gc; see what else uses it with: docker ps -a --filter volume=%s", name)
		holders, unlisted := api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("volume", name))})
		if unlisted != nil || len(holders) > 0 || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(removeAgain / 10):
		}
	}
}

// makeUsed makes the volume of a workspace that was never used, so that there is
// something to branch.
func (r *Runtime) makeUsed(ctx context.Context, api *client.Client, of runtimes.BranchOf) error {
	if of.Workspace.Kind == sandbox.WorkspaceOverlay {
		return nil
	}
	_, err := api.VolumeInspect(ctx, of.Workspace.Source)
	err = dockerclient.Wrap(err, "find volume %s", of.Workspace.Source)
	if errors.Is(err, sandbox.NotFound) {
		spec := sandbox.Spec{Identity: of.Identity, Image: of.Image, Session: of.Session, Workspace: of.Workspace}
		return r.makeVolume(ctx, api, of.Workspace.Source, volumeLabels(of.Workspace.Source, branchHandle(of), spec), spec)
	}
	return err
}

// upperOf names the volume with what was written over an overlay's layers.
func upperOf(source string) string {
	return runtimes.UpperPrefix + strings.TrimPrefix(source, runtimes.VolumePrefix)
}

// layers returns what overlays on a workspace lie on, and nil where there can be
// none.
func (r *Runtime) layers(ctx context.Context, api *client.Client, w sandbox.Workspace) ([]string, error) {
	id, ours := strings.CutPrefix(w.Source, runtimes.VolumePrefix)
	if r.remote || os.Geteuid() != 0 || !ours || !sandbox.ID(id).Valid() || len(w.Layers) >= maxLayers {
		return nil, nil
	}
	top := w.Source
	if w.Kind == sandbox.WorkspaceOverlay {
		top = upperOf(w.Source)
	}
	v, err := api.VolumeInspect(ctx, top)
	err = dockerclient.Wrap(err, "find volume %s", top)
	if errors.Is(err, sandbox.NotFound) && w.Kind == sandbox.WorkspaceOverlay {
		return w.Layers, nil // it was never used
	}
	if err != nil {
		return nil, err
	}
	if !carries(v.Mountpoint) {
		return nil, nil
	}
	if w.Kind == sandbox.WorkspaceOverlay {
		// A file of a lower layer with several names, once written, is known by
		// some of them through the index alone, and no layer has an index.
		index, err := os.ReadDir(filepath.Join(v.Mountpoint, "work", "index"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, sandbox.Errorf(sandbox.Internal, "look at a layer's index: %w", err)
		}
		if len(index) > 0 {
			return nil, nil
		}
	}
	return append([]string{top}, w.Layers...), nil
}

// Magic numbers of file systems that an overlay can write to.
const (
	ext4Magic, xfsMagic, btrfsMagic, tmpfsMagic = 0xef53, 0x58465342, 0x9123683e, 0x01021994
)

// carries reports whether a folder of this host can be a layer.
func carries(dir string) bool {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil || strings.ContainsAny(dir, ":,\\") {
		return false
	}
	switch uint32(st.Type) {
	case ext4Magic, xfsMagic, btrfsMagic, tmpfsMagic:
		return true
	}
	return false
}

// makeOverlay makes the volume of an overlay, and its upper folder where there
// is none yet.
func (r *Runtime) makeOverlay(ctx context.Context, api *client.Client, w sandbox.Workspace, labels map[string]string) error {
	if _, err := api.VolumeInspect(ctx, w.Source); err == nil {
		return nil
	}
	lower := make([]string, 0, len(w.Layers))
	for _, name := range w.Layers {
		v, err := api.VolumeInspect(ctx, name)
		if err != nil {
			return dockerclient.Wrap(err, "find layer %s of the workspace", name)
		}
		lower = append(lower, layerDir(v))
	}
	v, err := r.newVolume(ctx, api, upperOf(w.Source), labels, w.Size)
	if err != nil {
		return err
	}
	if err := makeUpper(v.Mountpoint, lower[0]); err != nil {
		return sandbox.Errorf(sandbox.Unsupported, "make a layer: %w", err).WithHint("run as root on the engine's host")
	}
	// With an index, a file that has several names keeps them; with redirects,
	// folders of a layer below can be renamed.
	options := fmt.Sprintf("nosuid,nodev,index=on,redirect_dir=on,lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(lower, ":"),
		filepath.Join(v.Mountpoint, "upper"), filepath.Join(v.Mountpoint, "work"))
	_, err = api.VolumeCreate(ctx, volume.CreateOptions{Name: w.Source, Driver: "local", Labels: labels,
		DriverOpts: map[string]string{"type": "overlay", "device": "overlay", "o": options}})
	return dockerclient.Wrap(err, "create volume %s", w.Source)
}

// layerDir is the folder of a volume that is a layer.
func layerDir(v volume.Volume) string {
	if strings.HasPrefix(v.Name, runtimes.UpperPrefix) {
		return filepath.Join(v.Mountpoint, "upper")
	}
	return v.Mountpoint
}

// makeUpper makes the folders that an overlay writes to, as the folder that is
// seen through them. Only root is ever in the folder around them.
func makeUpper(dir, like string) error {
	st, err := os.Lstat(like)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner of a layer cannot be read")
	}
	upper := filepath.Join(dir, "upper")
	for _, d := range []string{upper, filepath.Join(dir, "work")} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return errors.Join(os.Chown(upper, int(sys.Uid), int(sys.Gid)), os.Chmod(upper, st.Mode()), os.Chtimes(upper, time.Time{}, st.ModTime()))
}

func branchHandle(of runtimes.BranchOf) runtimes.Handle {
	return runtimes.Handle{Version: runtimes.HandleVersion, ID: of.Made, Holder: of.Holder, Session: of.Session, Created: time.Now().UTC().Truncate(time.Second)}
}

// copyVolume copies a workspace into a new volume, through the engine.
func (r *Runtime) copyVolume(ctx context.Context, api *client.Client, to string, of runtimes.BranchOf) (err error) {
	h := branchHandle(of)
	if of.Workspace.Kind == sandbox.WorkspaceOverlay {
		if err := r.makeOverlay(ctx, api, of.Workspace, volumeLabels(of.Workspace.Source, h, sandbox.Spec{})); err != nil {
			return err
		}
	}
	if _, err := r.newVolume(ctx, api, to, labels(h, sandbox.Spec{}), of.Workspace.Size); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanPatience)
			defer cancel()
			err = errors.Join(err, removeVolume(clean, api, to))
		}
	}()
	return r.withVolume(ctx, api, of.Workspace.Source, of.Session, of.Image, func(source string) error {
		return r.withVolume(ctx, api, to, of.Session, of.Image, func(target string) error {
			// The folder itself goes along, with its owner and mode.
			stream, err := readVolume(ctx, api, source)
			if err != nil {
				return dockerclient.Wrap(err, "read the workspace")
			}
			defer stream.Close()
			return dockerclient.Wrap(api.CopyToContainer(ctx, target, "/", stream, container.CopyToContainerOptions{}), "copy the workspace")
		})
	})
}

// mountAttempts is how often the engine is asked to mount layers. The kernel refuses
// that while they are still mounted elsewhere, as in the mounts that a sandbox which is
// just being made has copied and is about to leave.
const mountAttempts = 5

// readVolume reads what is mounted into a container.
func readVolume(ctx context.Context, api *client.Client, name string) (stream io.ReadCloser, err error) {
	for range mountAttempts {
		stream, _, err = api.CopyFromContainer(ctx, name, fillDir)
		if err == nil || !strings.Contains(err.Error(), "device or resource busy") {
			return stream, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil, err
}
