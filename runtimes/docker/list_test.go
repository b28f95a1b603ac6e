package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// A volume that the engine made again has a sandbox's name and no label: it is
// listed, with its age, and goes. Other people's are not.
func TestListUnlabelledVolumes(t *testing.T) {
	t.Parallel()
	engine := dockertest.Engine(t)
	api, err := engine.API(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rt, err := docker.New(docker.Config{Engine: engine, Agent: "/agent", Base: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	id, stranger := sandbox.NewID(), sandbox.NewID()
	labelled := map[string]string{"of": "somebody else"}
	for name, labels := range map[string]map[string]string{
		"caisson-" + string(id): nil, "caisson-data": nil, "caisson-" + string(stranger): labelled,
	} {
		if _, err := api.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = api.VolumeRemove(t.Context(), name, true) }()
	}
	list, err := rt.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(list, func(h runtimes.Handle) bool { return h.ID == stranger }) {
		t.Error("a stranger's volume is listed")
	}
	i := slices.IndexFunc(list, func(h runtimes.Handle) bool { return h.ID == id })
	if i < 0 {
		t.Fatalf("the volume is not in %+v", list)
	}
	if h := list[i]; h.Kind != runtimes.KindVolume || h.Holder != "" || h.Created.IsZero() {
		t.Errorf("%+v", h)
	}
	inst, err := rt.Attach(t.Context(), list[i])
	if err == nil {
		err = inst.Destroy(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.VolumeInspect(t.Context(), "caisson-"+string(id)); err == nil {
		t.Error("it is still there")
	}
}

// TestListAgents lists a volume with the agent, as kept, while no sandbox has it.
func TestListAgents(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	image := kit.Image(t, "shell")
	rt := kit.Runtime(t)
	id, name := sandbox.NewID(), "caisson-agent-test-"+string(sandbox.NewID()[:8])
	if _, err := kit.API.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: map[string]string{"dev.caisson.agent": "caisson-agent"}}); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	defer func() { _ = kit.API.VolumeRemove(ctx, name, true) }() // it is gone by then
	made, err := kit.API.ContainerCreate(t.Context(), &container.Config{Image: image.ID, Labels: map[string]string{"dev.caisson.id": string(id)}},
		&container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: name, Target: "/x"}}}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	find := func() *runtimes.Handle {
		t.Helper()
		list, err := rt.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(list, func(h runtimes.Handle) bool { return h.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	used := find()
	if err := kit.API.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if used != nil {
		t.Errorf("one that is used is listed: %+v", used)
	}
	h := find()
	if h == nil || h.Kind != runtimes.KindVolume || !h.Kept || h.Holder != "" || h.Created.IsZero() || !h.ID.Valid() {
		t.Fatalf("%+v", h)
	}
	inst, err := rt.Attach(t.Context(), *h)
	if err == nil {
		err = inst.Destroy(t.Context())
	}
	if err != nil || find() != nil {
		t.Errorf("%v; afterwards: %+v", err, find())
	}
}

// Whoever is killed between the note of a holder and its folder, or between a
// folder's removal and that of its note, leaves something with a name on it.
func TestListNotes(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	rt, err := docker.New(docker.Config{Engine: dockertest.Engine(t), Agent: "/agent", Base: base})
	if err != nil {
		t.Fatal(err)
	}
	alone, whole := sandbox.NewID(), sandbox.NewID()
	err = errors.Join(
		os.Symlink("me", filepath.Join(base, string(alone)+".owner")),
		os.Symlink("me", filepath.Join(base, string(whole)+".owner")), os.Mkdir(filepath.Join(base, string(whole)), 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	list, err := rt.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, h := range list {
		if h.ID != alone && h.ID != whole {
			continue // of another test
		}
		found++
		if h.Holder != "me" || h.Kind != runtimes.KindFolder {
			t.Errorf("%+v", h)
		}
		inst, err := rt.Attach(t.Context(), h)
		if err == nil {
			err = inst.Destroy(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 || found != 2 {
		t.Errorf("found %d, left %v, %v", found, left, err)
	}
}
