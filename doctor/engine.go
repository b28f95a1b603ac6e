package doctor

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Mends that more than one finding has.
const (
	mendDaemon = "in /etc/docker/daemon.json, then: systemctl restart docker"
	mendImages = "free some with: docker system prune"
)

// engine: is there one, which, and does it share this host?
func engine(_ context.Context, r *round) finding {
	if r.factsErr != nil {
		return failed(r.factsErr, "make `docker info` work as this user")
	}
	f := r.facts
	what := "engine " + f.Version + ", API " + f.API + ", at " + r.Engine.Host() + ", on " + f.System + ", kernel " + f.Kernel
	if !r.Engine.Local() {
		return warn("set DOCKER_HOST to the Unix socket of an engine on this host", "%s: sandboxes need folders that it shares with this host", what)
	}
	return ok("%s", what)
}

// cgroup: which version, who drives it, does it do anything?
func cgroup(_ context.Context, r *round) finding {
	f := r.facts
	if f.CgroupDriver == "none" {
		return bad("boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line, and delegate cgroups to the engine's user",
			"the engine drives no cgroups, and so limits nothing")
	}
	if f.CgroupVersion == "" {
		return warn("use Docker Engine 20.10 or newer", "version not told, driver %s", f.CgroupDriver)
	}
	return ok("version %s, driver %s", f.CgroupVersion, f.CgroupDriver)
}

// limits: a container that the engine gives no limit differs from its plan, and
// is refused.
func limits(_ context.Context, r *round) finding {
	var lacks []string
	for _, l := range []struct {
		name string
		has  bool
	}{{"memory", r.facts.Memory}, {"swap", r.facts.Swap}, {"cpu", r.facts.CPU}, {"pids", r.facts.PIDs}} {
		if !l.has {
			lacks = append(lacks, l.name)
		}
	}
	if len(lacks) == 0 {
		return ok("memory, swap, cpu and pids are limited")
	}
	mend := "put cgroup_enable=memory swapaccount=1 on the kernel's command line and boot again"
	if _, rootless := r.facts.HasSecurity("rootless"); rootless {
		mend = "delegate the controllers to the engine's user: in /etc/systemd/system/user@.service.d/delegate.conf, [Service] Delegate=cpu cpuset io memory pids"
	}
	return bad(mend, "the engine cannot limit %s, so that sandboxes are refused", strings.Join(lacks, ", "))
}

// storage: some drivers copy whole images, some are gone from newer engines.
func storage(_ context.Context, r *round) finding {
	mend := `set "storage-driver": "overlay2" ` + mendDaemon
	switch d := r.facts.StorageDriver; d {
	case "vfs":
		return warn(mend, "vfs copies the whole image for every sandbox: slow, and it fills the disk")
	case "aufs", "overlay", "devicemapper":
		return warn(mend, "%s is deprecated, and newer engines do not have it", d)
	case "":
		return warn(mend, "the engine does not tell its storage driver")
	default:
		return ok("%s", d)
	}
}

// seccomp: without its filter a sandbox can call all of the kernel.
func seccomp(_ context.Context, r *round) finding {
	profile, on := r.facts.HasSecurity("seccomp")
	switch {
	case !on:
		return bad("run a kernel with CONFIG_SECCOMP_FILTER=y, and an engine that is built with seccomp", "the engine filters no system calls")
	case profile == "unconfined":
		return warn(`remove "seccomp-profile": "unconfined" `+mendDaemon, "the engine's default profile filters no system calls; sandboxes have caisson's own, but what the engine builds has none")
	}
	return ok("on; sandboxes have caisson's own profile")
}

// appArmor: one of the kernel's access controls should stand behind the rest.
func appArmor(_ context.Context, r *round) finding {
	if _, on := r.facts.HasSecurity("apparmor"); on {
		return ok("on")
	}
	if _, on := r.facts.HasSecurity("selinux"); on {
		return ok("SELinux is on in its place")
	}
	return warn("put apparmor=1 security=apparmor on the kernel's command line, then: apt-get install apparmor && systemctl restart docker",
		"the engine uses neither AppArmor nor SELinux")
}

// userMapping: are users in containers the same outside?
func userMapping(_ context.Context, r *round) finding {
	for name, mend := range map[string]string{
		"userns":   `use volumes with: caisson files push, caisson files pull; or remove "userns-remap" ` + mendDaemon,
		"rootless": "use volumes with: caisson files push, caisson files pull; or an engine of root's",
	} {
		if _, on := r.facts.HasSecurity(name); on {
			return warn(mend, "the engine maps users to others (%s): sessions work, but no workspace can be a folder of the host", name)
		}
	}
	return ok("users of containers are the same outside")
}

// ociRuntimes: what --oci-runtime can name.
func ociRuntimes(_ context.Context, r *round) finding {
	f := r.facts
	if len(f.OCIRuntimes) == 0 {
		return warn(`name one under "runtimes" `+mendDaemon, "the engine names none: --oci-runtime cannot be used")
	}
	if f.DefaultRuntime != "" && !slices.Contains(f.OCIRuntimes, f.DefaultRuntime) {
		return bad(`correct "default-runtime" `+mendDaemon, "the default is %s, which is not among %s", f.DefaultRuntime, strings.Join(f.OCIRuntimes, ", "))
	}
	names := slices.Clone(f.OCIRuntimes)
	for i, n := range names {
		if n == f.DefaultRuntime {
			names[i] = n + " (default)"
		}
	}
	return ok("%s", strings.Join(names, ", "))
}

// maxSkew is how far two clocks may be apart before times that both write
// mislead.
const maxSkew = 5 * time.Second

// clock: does the engine's agree with ours?
func clock(_ context.Context, r *round) finding {
	f := r.facts
	if f.Time.IsZero() {
		return warn("compare `date` on both hosts", "the engine does not tell its time")
	}
	const mend = "let both hosts set their clocks: timedatectl set-ntp true"
	if off := f.Skew.Abs() - f.SkewUncertainty; off > maxSkew {
		ahead := "behind"
		if f.Skew > 0 {
			ahead = "ahead of"
		}
		return warn(mend, "the engine's clock is %s %s this host's", f.Skew.Abs().Round(time.Millisecond), ahead)
	}
	return ok("the engine's agrees with this host's within %s", (f.Skew.Abs() + f.SkewUncertainty).Round(time.Millisecond))
}
