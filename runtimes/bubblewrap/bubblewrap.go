//go:build linux

package bubblewrap

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/local"
	"github.com/caisson-dev/caisson/sandbox"
)

// Name is the runtime's.
const Name = "bubblewrap"

// Config says where things are. Agent, Base and State are required.
type Config struct {
	// Program is bwrap. "" is looked for in PATH.
	Program string
	// Agent is the path of the caisson-agent binary.
	Agent string
	// Base is the folder for the sandboxes' own, of at most [local.MaxBase] bytes. It is
	// made with mode 0700, and may hold what is others'.
	Base string
	// State is the folder for volumes, which outlive sandboxes.
	State string
}

// Runtime is the bubblewrap runtime. It is safe for concurrent use and holds
// nothing that needs closing.
type Runtime struct {
	local.Place // its List and Attach are the runtime's
	cfg         Config
	try         func() (engine string, err error) // the same each time
}

var (
	_ runtimes.Runtime     = (*Runtime)(nil)
	_ runtimes.SizeHolder  = (*Runtime)(nil)
	_ runtimes.Provisioner = (*Runtime)(nil)
)

// New checks a Config. It starts nothing. Errors: Invalid.
func New(cfg Config) (*Runtime, error) {
	if !filepath.IsAbs(cfg.Agent) {
		return nil, sandbox.Errorf(sandbox.Invalid, "bubblewrap runtime: the agent %q has to be an absolute path", cfg.Agent)
	}
	place := local.Place{Name: Name, Suffix: ".bw", Base: cfg.Base, State: cfg.State, Groups: local.FindGroups("/sys/fs/cgroup"), Alone: os.Geteuid() != 0}
	if err := place.Check(); err != nil {
		return nil, err
	}
	r := &Runtime{Place: place, cfg: cfg}
	r.try = sync.OnceValues(r.tryOut)
	return r, nil
}

// program is bwrap's path. Errors: Unavailable.
func (r *Runtime) program() (string, error) {
	if r.cfg.Program != "" {
		return r.cfg.Program, nil
	}
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", sandbox.Errorf(sandbox.Unavailable, "bwrap is not installed: %w", err).WithHint("apt-get install bubblewrap")
	}
	return path, nil
}

// tryOut finds out whether bwrap works here, by an empty sandbox. The answer is
// for all callers, so that no one's context ends it.
func (r *Runtime) tryOut() (string, error) {
	bwrap, err := r.program()
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	version, err := exec.CommandContext(ctx, bwrap, "--version").Output()
	if err != nil {
		return "", sandbox.Errorf(sandbox.Unavailable, "%s --version: %w", bwrap, err).WithHint("apt-get install --reinstall bubblewrap")
	}
	args := append(namespaces(), "--die-with-parent", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev")
	if r.Alone {
		args = append(asUser(os.Geteuid()), args...)
	}
	args = append(append(args, linkArgs(rootLinks())...), "--", "/usr/bin/true")
	if out, err := exec.CommandContext(ctx, bwrap, args...).CombinedOutput(); err != nil {
		return "", sandbox.Errorf(sandbox.Unavailable, "bwrap makes no sandbox here: %w: %s", err, strings.TrimSpace(string(out))).
			WithHint("inside a container it needs one that is privileged; else see: dmesg | grep -i -e apparmor -e audit")
	}
	return strings.TrimSpace(string(version)), nil
}

// Capabilities tries bwrap out, once. Errors: Unavailable.
func (r *Runtime) Capabilities(context.Context) (runtimes.Capabilities, error) {
	engine, err := r.try()
	if err != nil {
		return runtimes.Capabilities{}, err
	}
	c := r.capabilities()
	c.Engine = engine
	return c, nil
}

// capabilities are those that the runtime has where bwrap works.
func (r *Runtime) capabilities() runtimes.Capabilities {
	c := runtimes.Capabilities{
		Runtime: Name, Isolation: "jail", Tmpfs: runtimes.Enforced, Volumes: runtimes.Watched, NoNetwork: runtimes.Enforced, ReadOnly: runtimes.Enforced,
		Seccomp: runtimes.Enforced, Users: runtimes.Enforced, LocalStreams: true,
		Workspaces: []string{string(sandbox.WorkspaceTmpfs), string(sandbox.WorkspaceVolume), string(sandbox.WorkspaceHost)},
	}
	if r.Alone {
		c.Users, c.PIDs = runtimes.NotEnforced, local.ProcessLimit() // there is one user, whom the kernel counts
	}
	r.Limited(&c)
	return c
}

// Provision implements [runtimes.Provisioner]: every sandbox has the host's own
// programs. Errors: Unsupported for an image that was named, NotFound where the
// host has no program of the language's.
func (r *Runtime) Provision(_ context.Context, lang sandbox.Language, image string) (sandbox.Image, error) {
	if image != "" {
		return sandbox.Image{}, sandbox.Errorf(sandbox.Unsupported, "the bubblewrap runtime has the programs of this host, and no image %s", image).
			WithHint("leave --image out, or use --runtime docker")
	}
	if argv := lang.RunCode; len(argv) > 0 && !strings.Contains(argv[0], "{") {
		if _, err := findProgram(argv[0]); err != nil {
			return sandbox.Image{}, sandbox.Errorf(sandbox.NotFound, "this host has no %s, which %s code is run by", argv[0], lang.Name).
				WithHint("install it, or use --runtime docker")
		}
	}
	id, err := hostID()
	return sandbox.Image{Ref: "host", ID: id}, err
}

// findProgram looks where sandboxes have programs of the host's.
func findProgram(name string) (string, error) {
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return filepath.Join(dir, name), nil
		}
	}
	return "", errors.New("not found")
}

// HeldBy implements [runtimes.SizeHolder].
func (r *Runtime) HeldBy(_ context.Context, w sandbox.Workspace) (sandbox.HeldBy, error) {
	switch w.Kind {
	case sandbox.WorkspaceTmpfs:
		return sandbox.HeldByFileSystem, nil
	case sandbox.WorkspaceVolume:
		return sandbox.HeldByAgent, nil
	default:
		return "", nil
	}
}
