package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Places inside the container. Package agent/wire has the same; a test holds
// the two together, since a runtime does not import the agent.
const (
	runDir     = "/run/caisson"
	privateDir = runDir + "/private"
	ioDir      = privateDir + "/io"
	agentPath  = runDir + "/agent"
	homeDir    = "/home/sandbox"
	readyName  = "ready.sock"
	socketName = "agent.sock"
)

// agentReserve is how many tasks the container may have beyond the user's: the
// agent's threads, and room to start a process while the user's limit is used
// up.
const agentReserve = 24

// The container's CPU quota is dealt out in periods. A short one lets a short
// program finish in its share instead of sleeping through the engine's default
// of 100 ms; the kernel takes no quota under 1 ms.
const (
	shortPeriodUS = 20_000
	longPeriodUS  = 100_000
	minQuotaUS    = 1_000
)

// request is what is asked of the engine.
type request struct {
	Config *container.Config     `json:"Config"`
	Host   *container.HostConfig `json:"HostConfig"`
}

// Plan resolves a spec into a create request. It asks the engine only where an
// OCI runtime is named. Errors: Invalid, Unsupported, and then the engine's.
func (r *Runtime) Plan(ctx context.Context, spec sandbox.Spec) (runtimes.Plan, error) {
	spec.Limits = spec.Limits.WithDefaults()
	spec.Network = spec.Network.Or()
	if spec.Workspace.Kind == "" {
		spec.Workspace.Kind = sandbox.WorkspaceTmpfs
	}
	if spec.Workspace.Size == 0 {
		spec.Workspace.Size = spec.Limits.Workspace
	}
	if err := spec.Limits.Check(); err != nil {
		return runtimes.Plan{}, err
	}
	if spec.Identity.UID <= 0 || spec.Identity.RunnerUID <= 0 || spec.Identity.UID == spec.Identity.RunnerUID {
		return runtimes.Plan{}, sandbox.Errorf(sandbox.Invalid, "identity %+v: two uids that are not 0 and differ", spec.Identity)
	}
	if spec.Image.Ref == "" && spec.Image.ID == "" {
		return runtimes.Plan{}, sandbox.Errorf(sandbox.Invalid, "no image")
	}
	if spec.OCIRuntime != "" {
		caps, err := r.Capabilities(ctx)
		if err != nil {
			return runtimes.Plan{}, err
		}
		if err := caps.CheckOCIRuntime(spec.OCIRuntime); err != nil {
			return runtimes.Plan{}, err
		}
	}
	host, err := r.hostConfig(spec)
	if err != nil {
		return runtimes.Plan{}, err
	}
	config := containerConfig(spec)
	if r.remote {
		if err := r.planRemote(ctx, config, host); err != nil {
			return runtimes.Plan{}, err
		}
	}
	raw, err := json.Marshal(request{Config: config, Host: host})
	if err != nil {
		return runtimes.Plan{}, fmt.Errorf("encode the create request: %w", err)
	}
	return runtimes.Plan{Runtime: Name, Spec: spec, Request: raw}, nil
}

func containerConfig(spec sandbox.Spec) *container.Config {
	image := spec.Image.ID
	if image == "" {
		image = spec.Image.Ref
	}
	return &container.Config{
		Image: image,
		// Root of the container, with three capabilities and not one more: it
		// becomes somebody else for everything that it runs.
		User:        "0:0",
		Entrypoint:  []string{agentPath},
		Cmd:         []string{},
		WorkingDir:  "/",
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		Hostname:    "sandbox",
	}
}

