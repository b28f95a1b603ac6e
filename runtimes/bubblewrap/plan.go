//go:build linux

package bubblewrap

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Places inside the sandbox. Package agent/wire has the same; a test holds the two
// together, since a runtime does not import the agent.
const (
	runDir     = "/run/caisson"
	privateDir = runDir + "/private"
	ioDir      = privateDir + "/io"
	agentPath  = runDir + "/agent"
	readyName  = "ready.sock"
	socketName = "agent.sock"
)

// reserve is how many tasks a sandbox may have beyond the user's: the agent's
// threads, room to start a process while the user's limit is used up, and bwrap,
// which waits for the agent.
const reserve = 26

// agentFiles is how many files the agent may have open, whatever a program may.
const agentFiles = 1024

// The quota of processor time is dealt out in short periods, so that a short
// program finishes in its share; the kernel takes no quota under 1 ms.
const (
	shortPeriodUS = 20_000
	longPeriodUS  = 100_000
	minQuotaUS    = 1_000
)

// request is what is asked of bwrap and of the kernel. What is each sandbox's own,
// such as its sockets, comes to it.
type request struct {
	Namespaces   []string          `json:"namespaces"`   // arguments of bwrap
	Capabilities []string          `json:"capabilities"` // the agent's; all others are dropped
	NoNewPrivs   bool              `json:"no_new_privileges"`
	Seccomp      bool              `json:"seccomp"` // the filter of caisson's own
	ReadOnly     []bind            `json:"read_only"`
	Links        []bind            `json:"links"`
	Tmpfs        []tmpfs           `json:"tmpfs"`
	Workspace    sandbox.Workspace `json:"workspace"`
	Limits       limits            `json:"limits"`
}

// tmpfs is a file system in memory.
type tmpfs struct {
	Target string        `json:"target"`
	Size   sandbox.Bytes `json:"size_bytes"`
	Mode   string        `json:"mode"` // in octal
	UID    int           `json:"uid"`
	NoExec bool          `json:"no_exec"`
}

// limits are what a control group holds a sandbox to, and what each process
// inherits.
type limits struct {
	Memory    sandbox.Bytes `json:"memory_bytes"`
	PeriodUS  int64         `json:"cpu_period_us"`
	QuotaUS   int64         `json:"cpu_quota_us"`
	PIDs      int           `json:"pids"`
	OpenFiles int           `json:"open_files"`
	FileSize  sandbox.Bytes `json:"file_size_bytes"`
}

// namespaces are those that every sandbox has of its own.
func namespaces() []string {
	return []string{"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"}
}

// agentCapabilities are those that the agent has.
var agentCapabilities = []string{"CAP_SETUID", "CAP_SETGID", "CAP_KILL"}

// Plan resolves a spec. It makes nothing. Errors: Invalid, Unsupported.
func (r *Runtime) Plan(_ context.Context, spec sandbox.Spec) (runtimes.Plan, error) {
	spec.Limits, spec.Network = spec.Limits.WithDefaults(), spec.Network.WithDefaults()
	if spec.Workspace.Kind == "" {
		spec.Workspace.Kind = sandbox.WorkspaceTmpfs
	}
	if spec.Workspace.Size == 0 {
		spec.Workspace.Size = spec.Limits.Workspace
	}
	if err := check(spec); err != nil {
		return runtimes.Plan{}, err
	}
	req := request{
		Namespaces: namespaces(), Capabilities: agentCapabilities, NoNewPrivs: true, Seccomp: true,
		ReadOnly: rootBinds(), Links: rootLinks(), Tmpfs: fileSystems(spec), Workspace: spec.Workspace, Limits: limitsOf(spec.Limits),
	}
	raw, err := json.Marshal(req)
	if err != nil {
		return runtimes.Plan{}, fmt.Errorf("encode what is asked of bwrap: %w", err)
	}
	plan := runtimes.Plan{Runtime: Name, Spec: spec, Request: raw, Walls: []sandbox.Wall{sandbox.WallNetwork, sandbox.WallRoot, sandbox.WallPrivileges}}
	if r.groups.work() {
		plan.Walls = append(plan.Walls, sandbox.WallLimits)
	} else {
		plan.NotEnforced = []string{"memory", "cpu", "pids"}
	}
	return plan, nil
}

