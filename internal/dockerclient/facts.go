package dockerclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Facts are what an engine says of itself, in words of our own.
type Facts struct {
	Version, API          string // of the engine, such as "20.10.24" and "1.41"
	System, Kernel, Arch  string // of the engine's host; Arch is as uname says it
	CgroupVersion         string // "1" or "2"
	CgroupDriver          string // "systemd", "cgroupfs" or "none"
	StorageDriver         string
	RootDir               string   // where it keeps images and containers
	Security              []string // such as "name=seccomp,profile=default"
	OCIRuntimes           []string // sorted
	DefaultRuntime        string
	Memory, Swap          bool // that it can limit
	CPU, PIDs             bool
	LiveRestore           bool
	Containers, Images    int
	Time                  time.Time     // the engine's clock; zero where it did not say
	Skew, SkewUncertainty time.Duration // of its clock ahead of ours, give or take
}

// HasSecurity reports whether a security option of that name is on, and its
// profile where it has one.
func (f Facts) HasSecurity(name string) (profile string, on bool) {
	for _, option := range f.Security {
		this, rest, _ := strings.Cut(option, ",")
		if strings.TrimPrefix(this, "name=") != name {
			continue
		}
		profile, _ = strings.CutPrefix(rest, "profile=")
		return profile, true
	}
	return "", false
}

// SeesStarts says why no agent in a container is told by the kernel what programs
// start, or nil. It takes Linux 5.19, by which nothing wakes who waits for an answer.
func (f Facts) SeesStarts() error {
	_, filters := f.HasSecurity("seccomp")
	var major, minor int
	n, err := fmt.Sscanf(f.Kernel, "%d.%d", &major, &minor)
	switch {
	case !filters:
		return errors.New("the engine filters no system calls")
	case f.Arch != "x86_64" && f.Arch != "aarch64":
		return fmt.Errorf("not known on %s", f.Arch)
	case err != nil || n != 2 || major < 5 || major == 5 && minor < 19:
		return fmt.Errorf("the kernel %s is too old", f.Kernel)
	case f.DefaultRuntime != "" && f.DefaultRuntime != "runc" && f.DefaultRuntime != "crun":
		return fmt.Errorf("the engine's default runtime %s may have a kernel of its own", f.DefaultRuntime)
	}
	return nil
}

// Facts asks the engine about itself. Errors: those of [Client.API].
func (c *Client) Facts(ctx context.Context) (Facts, error) {
	api, err := c.API(ctx)
	if err != nil {
		return Facts{}, err
	}
	version, err := c.APIVersion(ctx)
	if err != nil {
		return Facts{}, err
	}
	asked := time.Now()
	info, err := api.Info(ctx)
	if err != nil {
		return Facts{}, Wrap(err, "ask the engine about itself")
	}
	took := time.Since(asked)
	f := Facts{
		Version: info.ServerVersion, API: version, System: info.OperatingSystem, Kernel: info.KernelVersion, Arch: info.Architecture,
		CgroupVersion: info.CgroupVersion, CgroupDriver: info.CgroupDriver, StorageDriver: info.Driver, RootDir: info.DockerRootDir,
		Security: info.SecurityOptions, OCIRuntimes: slices.Sorted(maps.Keys(info.Runtimes)), DefaultRuntime: info.DefaultRuntime,
		Memory: info.MemoryLimit, Swap: info.SwapLimit, CPU: info.CPUCfsQuota, PIDs: info.PidsLimit,
		LiveRestore: info.LiveRestoreEnabled, Containers: info.Containers, Images: info.Images,
	}
	if t, err := time.Parse(time.RFC3339Nano, info.SystemTime); err == nil {
		// It read its clock somewhere between our question and its answer.
		f.Time, f.Skew, f.SkewUncertainty = t, t.Sub(asked.Add(took/2)), took/2
	}
	return f, nil
}
