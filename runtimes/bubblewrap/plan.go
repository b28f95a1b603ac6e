//go:build linux

package bubblewrap

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/caisson-dev/caisson/internal/harden"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/local"
	"github.com/caisson-dev/caisson/sandbox"
)

// request is what is asked of bwrap and of the kernel. What is each sandbox's own,
// such as its sockets, comes to it.
type request struct {
	Namespaces   []string          `json:"namespaces"`   // arguments of bwrap
	Capabilities []string          `json:"capabilities"` // the agent's; all others are dropped
	NoNewPrivs   bool              `json:"no_new_privileges"`
	Seccomp      bool              `json:"seccomp"` // the filter of caisson's own
	Nested       bool              `json:"nested"`  // each exec has a PID namespace of its own inside
	ReadOnly     []local.Bind      `json:"read_only"`
	Links        []local.Bind      `json:"links"`
	Tmpfs        []local.Tmpfs     `json:"tmpfs"`
	Workspace    sandbox.Workspace `json:"workspace"`
	Limits       local.Limits      `json:"limits"`
}

// namespaces are those that every sandbox has of its own.
func namespaces() []string {
	return []string{"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"}
}

// asUser are the arguments by which an ordinary user is somebody in a sandbox.
func asUser(uid int) []string {
	id := strconv.Itoa(uid)
	return []string{"--unshare-user", "--uid", id, "--gid", id}
}

// Capabilities of the agent. Root's becomes other users, and reads what they start; an
// ordinary user's can become nobody else, and makes a namespace for each exec instead: it
// is an administrator of the sandbox's user namespace, which rules over nothing outside.
var (
	rootsCapabilities = []string{"CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SYS_PTRACE"}
	usersCapabilities = []string{"CAP_SYS_ADMIN", "CAP_SYS_PTRACE"}
)

// Plan resolves a spec. It makes nothing. Errors: Invalid, Unsupported.
func (r *Runtime) Plan(_ context.Context, spec sandbox.Spec) (runtimes.Plan, error) {
	spec, err := local.Resolve(spec, Name, sandbox.NetworkAllow)
	if err != nil {
		return runtimes.Plan{}, err
	}
	req := request{
		Namespaces: namespaces(), Capabilities: rootsCapabilities, NoNewPrivs: true, Seccomp: true, Nested: r.Alone,
		Tmpfs: local.FileSystems(spec), Workspace: spec.Workspace, Limits: local.LimitsOf(spec.Limits),
	}
	if req.ReadOnly, req.Links, err = r.root(spec.Image); err != nil {
		return runtimes.Plan{}, err
	}
	if r.Alone {
		req.Namespaces, req.Capabilities = append(asUser(spec.Identity.UID), req.Namespaces...), usersCapabilities
	}
	raw, err := json.Marshal(req)
	if err != nil {
		return runtimes.Plan{}, fmt.Errorf("encode what is asked of bwrap: %w", err)
	}
	plan := runtimes.Plan{Runtime: Name, Spec: spec, Request: raw, Walls: []sandbox.Wall{sandbox.WallNetwork, sandbox.WallRoot, sandbox.WallPrivileges}}
	if spec.Network.Mode == sandbox.NetworkAllow {
		plan.Walls[0] = sandbox.WallEgress
	}
	if r.Groups.Work() {
		plan.Walls = append(plan.Walls, sandbox.WallLimits)
	}
	plan.NotEnforced = r.capabilities().NotEnforced()
	return plan, plan.Harden(harden.Works())
}
