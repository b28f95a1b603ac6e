//go:build linux

package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/harden"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/local"
	"github.com/caisson-dev/caisson/sandbox"
)

// Name is the runtime's.
const Name = "process"

// Config says where things are. All of it is required.
type Config struct {
	// Agent is the path of the caisson-agent binary.
	Agent string
	// Base is the folder for the sandboxes' own, of at most [local.MaxBase] bytes. It
	// is made with mode 0700, and may hold what is others'.
	Base string
	// State is the folder for volumes, which outlive sandboxes.
	State string
}

// Runtime is the process runtime. It is safe for concurrent use and holds nothing
// that needs closing.
type Runtime struct {
	local.Place // its List and Attach are the runtime's
	agent       string
	try         func() error // the same each time
}

var (
	_ runtimes.Runtime     = (*Runtime)(nil)
	_ runtimes.SizeHolder  = (*Runtime)(nil)
	_ runtimes.Provisioner = (*Runtime)(nil)
	_ runtimes.StartsSeer  = (*Runtime)(nil)
)

// New checks a Config. It starts nothing. Errors: Invalid.
func New(cfg Config) (*Runtime, error) {
	if !filepath.IsAbs(cfg.Agent) {
		return nil, sandbox.Errorf(sandbox.Invalid, "process runtime: the agent %q has to be an absolute path", cfg.Agent)
	}
	place := local.Place{Name: Name, Suffix: ".pr", Base: cfg.Base, State: cfg.State, Groups: local.FindGroups("/sys/fs/cgroup"), Alone: os.Geteuid() != 0}
	if err := place.Check(); err != nil {
		return nil, err
	}
	r := &Runtime{Place: place, agent: cfg.Agent}
	r.try = sync.OnceValue(r.tryOut)
	return r, nil
}

// tryOut finds out whether this process may make namespaces.
func (r *Runtime) tryOut() error {
	cmd := exec.CommandContext(context.Background(), r.agent, "enter") // which has no order, and ends at once
	cmd.SysProcAttr = r.attr(os.Geteuid())
	var end *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &end) {
		return local.NoNamespaces("the process runtime", err.Error(), local.Host{User: r.Alone})
	}
	return nil
}

// attr has what is started be the first process of its own namespaces. An ordinary
// user is uid there, and an administrator of nothing but these.
func (r *Runtime) attr(uid int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC}
	if r.Alone {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE}
	}
	return attr
}

// Capabilities says what is enforced, which is little. Errors: Unavailable where
// this process may make no namespaces.
func (r *Runtime) Capabilities(context.Context) (runtimes.Capabilities, error) {
	return r.capabilities(), r.try()
}

func (r *Runtime) capabilities() runtimes.Capabilities {
	c := runtimes.Capabilities{
		Runtime: Name, Engine: "this host", Isolation: "none", Tmpfs: runtimes.Enforced, Volumes: runtimes.Watched, Users: runtimes.Enforced, LocalStreams: true,
		Workspaces: []string{string(sandbox.WorkspaceTmpfs), string(sandbox.WorkspaceVolume), string(sandbox.WorkspaceHost)},
	}
	if harden.SeesStarts() == nil && !r.Alone { // what is one user with the agent could answer in its place
		c.Starts = runtimes.Enforced
	}
	if r.Alone {
		c.Users, c.PIDs = runtimes.NotEnforced, local.ProcessLimit()
	}
	r.Limited(&c)
	return c
}

// SeesStarts implements [runtimes.StartsSeer].
func (r *Runtime) SeesStarts() bool { return r.capabilities().Starts == runtimes.Enforced }

// HeldBy implements [runtimes.SizeHolder].
func (r *Runtime) HeldBy(_ context.Context, w sandbox.Workspace) (sandbox.HeldBy, error) {
	return local.HeldBy(w), nil
}

// Provision implements [runtimes.Provisioner]: every sandbox has the host's own
// programs. Errors: Unsupported for an image that was named, NotFound where the
// host has no program of the language's.
func (r *Runtime) Provision(_ context.Context, lang sandbox.Language, image string) (sandbox.Image, error) {
	return local.Provision(Name, lang, image)
}

// request is what is made, for policy to judge: the host with places of its own.
type request struct {
	Tmpfs     []local.Tmpfs     `json:"tmpfs"`
	Workspace sandbox.Workspace `json:"workspace"`
	Limits    local.Limits      `json:"limits"`
}

