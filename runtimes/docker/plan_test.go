package docker

import (
	"encoding/json"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/caisson-dev/caisson/sandbox"
)

// A container that is weaker than, or other than, what was planned is found out,
// whatever the engine, a plugin or a proxy changed.
func TestDiffers(t *testing.T) {
	t.Parallel()
	r := &Runtime{cfg: Config{Agent: "/usr/libexec/caisson-agent"}}
	plan, err := r.Plan(t.Context(), sandbox.Spec{
		Image: sandbox.Image{ID: "sha256:1"}, Identity: sandbox.Identity{UID: 20000, RunnerUID: 20001},
		Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceVolume, Source: "v"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var req request
	if err := json.Unmarshal(plan.Request, &req); err != nil {
		t.Fatal(err)
	}
	made := func(change func(*container.InspectResponse)) container.InspectResponse {
		var same request // a copy
		if err := json.Unmarshal(plan.Request, &same); err != nil {
			t.Fatal(err)
		}
		same.Host.MaskedPaths, same.Host.ReadonlyPaths = []string{"/proc/kcore"}, []string{"/proc/sys"} // as engines fill in
		got := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: same.Host}, Config: same.Config}
		if change != nil {
			change(&got)
		}
		return got
	}
	if what := differs(req, made(nil)); what != "" {
		t.Fatalf("the same differs by its %s", what)
	}
	yes, other := true, int64(1<<40)
	for want, change := range map[string]func(*container.InspectResponse){
		"privileged":           func(g *container.InspectResponse) { g.HostConfig.Privileged = true },
		"capabilities added":   func(g *container.InspectResponse) { g.HostConfig.CapAdd = append(g.HostConfig.CapAdd, "CAP_SYS_ADMIN") },
		"capabilities dropped": func(g *container.InspectResponse) { g.HostConfig.CapDrop = nil },
		"security options":     func(g *container.InspectResponse) { g.HostConfig.SecurityOpt = []string{"seccomp=unconfined"} },
		"network":              func(g *container.InspectResponse) { g.HostConfig.NetworkMode = "host" },
		"PID namespace":        func(g *container.InspectResponse) { g.HostConfig.PidMode = "host" },
		"IPC namespace":        func(g *container.InspectResponse) { g.HostConfig.IpcMode = "host" },
		"UTS namespace":        func(g *container.InspectResponse) { g.HostConfig.UTSMode = "host" },
		"user namespace":       func(g *container.InspectResponse) { g.HostConfig.UsernsMode = "host" },
		"read-only root":       func(g *container.InspectResponse) { g.HostConfig.ReadonlyRootfs = false },
		"memory":               func(g *container.InspectResponse) { g.HostConfig.Memory = 0 },
		"cpu":                  func(g *container.InspectResponse) { g.HostConfig.CPUQuota = 0 },
		"pids":                 func(g *container.InspectResponse) { g.HostConfig.PidsLimit = &other },
		"devices": func(g *container.InspectResponse) {
			g.HostConfig.Devices = []container.DeviceMapping{{PathOnHost: "/dev/kvm"}}
		},
		"binds":  func(g *container.InspectResponse) { g.HostConfig.Binds = []string{"/var/run/docker.sock:/x"} },
		"mounts": func(g *container.InspectResponse) { g.HostConfig.Mounts[0].Source = "/" },
		"tmpfs":  func(g *container.InspectResponse) { delete(g.HostConfig.Tmpfs, "/tmp") },
		"volumes": func(g *container.InspectResponse) {
			g.Mounts = []container.MountPoint{{Destination: "/data", RW: true}}
		},
		"masked paths":   func(g *container.InspectResponse) { g.HostConfig.MaskedPaths = []string{} },
		"OOM killer":     func(g *container.InspectResponse) { g.HostConfig.OomKillDisable = &yes },
		"restart policy": func(g *container.InspectResponse) { g.HostConfig.RestartPolicy.Name = "always" },
		"sysctls": func(g *container.InspectResponse) {
			g.HostConfig.Sysctls = map[string]string{"net.ipv4.ip_forward": "1"}
		},
		"groups":         func(g *container.InspectResponse) { g.HostConfig.GroupAdd = []string{"docker"} },
		"names of hosts": func(g *container.InspectResponse) { g.HostConfig.ExtraHosts = []string{"a:10.0.0.1"} },
		"ports":          func(g *container.InspectResponse) { g.HostConfig.PublishAllPorts = true },
		"user":           func(g *container.InspectResponse) { g.Config.User = "1000" },
		"entrypoint":     func(g *container.InspectResponse) { g.Config.Entrypoint = []string{"/bin/sh"} },
	} {
		if what := differs(req, made(change)); what != want {
			t.Errorf("%s: it differs by %q", want, what)
		}
	}
	for name, change := range map[string]func(*mount.Mount){
		"writable":  func(m *mount.Mount) { m.ReadOnly = false },
		"elsewhere": func(m *mount.Mount) { m.Target = "/x" },
		"another":   func(m *mount.Mount) { m.Type = mount.TypeVolume },
	} {
		if what := differs(req, made(func(g *container.InspectResponse) { change(&g.HostConfig.Mounts[0]) })); what != "mounts" {
			t.Errorf("a mount that is %s: it differs by %q", name, what)
		}
	}
}
