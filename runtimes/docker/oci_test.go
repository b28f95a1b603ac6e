package docker_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestPlanOCIRuntime(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	engine := dockertest.Fake(t, "1.41", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/info") {
			t.Errorf("asked for %s", r.URL.Path)
		}
		asked.Add(1)
		_, _ = io.WriteString(w, `{"Runtimes":{"runsc":{"path":"/usr/bin/runsc"},"runc":{"path":"runc"}},"DefaultRuntime":"runc"}`)
	})
	rt, err := docker.New(docker.Config{Engine: engine, Agent: "/agent", Base: "/tmp/x"})
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Image: sandbox.Image{Ref: "x"}, Identity: sandbox.Identity{UID: 1, RunnerUID: 2}}
	tests := []struct {
		name  string
		asked int64
		ok    bool
	}{
		{"", 0, true}, {"runsc", 1, true}, {"kata", 1, false}, {"RUNC", 1, false}, {"runc ", 1, false},
	}
	for _, tc := range tests {
		spec.OCIRuntime = tc.name
		asked.Store(0)
		plan, err := rt.Plan(t.Context(), spec)
		if n := asked.Load(); n != tc.asked {
			t.Errorf("%q: the engine was asked %d times, want %d", tc.name, n, tc.asked)
		}
		if !tc.ok {
			if !errors.Is(err, sandbox.Unsupported) || !strings.Contains(err.Error(), "it has: runc, runsc") || !strings.Contains(sandbox.HintOf(err), "--oci-runtime") {
				t.Errorf("%q: error %v (%s)", tc.name, err, sandbox.HintOf(err))
			}
			continue
		}
		var req struct{ HostConfig struct{ Runtime string } }
		if err == nil {
			err = json.Unmarshal(plan.Request, &req)
		}
		if err != nil || req.HostConfig.Runtime != tc.name {
			t.Errorf("%q: runtime %q in the request, %v", tc.name, req.HostConfig.Runtime, err)
		}
	}
}

func TestPlanOCIRuntimeWithoutEngine(t *testing.T) {
	t.Parallel()
	engine := dockertest.Fake(t, "1.41", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	rt, err := docker.New(docker.Config{Engine: engine, Agent: "/agent", Base: "/tmp/x"})
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Image: sandbox.Image{Ref: "x"}, Identity: sandbox.Identity{UID: 1, RunnerUID: 2}, OCIRuntime: "runc"}
	if _, err := rt.Plan(t.Context(), spec); err == nil || errors.Is(err, sandbox.Unsupported) {
		t.Errorf("error %v: what is not known is not refused as unsupported, nor passed on", err)
	}
}

// The engine's own word for it is what the container has.
func TestOCIRuntimeOfARealEngine(t *testing.T) {
	t.Parallel()
	rt, err := docker.New(docker.Config{Engine: dockertest.Engine(t), Agent: "/agent", Base: "/tmp/x"})
	if err != nil {
		t.Fatal(err)
	}
	caps, err := rt.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(caps.OCIRuntimes, "runc") {
		t.Skipf("needs an engine with runc; it has %v", caps.OCIRuntimes)
	}
	if err := errors.Join(caps.CheckOCIRuntime("runc"), caps.CheckOCIRuntime("")); err != nil {
		t.Error(err)
	}
	if err := caps.CheckOCIRuntime("none-such"); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("error %v", err)
	}
}