func (r *Runtime) hostConfig(spec sandbox.Spec) (*container.HostConfig, error) {
	l := spec.Limits
	period, quota := cpuShare(l.CPUs)
	pids := int64(l.PIDs) + agentReserve
	h := &container.HostConfig{
		NetworkMode:    container.NetworkMode(spec.Network),
		IpcMode:        container.IPCModePrivate,
		CapDrop:        []string{"ALL"},
		CapAdd:         []string{"SETUID", "SETGID", "KILL"},
		SecurityOpt:    []string{"no-new-privileges"},
		ReadonlyRootfs: true,
		LogConfig:      container.LogConfig{Type: "none"},
		ShmSize:        int64(l.Shm),
		Runtime:        spec.OCIRuntime,
		Resources: container.Resources{
			Memory: int64(l.Memory), MemorySwap: int64(l.Memory), CPUPeriod: period, CPUQuota: quota, PidsLimit: &pids,
			Ulimits: []*container.Ulimit{
				{Name: "nofile", Soft: int64(l.OpenFiles), Hard: int64(l.OpenFiles)},
				{Name: "core", Soft: 0, Hard: 0},
				{Name: "fsize", Soft: int64(l.FileSize), Hard: int64(l.FileSize)},
			},
		},
		Tmpfs: map[string]string{
			runDir:     "rw,noexec,nosuid,nodev,size=64m,mode=0711",
			privateDir: "rw,noexec,nosuid,nodev,size=64k,mode=0700",
			"/tmp":     fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,mode=1777", int64(l.Tmp)),
			"/var/tmp": fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,mode=1777", int64(l.Tmp)),
			homeDir:    ownedTmpfs(l.Tmp, spec.Identity.UID),
		},
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: r.cfg.Agent, Target: agentPath, ReadOnly: true}},
	}
	switch w := spec.Workspace; w.Kind {
	case sandbox.WorkspaceTmpfs:
		h.Tmpfs[sandbox.WorkspaceDir] = ownedTmpfs(w.Size, spec.Identity.UID)
	case sandbox.WorkspaceVolume, sandbox.WorkspaceOverlay:
		if strings.ContainsAny(w.Source, "/:") {
			return nil, sandbox.Errorf(sandbox.Invalid, "%q is not a volume's name", w.Source)
		}
		// Without a copy of what the image has there: the engine would give the
		// volume the owner of the image's folder along with it.
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeVolume, Source: w.Source, Target: sandbox.WorkspaceDir,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true}})
	case sandbox.WorkspaceHost:
		if r.remote {
			return nil, sandbox.Errorf(sandbox.Unsupported, "the engine is not on this host, and has none of its folders").
				WithHint("use a volume, and copy files in and out: caisson files put, caisson files get")
		}
		if !path.IsAbs(w.Source) {
			return nil, sandbox.Errorf(sandbox.Invalid, "the host folder %q is not an absolute path", w.Source)
		}
		// Private propagation and no recursion into mounts of the host's below it.
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: w.Source, Target: sandbox.WorkspaceDir,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: true}})
	default:
		return nil, sandbox.Errorf(sandbox.Unsupported, "the docker runtime has no workspace of kind %q", w.Kind).
			WithHint("use tmpfs, volume or host")
	}
	coverVolumes(h, spec)
	return h, nil
}

// coverVolumes puts a tmpfs where the image declares a volume. The engine would
// make one there that is writable, without a limit, on its disk.
func coverVolumes(h *container.HostConfig, spec sandbox.Spec) {
	for _, place := range spec.Image.Volumes {
		place = path.Clean("/" + place)
		_, ours := h.Tmpfs[place]
		if !ours && !slices.ContainsFunc(h.Mounts, func(m mount.Mount) bool { return m.Target == place }) {
			h.Tmpfs[place] = fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,mode=1777", int64(spec.Limits.Tmp))
		}
	}
}

// ownedTmpfs is the option string of a tmpfs that belongs to a user.
func ownedTmpfs(size sandbox.Bytes, uid int) string {
	return "rw,exec,nosuid,nodev,size=" + strconv.FormatInt(int64(size), 10) + ",mode=0755,uid=" + strconv.Itoa(uid) + ",gid=" + strconv.Itoa(uid)
}

// cpuShare turns a share of cores into a period and a quota.
func cpuShare(cpus float64) (period, quota int64) {
	period = shortPeriodUS
	if cpus*shortPeriodUS < minQuotaUS {
		period = longPeriodUS
	}
	return period, max(minQuotaUS, int64(math.Round(cpus*float64(period))))
}