// Plan resolves a spec. It makes nothing. Errors: Invalid, Unsupported.
func (r *Runtime) Plan(_ context.Context, spec sandbox.Spec) (runtimes.Plan, error) {
	spec, err := local.Resolve(spec, Name, sandbox.NetworkBridge)
	if err != nil {
		return runtimes.Plan{}, err
	}
	raw, err := json.Marshal(request{Tmpfs: local.FileSystems(spec), Workspace: spec.Workspace, Limits: local.LimitsOf(spec.Limits)})
	if err != nil {
		return runtimes.Plan{}, fmt.Errorf("encode a plan: %w", err)
	}
	plan := runtimes.Plan{Runtime: Name, Spec: spec, Request: raw, NotEnforced: r.capabilities().NotEnforced()}
	if r.Groups.Work() {
		plan.Walls = []sandbox.Wall{sandbox.WallLimits}
	}
	return plan, plan.Harden(errors.New("the process runtime is for code that is trusted"))
}

// Create makes a sandbox, and returns once its agent listens. Errors: Unavailable
// where no namespaces can be made, TimedOut, and the context's.
func (r *Runtime) Create(ctx context.Context, id sandbox.ID, plan runtimes.Plan) (runtimes.Instance, error) {
	if !id.Valid() || plan.Runtime != Name {
		return nil, sandbox.Errorf(sandbox.Invalid, "create %q by a plan of runtime %q", id, plan.Runtime)
	}
	var req request
	if err := json.Unmarshal(plan.Request, &req); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read the plan: %w", err)
	}
	m := &making{Making: local.Making{Place: r.Place, Spec: plan.Spec, Limits: req.Limits}, r: r, req: req}
	return m.Make(ctx, id, m.start, func() error { return nil })
}

// making is a sandbox that is being made.
type making struct {
	local.Making
	r   *Runtime
	req request
}

// order is what "caisson-agent enter" is told; package agent/enter reads it.
type order struct {
	Root  string        `json:"root"`
	Tmpfs []local.Tmpfs `json:"tmpfs"`
	Binds []local.Bind  `json:"binds"`
	Keep  []int         `json:"keep"`
	Argv  []string      `json:"argv"`
}

func (m *making) order() order {
	o := order{Root: filepath.Join(m.Dir, "root"), Tmpfs: m.req.Tmpfs, Keep: []int{unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL, unix.CAP_SYS_PTRACE}, Argv: []string{local.AgentPath}}
	if m.r.Alone {
		o.Tmpfs = slices.Clone(o.Tmpfs)
		for i := range o.Tmpfs {
			o.Tmpfs[i].UID = m.Spec.Identity.UID // there is nobody else
		}
		o.Argv = append(o.Argv, local.AloneArgs("", m.req.Limits)...)
	}
	if m.Volume != "" {
		o.Binds = append(o.Binds, local.Bind{Source: m.Volume, Target: sandbox.WorkspaceDir})
	}
	for _, name := range slices.Sorted(maps.Keys(local.Names(m.Spec.Identity))) {
		o.Binds = append(o.Binds, local.Bind{Source: filepath.Join(m.Dir, name), Target: "/etc/" + name})
	}
	if m.Place.Groups.Work() {
		o.Binds = append(o.Binds, m.Group().Seen()...)
	}
	o.Binds = append(o.Binds, local.Bind{Source: m.IO(), Target: local.IODir}, local.Bind{Source: m.r.agent, Target: local.AgentPath})
	return o
}

// start starts the process that becomes the agent, and tells it how once it is
// written down who that is.
func (m *making) start() (_ *local.Process, err error) {
	text, err := json.Marshal(m.order())
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(m.Dir, "root"), 0o700); err != nil {
		return nil, err
	}
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer to.Close()
	cmd := exec.Command(m.r.agent, "enter") //nolint:noctx // it outlives us
	cmd.Stdin, cmd.SysProcAttr = in, m.r.attr(m.Spec.Identity.UID)
	var p *local.Process
	local.OnThread(func() { p, err = m.Start(cmd) }) // which enters a control group
	if err != nil {
		err = cmp.Or(m.r.try(), err) // why there are no namespaces, where that is it
	}
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, err
	}
	if err := m.Release(p.PID()); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	_, _ = to.Write(text) // where it has ended, what it said is told by who waits for the agent
	return p, nil
}