func check(spec sandbox.Spec) error {
	if err := spec.Limits.Check(); err != nil {
		return err
	}
	id := spec.Identity
	switch w := spec.Workspace; {
	case id.UID <= 0 || id.RunnerUID <= 0 || id.UID == id.RunnerUID:
		return sandbox.Errorf(sandbox.Invalid, "identity %+v: two uids that are not 0 and differ", id)
	case spec.Image.Ref == "" && spec.Image.ID == "":
		return sandbox.Errorf(sandbox.Invalid, "no image")
	case spec.Network.Mode != sandbox.NetworkNone:
		return sandbox.Errorf(sandbox.Unsupported, "the bubblewrap runtime has no network %s", spec.Network).WithHint("use --network none, or --runtime docker")
	case spec.OCIRuntime != "":
		return runtimes.Capabilities{Runtime: Name}.CheckOCIRuntime(spec.OCIRuntime)
	case w.Kind == sandbox.WorkspaceTmpfs:
	case w.Kind == sandbox.WorkspaceVolume:
		if w.Source != "" && (!filepath.IsLocal(w.Source) || strings.Contains(w.Source, "/") || w.Source == ".") {
			return sandbox.Errorf(sandbox.Invalid, "%q is not a volume's name", w.Source)
		}
	case w.Kind == sandbox.WorkspaceHost:
		if !filepath.IsAbs(w.Source) {
			return sandbox.Errorf(sandbox.Invalid, "the host folder %q is not an absolute path", w.Source)
		}
	default:
		return sandbox.Errorf(sandbox.Unsupported, "the bubblewrap runtime has no workspace of kind %q", w.Kind).WithHint("use tmpfs, volume or host")
	}
	return nil
}

// fileSystems are those in memory, parents first.
func fileSystems(spec sandbox.Spec) []tmpfs {
	l, uid := spec.Limits, spec.Identity.UID
	list := []tmpfs{
		{Target: runDir, Size: 64 * sandbox.MiB, Mode: "0711", NoExec: true},
		{Target: privateDir, Size: 64 * sandbox.KiB, Mode: "0700", NoExec: true},
	}
	if spec.Workspace.Kind == sandbox.WorkspaceTmpfs {
		list = append(list, tmpfs{Target: sandbox.WorkspaceDir, Size: spec.Workspace.Size, Mode: "0755", UID: uid})
	}
	for _, place := range sandbox.Writable(spec.Image.Volumes) {
		switch {
		case slices.ContainsFunc(list, func(t tmpfs) bool { return t.Target == place }) || place == sandbox.WorkspaceDir:
		case place == "/dev/shm":
			list = append(list, tmpfs{Target: place, Size: l.Shm, Mode: "1777"})
		case place == sandbox.HomeDir:
			list = append(list, tmpfs{Target: place, Size: l.Tmp, Mode: "0755", UID: uid})
		default:
			list = append(list, tmpfs{Target: place, Size: l.Tmp, Mode: "1777"})
		}
	}
	return list
}

func limitsOf(l sandbox.Limits) limits {
	period := int64(shortPeriodUS)
	if l.CPUs*shortPeriodUS < minQuotaUS {
		period = longPeriodUS
	}
	return limits{
		Memory: l.Memory, PeriodUS: period, QuotaUS: max(minQuotaUS, int64(math.Round(l.CPUs*float64(period)))),
		PIDs: l.PIDs + reserve, OpenFiles: l.OpenFiles, FileSize: l.FileSize,
	}
}
