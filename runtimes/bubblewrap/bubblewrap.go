//go:build linux

package bubblewrap

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/internal/harden"
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
	// Root finds an unpacked image, by its reference or its content digest. nil: there
	// are none, and every sandbox has the host's own programs.
	Root func(name string) (sandbox.ImageRoot, error)
}

// Runtime is the bubblewrap runtime. It is safe for concurrent use and holds
// nothing that needs closing.
type Runtime struct {
	local.Place // its List, Attach and Adopts are the runtime's
	cfg         Config
	try         func() (engine string, err error) // the same each time
}

var (
	_ runtimes.Runtime     = (*Runtime)(nil)
	_ runtimes.SizeHolder  = (*Runtime)(nil)
	_ runtimes.Provisioner = (*Runtime)(nil)
	_ runtimes.Adopter     = (*Runtime)(nil)
	_ runtimes.StartsSeer  = (*Runtime)(nil)
)

// New checks a Config. It starts nothing. Errors: Invalid.
func New(cfg Config) (*Runtime, error) {
	if !filepath.IsAbs(cfg.Agent) {
		return nil, sandbox.Errorf(sandbox.Invalid, "bubblewrap runtime: the agent %q has to be an absolute path", cfg.Agent)
	}
	place := local.Place{Name: Name, Suffix: ".bw", Base: cfg.Base, State: cfg.State, Groups: local.FindGroups("/sys/fs/cgroup"), Claims: true, Alone: os.Geteuid() != 0}
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
		return "", sandbox.Errorf(sandbox.Unavailable, "bwrap is not installed: %w", err).WithHint("sudo apt-get install bubblewrap")
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
		return "", sandbox.Errorf(sandbox.Unavailable, "%s --version: %w", bwrap, err).WithHint("sudo apt-get install --reinstall bubblewrap")
	}
	args := append(namespaces(), "--die-with-parent", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev")
	if r.Alone {
		args = append(asUser(os.Geteuid()), args...)
	}
	args = append(append(args, linkArgs(rootLinks())...), "--", "/usr/bin/true")
	if out, err := exec.CommandContext(ctx, bwrap, args...).CombinedOutput(); err != nil {
		return "", local.NoNamespaces("bwrap", cmp.Or(strings.TrimSpace(string(out)), err.Error()), local.Host{User: r.Alone})
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
		Runtime: Name, Isolation: "jail", Tmpfs: runtimes.Enforced, Volumes: runtimes.Watched, NoNetwork: runtimes.Enforced, Egress: true, Claim: true, ReadOnly: runtimes.Enforced,
		Seccomp: runtimes.Enforced, Users: runtimes.Enforced, LocalStreams: true,
		Workspaces: []string{string(sandbox.WorkspaceTmpfs), string(sandbox.WorkspaceVolume), string(sandbox.WorkspaceHost)},
	}
	if harden.Works() == nil {
		c.Hardening = runtimes.Enforced
	}
	if harden.SeesStarts() == nil && !r.Alone { // what is one user with the agent could answer in its place
		c.Starts = runtimes.Enforced
	}
	if r.Alone {
		c.Users, c.PIDs = runtimes.NotEnforced, local.ProcessLimit() // there is one user, whom the kernel counts
	}
	r.Limited(&c)
	return c
}

// SeesStarts implements [runtimes.StartsSeer]: no sandbox waits for bwrap to be tried
// out before it.
func (r *Runtime) SeesStarts() bool { return r.capabilities().Starts == runtimes.Enforced }

// Provision implements [runtimes.Provisioner]: a sandbox has the host's own
// programs, or those of an unpacked image that was named. Errors: NotFound for an
// image that is not unpacked, and where the host has no program of the language's;
// Unsupported where there are no images.
func (r *Runtime) Provision(_ context.Context, lang sandbox.Language, image string) (sandbox.Image, error) {
	if image != "" && r.cfg.Root != nil {
		root, err := r.cfg.Root(image)
		return root.Image, err
	}
	return local.Provision(Name, lang, image)
}

// HeldBy implements [runtimes.SizeHolder].
func (r *Runtime) HeldBy(_ context.Context, w sandbox.Workspace) (sandbox.HeldBy, error) {
	return local.HeldBy(w), nil
}