// differs names the first setting in which a container is weaker than, or other
// than, what was planned. The engine fills in and reorders much, so that each
// setting that matters is compared by what it means.
func differs(plan request, got container.InspectResponse) string {
	p, g := plan.Host, got.HostConfig
	if g == nil || got.Config == nil {
		return "no host configuration"
	}
	pids := int64(0)
	if g.PidsLimit != nil {
		pids = *g.PidsLimit
	}
	checks := []struct {
		name string
		ok   bool
	}{
		{"privileged", !g.Privileged},
		{"capabilities added", sameSet(p.CapAdd, g.CapAdd)},
		{"capabilities dropped", sameSet(p.CapDrop, g.CapDrop)},
		{"security options", sameSet(p.SecurityOpt, g.SecurityOpt)},
		{"OCI runtime", p.Runtime == "" || g.Runtime == p.Runtime},
		{"network", p.NetworkMode == g.NetworkMode},
		{"PID namespace", g.PidMode == p.PidMode},
		{"IPC namespace", g.IpcMode == p.IpcMode},
		{"UTS namespace", g.UTSMode == p.UTSMode},
		{"user namespace", g.UsernsMode == p.UsernsMode},
		{"read-only root", g.ReadonlyRootfs},
		{"memory", g.Memory == p.Memory && g.MemorySwap == p.MemorySwap},
		{"cpu", g.CPUPeriod == p.CPUPeriod && g.CPUQuota == p.CPUQuota},
		{"pids", pids == *p.PidsLimit},
		{"devices", len(g.Devices) == 0 && len(g.DeviceRequests) == 0 && len(g.DeviceCgroupRules) == 0},
		{"binds", len(g.Binds) == 0 && len(g.VolumesFrom) == 0},
		{"mounts", sameMounts(p.Mounts, g.Mounts)},
		{"tmpfs", slices.Equal(slices.Sorted(maps.Keys(p.Tmpfs)), slices.Sorted(maps.Keys(g.Tmpfs)))},
		{"masked paths", (g.MaskedPaths == nil || len(g.MaskedPaths) > 0) && (g.ReadonlyPaths == nil || len(g.ReadonlyPaths) > 0)},
		{"OOM killer", (g.OomKillDisable == nil || !*g.OomKillDisable) && g.OomScoreAdj >= 0},
		{"restart policy", g.RestartPolicy.Name == "" || g.RestartPolicy.Name == container.RestartPolicyDisabled},
		{"sysctls", len(g.Sysctls) == 0},
		{"groups", len(g.GroupAdd) == 0},
		{"names of hosts", len(g.ExtraHosts) == 0 && len(g.Links) == 0},
		{"volumes", !slices.ContainsFunc(got.Mounts, func(m container.MountPoint) bool { return m.RW && !planned(p.Mounts, m.Destination) })},
		{"ports", len(g.PortBindings) == 0 && !g.PublishAllPorts},
		{"user", got.Config.User == plan.Config.User},
		{"entrypoint", len(got.Config.Entrypoint) == 1 && path.Clean(got.Config.Entrypoint[0]) == plan.Config.Entrypoint[0]},
	}
	for _, c := range checks {
		if !c.ok {
			return c.name
		}
	}
	return ""
}

// planned reports whether something writable is mounted at a place on purpose.
func planned(mounts []mount.Mount, place string) bool {
	return slices.ContainsFunc(mounts, func(m mount.Mount) bool { return m.Target == place && !m.ReadOnly })
}

// sameMounts compares what is mounted where, and how.
func sameMounts(a, b []mount.Mount) bool {
	if len(a) != len(b) {
		return false
	}
	for _, m := range a {
		if !slices.ContainsFunc(b, func(o mount.Mount) bool {
			same := m.Type == o.Type && m.Source == o.Source && m.Target == o.Target && m.ReadOnly == o.ReadOnly
			return same && (m.BindOptions == nil || o.BindOptions != nil && m.BindOptions.Propagation == o.BindOptions.Propagation)
		}) {
			return false
		}
	}
	return true
}

// sameSet compares lists of capabilities or options: without order, and without
// the prefix and case that engines differ in.
func sameSet(a, b []string) bool {
	norm := func(list []string) map[string]bool {
		set := map[string]bool{}
		for _, s := range list {
			set[strings.TrimPrefix(strings.ToUpper(s), "CAP_")] = true
		}
		return set
	}
	x, y := norm(a), norm(b)
	if len(x) != len(y) {
		return false
	}
	for k := range x {
		if !y[k] {
			return false
		}
	}
	return true
}
