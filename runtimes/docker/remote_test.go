package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/docker/docker/api/types/volume"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestRemoteConformance runs the suite on an engine that is reached over TCP
// with TLS alone, and shares no folder with the runtime.
func TestRemoteConformance(t *testing.T) {
	t.Parallel()
	kit := enginetest.NewRemote(t, "shell")
	image := kit.Image(t, "shell")
	for _, kind := range []sandbox.WorkspaceKind{sandbox.WorkspaceTmpfs, sandbox.WorkspaceVolume} {
		t.Run(string(kind), func(t *testing.T) {
			rt := kit.Runtime(t)
			runtimetest.Run(t, runtimetest.Subject{
				New: func(testing.TB) runtimes.Runtime { return rt },
				Spec: func(testing.TB) sandbox.Spec {
					return sandbox.Spec{
						Language: "shell", Session: "suite", Image: image, Holder: kit.Holder, Identity: sandbox.IdentityFor(sandbox.ID(kit.Holder)),
						Workspace: sandbox.Workspace{Kind: kind}, Labels: map[string]string{"test": "conformance"},
					}
				},
				Faults: []runtimetest.Fault{
					{Name: "an agent that ends at once", New: func(t testing.TB) runtimes.Runtime { return runtimeWith(t, kit, kit.Engine, "/bin/false") }},
				},
				Leftovers: func(testing.TB) []string { return kit.Leftovers(context.Background()) },
			})
		})
	}
	caps, err := kit.Runtime(t).Capabilities(t.Context())
	if err != nil || caps.LocalStreams {
		t.Errorf("capabilities %+v, %v", caps, err)
	}
	spec := sandbox.Spec{Image: image, Identity: sandbox.Identity{UID: 1, RunnerUID: 2}, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: "/tmp"}}
	if _, err := kit.Runtime(t).Plan(t.Context(), spec); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("a folder of this host: %v", err)
	}
}

// TestRemoteWithoutAgent says what is missing for an engine whose agent is not
// there.
func TestRemoteWithoutAgent(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	rt, err := docker.New(docker.Config{Engine: kit.Engine, Agent: "/no/such/agent", Base: kit.Base, Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Image: sandbox.Image{Ref: "x"}, Identity: sandbox.Identity{UID: 1, RunnerUID: 2}}
	if _, err := rt.Plan(t.Context(), spec); !errors.Is(err, sandbox.Unsupported) || sandbox.HintOf(err) == "" {
		t.Errorf("error %v, hint %q", err, sandbox.HintOf(err))
	}
}

// TestRemoteAgentRemoved takes the agent's volume away behind a runtime that has
// filled it, and leaves an empty one, as the engine makes it for a container. The
// next sandbox has its agent all the same.
func TestRemoteAgentRemoved(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	image := kit.Image(t, "shell")
	// Bytes behind the program make its volume this test's own.
	program, err := os.ReadFile(kit.Agent)
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "caisson-agent")
	if err := enginetest.WriteProgram(agent, append(program, sandbox.NewID()...)); err != nil {
		t.Fatal(err)
	}
	rt, err := docker.New(docker.Config{Engine: kit.Engine, Agent: agent, Base: kit.Base, Remote: true, Holder: kit.Holder})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := rt.Plan(t.Context(), sandbox.Spec{Image: image, Holder: kit.Holder, Identity: sandbox.IdentityFor(sandbox.NewID())})
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("caisson-agent-[0-9a-f]{16}").FindString(string(plan.Request))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := kit.API.VolumeRemove(ctx, name, true); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		inst, err := rt.Create(t.Context(), sandbox.NewID(), plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := inst.Destroy(ctx); err != nil {
			t.Fatal(err)
		}
		was, err := kit.API.VolumeInspect(ctx, name)
		for is := was; err == nil && is.CreatedAt == was.CreatedAt; { // it tells seconds
			if err = kit.API.VolumeRemove(ctx, name, true); err == nil {
				is, err = kit.API.VolumeCreate(ctx, volume.CreateOptions{Name: name})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
