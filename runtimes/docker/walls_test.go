package docker

import (
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// A wall stands where the request has the limit that it is made of.
func TestWallsOf(t *testing.T) {
	t.Parallel()
	all := []sandbox.Wall{sandbox.WallNetwork, sandbox.WallRoot, sandbox.WallPrivileges, sandbox.WallLimits}
	for name, tt := range map[string]struct {
		change func(*request)
		gone   sandbox.Wall
	}{
		"default":         {func(*request) {}, ""},
		"a network":       {func(r *request) { r.HostConfig.NetworkMode = "bridge" }, sandbox.WallNetwork},
		"another network": {func(r *request) { r.HostConfig.NetworkMode = "caisson" }, sandbox.WallNetwork},
		"a writable root": {func(r *request) { r.HostConfig.ReadonlyRootfs = false }, sandbox.WallRoot},
		"new privileges":  {func(r *request) { r.HostConfig.SecurityOpt = nil }, sandbox.WallPrivileges},
		"capabilities":    {func(r *request) { r.HostConfig.CapDrop = nil }, sandbox.WallPrivileges},
		"privileged":      {func(r *request) { r.HostConfig.Privileged = true }, sandbox.WallPrivileges},
		"no memory limit": {func(r *request) { r.HostConfig.Memory = 0 }, sandbox.WallLimits},
		"no share":        {func(r *request) { r.HostConfig.CPUQuota = 0 }, sandbox.WallLimits},
		"any processes":   {func(r *request) { r.HostConfig.PidsLimit = nil }, sandbox.WallLimits},
	} {
		host, err := new(Runtime).hostConfig(sandbox.Spec{
			Limits: sandbox.Limits{}.WithDefaults(), Network: sandbox.Network{Mode: sandbox.NetworkNone}, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs, Size: sandbox.MiB},
			Identity: sandbox.Identity{UID: 20000, RunnerUID: 20001},
		})
		if err != nil {
			t.Fatal(err)
		}
		r := request{HostConfig: host}
		tt.change(&r)
		want := slices.DeleteFunc(slices.Clone(all), func(w sandbox.Wall) bool { return w == tt.gone })
		if got := wallsOf(sandbox.NetworkNone, r.HostConfig); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		// Listed hosts need the same of the engine, and it is another wall.
		for i := range want {
			if want[i] == sandbox.WallNetwork {
				want[i] = sandbox.WallEgress
			}
		}
		if got := wallsOf(sandbox.NetworkAllow, r.HostConfig); !slices.Equal(got, want) {
			t.Errorf("%s, with a list of hosts: %q, want %q", name, got, want)
		}
	}
}
