//go:build linux

package local

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Places inside a sandbox. Package agent/wire has the same; a test holds the two
// together, since a runtime does not import the agent.
const (
	RunDir     = "/run/caisson"
	PrivateDir = RunDir + "/private"
	IODir      = PrivateDir + "/io"
	AgentPath  = RunDir + "/agent"
	readyName  = "ready.sock"
	socketName = "agent.sock"
)

// reserve is how many tasks a sandbox may have beyond the user's: the agent's
// threads, room to start a process while the user's limit is used up, and the
// program that waits for the agent.
const reserve = 26

// The quota of processor time is dealt out in short periods, so that a short
// program finishes in its share; the kernel takes no quota under 1 ms.
const (
	shortPeriodUS = 20_000
	longPeriodUS  = 100_000
	minQuotaUS    = 1_000
)

// Bind is a file or folder of the host's, seen at the same or another place.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Tmpfs is a file system in memory.
type Tmpfs struct {
	Target string        `json:"target"`
	Size   sandbox.Bytes `json:"size_bytes"`
	Mode   string        `json:"mode"` // in octal
	UID    int           `json:"uid"`
	NoExec bool          `json:"no_exec"`
}

// Mount mounts it at dir. It takes an administrator.
func (t Tmpfs) Mount(dir string) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if t.NoExec {
		flags |= unix.MS_NOEXEC
	}
	options := fmt.Sprintf("size=%d,mode=%s,uid=%d,gid=%d", int64(t.Size), t.Mode, t.UID, t.UID)
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		return fmt.Errorf("make a file system in memory: %w", err)
	}
	return nil
}

// Limits are what a control group holds a sandbox to, and what each process
// inherits.
type Limits struct {
	Memory    sandbox.Bytes `json:"memory_bytes"`
	PeriodUS  int64         `json:"cpu_period_us"`
	QuotaUS   int64         `json:"cpu_quota_us"`
	PIDs      int           `json:"pids"`
	OpenFiles int           `json:"open_files"`
	FileSize  sandbox.Bytes `json:"file_size_bytes"`
}

// Resolve fills in what a spec leaves open, and checks it for a runtime of that
// name, which has the networks given. Errors: Invalid, Unsupported.
func Resolve(spec sandbox.Spec, name string, network sandbox.NetworkMode) (sandbox.Spec, error) {
	spec.Limits, spec.Network = spec.Limits.WithDefaults(), spec.Network.WithDefaults()
	if spec.Workspace.Kind == "" {
		spec.Workspace.Kind = sandbox.WorkspaceTmpfs
	}
	if spec.Workspace.Size == 0 {
		spec.Workspace.Size = spec.Limits.Workspace
	}
	return spec, check(spec, name, network)
}

func check(spec sandbox.Spec, name string, network sandbox.NetworkMode) error {
	if err := spec.Limits.Check(); err != nil {
		return err
	}
	id := spec.Identity
	switch w := spec.Workspace; {
	case id.UID <= 0 || id.RunnerUID <= 0 || id.UID == id.RunnerUID:
		return sandbox.Errorf(sandbox.Invalid, "identity %+v: two uids that are not 0 and differ", id)
	case spec.Image.Ref == "" && spec.Image.ID == "":
		return sandbox.Errorf(sandbox.Invalid, "no image")
	case spec.Network.Mode != sandbox.NetworkNone && spec.Network.Mode != network:
		return sandbox.Errorf(sandbox.Unsupported, "the %s runtime has no network %s", name, spec.Network).WithHint("use --network none, or --runtime docker")
	case spec.Network.Check() != nil:
		return spec.Network.Check()
	case spec.OCIRuntime != "":
		return runtimes.Capabilities{Runtime: name}.CheckOCIRuntime(spec.OCIRuntime)
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
		return sandbox.Errorf(sandbox.Unsupported, "the %s runtime has no workspace of kind %q", name, w.Kind).WithHint("use tmpfs, volume or host")
	}
	return nil
}

// FileSystems are those in memory, parents first.
func FileSystems(spec sandbox.Spec) []Tmpfs {
	l, uid := spec.Limits, spec.Identity.UID
	list := []Tmpfs{
		{Target: RunDir, Size: 64 * sandbox.MiB, Mode: "0711", NoExec: true},
		{Target: PrivateDir, Size: 64 * sandbox.KiB, Mode: "0700", NoExec: true},
	}
	if spec.Workspace.Kind == sandbox.WorkspaceTmpfs {
		list = append(list, Tmpfs{Target: sandbox.WorkspaceDir, Size: spec.Workspace.Size, Mode: "0755", UID: uid})
	}
	for _, place := range sandbox.Writable(spec.Image.Volumes) {
		switch {
		case slices.ContainsFunc(list, func(t Tmpfs) bool { return t.Target == place }) || place == sandbox.WorkspaceDir:
		case place == "/dev/shm":
			list = append(list, Tmpfs{Target: place, Size: l.Shm, Mode: "1777"})
		case place == sandbox.HomeDir:
			list = append(list, Tmpfs{Target: place, Size: l.Tmp, Mode: "0755", UID: uid})
		default:
			list = append(list, Tmpfs{Target: place, Size: l.Tmp, Mode: "1777"})
		}
	}
	return list
}

// LimitsOf are the kernel's limits for those of a spec.
func LimitsOf(l sandbox.Limits) Limits {
	period := int64(shortPeriodUS)
	if l.CPUs*shortPeriodUS < minQuotaUS {
		period = longPeriodUS
	}
	return Limits{
		Memory: l.Memory, PeriodUS: period, QuotaUS: max(minQuotaUS, int64(math.Round(l.CPUs*float64(period)))),
		PIDs: l.PIDs + reserve, OpenFiles: l.OpenFiles, FileSize: l.FileSize,
	}
}
