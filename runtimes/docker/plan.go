package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/caisson-dev/caisson/internal/harden"
	"github.com/caisson-dev/caisson/internal/syscalls"
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
	readyName  = "ready.sock"
	socketName = "agent.sock"
	notFirst   = 3 // the agent's exit code where the engine started another process first
)

// agentReserve is how many tasks the container may have beyond the user's: the
// agent's threads, and room to start a process while the user's limit is used
// up.
const agentReserve = 24

// agentFiles is how many files the agent may have open, whatever a program may:
// that has its own limit as a soft one, and this as the hard one where it is more.
const agentFiles = 1024

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
	Config     *container.Config
	HostConfig *container.HostConfig
}

// Plan resolves a spec into a create request. It asks the engine only where an
// OCI runtime or a folder of the host is named. Errors: Invalid, Unsupported, and then the engine's.
func (r *Runtime) Plan(ctx context.Context, spec sandbox.Spec) (runtimes.Plan, error) {
	spec.Limits = spec.Limits.WithDefaults()
	spec.Network = spec.Network.WithDefaults()
	if spec.Workspace.Kind == "" {
		spec.Workspace.Kind = sandbox.WorkspaceTmpfs
	}
	if spec.Workspace.Size == 0 {
		spec.Workspace.Size = spec.Limits.Workspace
	}
	if err := spec.Limits.Check(); err != nil {
		return runtimes.Plan{}, err
	}
	if err := (runtimes.Capabilities{Runtime: Name, Egress: true}).CheckNetwork(spec.Network); err != nil {
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
	if spec.Workspace.Kind == sandbox.WorkspaceHost {
		if err := r.sharesUsers(ctx); err != nil {
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
	raw, err := json.Marshal(request{Config: config, HostConfig: host})
	if err != nil {
		return runtimes.Plan{}, fmt.Errorf("encode the create request: %w", err)
	}
	plan := runtimes.Plan{Runtime: Name, Spec: spec, Request: raw, Walls: wallsOf(spec.Network.Mode, host)}
	return plan, plan.Harden(r.hardens(spec))
}

// hardens reports why the agent of a sandbox could not harden what it starts, as far
// as it is known here, or nil. Where somebody insists on it the agent finds out.
func (r *Runtime) hardens(spec sandbox.Spec) error {
	switch {
	case spec.Limits.Hardening == sandbox.HardeningStrict && (r.remote || spec.OCIRuntime != ""):
		return nil
	case r.remote:
		return errors.New("what the kernel of another host can do is not known")
	case spec.OCIRuntime != "" && spec.OCIRuntime != "runc" && spec.OCIRuntime != "crun":
		return fmt.Errorf("%s may have a kernel of its own", spec.OCIRuntime)
	}
	return harden.Works()
}

// wallsOf reads off a request what stops programs: what the engine made of it is
// compared with it, and so holds.
func wallsOf(network sandbox.NetworkMode, host *container.HostConfig) (walls []sandbox.Wall) {
	switch {
	case !host.NetworkMode.IsNone():
	case network == sandbox.NetworkAllow:
		walls = append(walls, sandbox.WallEgress)
	default:
		walls = append(walls, sandbox.WallNetwork)
	}
	if host.ReadonlyRootfs {
		walls = append(walls, sandbox.WallRoot)
	}
	if !host.Privileged && slices.Contains(host.SecurityOpt, "no-new-privileges") && slices.Equal(host.CapDrop, []string{"ALL"}) {
		walls = append(walls, sandbox.WallPrivileges)
	}
	if host.Memory > 0 && host.CPUQuota > 0 && host.PidsLimit != nil && *host.PidsLimit > 0 {
		walls = append(walls, sandbox.WallLimits)
	}
	return walls
}

// networkMode is what the engine is asked for: what leads to listed hosts is the
// agent's connection and no network.
func networkMode(mode sandbox.NetworkMode) container.NetworkMode {
	if mode == sandbox.NetworkAllow {
		mode = sandbox.NetworkNone
	}
	return container.NetworkMode(mode)
}

// sharesUsers refuses a folder of the host whose owner is nobody in a container.
func (r *Runtime) sharesUsers(ctx context.Context) error {
	api, err := r.cfg.Engine.API(ctx)
	if err != nil {
		return err
	}
	mapped, err := asksMapped(ctx, api)
	if err == nil && mapped {
		err = sandbox.Errorf(sandbox.Unsupported, "the engine maps users to others (userns-remap, or it is rootless): nobody in a sandbox would be the folder's owner").
			WithHint("use a volume, and copy files in and out: caisson files push, caisson files pull")
	}
	return err
}

func containerConfig(spec sandbox.Spec) *container.Config {
	image := spec.Image.ID
	if image == "" {
		image = spec.Image.Ref
	}
	return &container.Config{
		Image: image,
		// Root of the container, with four capabilities and not one more: it
		// becomes somebody else for everything that it runs, and reads what that starts.
		User:        "0:0",
		Entrypoint:  []string{agentPath},
		Cmd:         []string{},
		WorkingDir:  "/",
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		Hostname:    "sandbox",
	}
}

func (r *Runtime) hostConfig(spec sandbox.Spec) (*container.HostConfig, error) {
	profile, err := syscalls.Profile()
	if err != nil {
		return nil, fmt.Errorf("encode the seccomp profile: %w", err)
	}
	l := spec.Limits
	period, quota := cpuShare(l.CPUs)
	pids := int64(l.PIDs) + agentReserve
	h := &container.HostConfig{
		NetworkMode:  networkMode(spec.Network.Mode),
		IpcMode:      container.IPCModePrivate,
		CgroupnsMode: container.CgroupnsModePrivate,
		// The engine's own init would be the first process in the agent's place, and
		// the parent of all that a program leaves behind.
		Init:           new(bool),
		CapDrop:        []string{"ALL"},
		CapAdd:         []string{"SETUID", "SETGID", "KILL", "SYS_PTRACE"},
		SecurityOpt:    []string{"no-new-privileges", "seccomp=" + profile},
		ReadonlyRootfs: true,
		LogConfig:      container.LogConfig{Type: "none"},
		ShmSize:        int64(l.Shm),
		Runtime:        spec.OCIRuntime,
		Resources: container.Resources{
			Memory: int64(l.Memory), MemorySwap: int64(l.Memory), CPUPeriod: period, CPUQuota: quota, PidsLimit: &pids,
			Ulimits: []*container.Ulimit{
				{Name: "nofile", Soft: int64(l.OpenFiles), Hard: int64(max(l.OpenFiles, agentFiles))},
				{Name: "core", Soft: 0, Hard: 0},
				{Name: "fsize", Soft: int64(l.FileSize), Hard: int64(l.FileSize)},
			},
		},
		Tmpfs: map[string]string{
			runDir:     "rw,noexec,nosuid,nodev,size=64m,mode=0711",
			privateDir: "rw,noexec,nosuid,nodev,size=64k,mode=0700",
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
	addWritable(h, spec)
	return h, nil
}

// addWritable puts a tmpfs at each of [sandbox.Writable] that nothing is mounted
// at yet. At a place that the image declares as a volume, the engine would make one
// that is writable, without a limit, on its disk. /dev/shm is every container's.
func addWritable(h *container.HostConfig, spec sandbox.Spec) {
	for _, place := range sandbox.Writable(spec.Image.Volumes) {
		_, ours := h.Tmpfs[place]
		switch {
		case ours || place == "/dev/shm" || slices.ContainsFunc(h.Mounts, func(m mount.Mount) bool { return m.Target == place }):
		case place == sandbox.HomeDir:
			h.Tmpfs[place] = ownedTmpfs(spec.Limits.Tmp, spec.Identity.UID)
		default:
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
