package docker_test

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/volume"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
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
	if h := list[i]; h.Kind != runtimes.KindVolume || h.Owner != "" || h.Created.IsZero() {
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
