// Package runtimes is the contract between caisson and what makes sandboxes:
// a container engine, a jail, a cluster. A runtime isolates, with the agent as
// the first process inside; everything else goes through the agent, over
// [Instance.Dial].
//
// It is not an implementation: each has a folder of its own below this one,
// and all of them pass the suite in runtimes/runtimetest.
package runtimes

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Runtime makes sandboxes. Its methods are safe for concurrent use. Errors are
// classed by package sandbox's kinds; each implementation says which.
type Runtime interface {
	// Capabilities says what is enforced here. It asks the engine where the
	// answer depends on it.
	Capabilities(ctx context.Context) (Capabilities, error)
	// Plan resolves a request into exactly what Create would make, without
	// making it. What cannot be enforced as asked is Unsupported.
	Plan(ctx context.Context, spec sandbox.Spec) (Plan, error)
	// Create makes a sandbox whose agent listens and is not claimed. It fails
	// with Conflict where what was made differs from the plan. On an error
	// nothing is left.
	Create(ctx context.Context, id sandbox.ID, plan Plan) (Instance, error)
	// Attach finds a sandbox again. It is NotFound where nothing of it is left;
	// one that has ended can still be destroyed.
	Attach(ctx context.Context, h Handle) (Instance, error)
	// List returns everything that this runtime has made, on behalf of
	// whomever, and that still exists in part.
	List(ctx context.Context) ([]Handle, error)
}

// Instance is one sandbox. Its methods are safe for concurrent use.
type Instance interface {
	Handle() Handle
	// Dial opens a stream to the agent. Unavailable: the sandbox has ended.
	Dial(ctx context.Context) (net.Conn, error)
	// Wait returns once the sandbox has ended, and says how: its Reason is
	// [sandbox.ReasonInfra] and its Cause is for people.
	Wait(ctx context.Context) (sandbox.Exit, error)
	// Destroy ends the sandbox and removes all that was made for it. It is
	// idempotent, and fine where a part is gone already.
	Destroy(ctx context.Context) error
}

// Pauser is an [Instance] that can be frozen. It agrees with
// [Capabilities].Pause.
type Pauser interface {
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Sampler is an [Instance] whose engine counts what it uses. It agrees with
// [Capabilities].Sample.
type Sampler interface {
	// Sample reads the counters now. It works while the sandbox is frozen.
	Sample(ctx context.Context) (sandbox.Sample, error)
}

// Claimer is an [Instance] that can be made before anybody asks for it, as a pool
// does. It agrees with [Capabilities].Claim.
type Claimer interface {
	// Claim makes the sandbox, which nobody has used, what a plan says that was
	// made after it: its session, holder, language, and the limits that a control
	// group holds it to. The agent's own claim, which every runtime has, comes
	// after it. Unsupported: what differs is settled for good when a sandbox is
	// made here, such as its image, and its users and what is mounted in it unless the
	// runtime is an [Adopter].
	Claim(ctx context.Context, plan Plan) error
}

// Adopter is a [Runtime] whose claims can also bring another user and a workspace
// into a sandbox that was made with an empty one in memory.
type Adopter interface {
	// Adopts reports whether a workspace can come so, as far as is known without
	// asking the engine. Where it cannot after all, the claim is Unsupported.
	Adopts(w sandbox.Workspace) bool
}

// Brancher is a [Runtime] that can make two workspaces of one. It agrees with
// [Capabilities].Branch.
type Brancher interface {
	// Branch makes, of a workspace that nobody writes to, two that are independent of
	// each other from then on: what takes its place, and a copy. Where how is
	// bytes, kept is the workspace itself. Names are made of the ids. Errors:
	// Unsupported for a kind of workspace that cannot be copied.
	Branch(ctx context.Context, of BranchOf) (kept, made sandbox.Workspace, how sandbox.CopiedBy, err error)
}

// SizeHolder is a [Runtime] whose workspaces can differ in what holds them to their
// size.
type SizeHolder interface {
	// HeldBy says it of a workspace of a session; "" is not known yet.
	HeldBy(ctx context.Context, w sandbox.Workspace) (sandbox.HeldBy, error)
}

// Provisioner is a [Runtime] that has images of its own. That of any other has to
// be in the engine.
type Provisioner interface {
	// Provision makes what a sandbox of a language is made of present; image is
	// what its caller named in place of the language's own, or "". Errors:
	// NotFound, Unsupported for an image that it cannot have.
	Provision(ctx context.Context, lang sandbox.Language, image string) (sandbox.Image, error)
}

// BranchOf says what is branched.
type BranchOf struct {
	Workspace  sandbox.Workspace
	Used       bool          // sandboxes that are frozen hold it: its bytes are copied
	Kept, Made sandbox.ID    // never used before
	Image      sandbox.Image // any that is there: copying needs a container, which does not run
	Identity   sandbox.Identity
	Holder     string
	Session    string // that the copy is for
}

// Names of the volumes of workspaces that outlive their sandboxes, before an id:
// the workspace itself, and what is written on top of an overlay's layers.
const (
	VolumePrefix = "caisson-ws-"
	UpperPrefix  = "caisson-up-"
)

// Plan is a request that a runtime has resolved.
type Plan struct {
	// Runtime names who resolved it, and alone can create it.
	Runtime string `json:"runtime"`
	// Spec has every default filled in.
	Spec sandbox.Spec `json:"spec"`
	// Request is what will be asked of the engine, in the engine's own terms,
	// for policy to judge.
	Request json.RawMessage `json:"request"`
	// Walls are the limits that Create enforces, or fails. One that is only asked
	// for, and may not hold here, is not among them.
	Walls []sandbox.Wall `json:"walls,omitempty"`
	// Hardened says that the agent is to harden what it starts, or the sandbox is not
	// used. Where it is not set, [Hardening] is among NotEnforced.
	Hardened bool `json:"hardened,omitempty"`
	// NotEnforced names limits that nothing holds the sandbox to, as
	// [Capabilities.NotEnforced] does.
	NotEnforced []string `json:"not_enforced,omitempty"`
}

// Hardening is the name by which [Capabilities.NotEnforced] has the second layer.
const Hardening = "hardening"

// Harden settles whether the sandbox of a plan is hardened: works says why it would not
// be here, or nil. Errors: Unsupported where it has to be.
func (p *Plan) Harden(works error) error {
	p.NotEnforced = slices.DeleteFunc(slices.Clone(p.NotEnforced), func(name string) bool { return name == Hardening })
	switch h := p.Spec.Limits.Hardening; {
	case h != sandbox.HardeningOff && works == nil:
		p.Hardened = true
		return nil
	case h == sandbox.HardeningStrict:
		return sandbox.Errorf(sandbox.Unsupported, "harden what runs in a sandbox: %w", works).
			WithHint("leave --hardening out, and it is done where it works; caisson doctor says what is missing")
	}
	p.NotEnforced = append(p.NotEnforced, Hardening)
	return nil
}

// HandleVersion is the version of [Handle] that this code writes.
const HandleVersion = 1

// What a handle stands for.
const (
	KindSandbox = "sandbox" // a container, a jail, a pod
	KindVolume  = "volume"  // a volume without its sandbox
	KindFolder  = "folder"  // a private folder of the host without its sandbox
)

// Handle is what it takes to find a sandbox again: plain data, to be kept.
type Handle struct {
	Version int        `json:"version"`
	Runtime string     `json:"runtime"`
	Kind    string     `json:"kind"`
	ID      sandbox.ID `json:"id"`
	// Name is the engine's own name or id for it.
	Name     string    `json:"name"`
	Session  string    `json:"session,omitempty"`
	Holder   string    `json:"holder,omitempty"` // who answers for it: a process, or a state folder
	Language string    `json:"language,omitempty"`
	Created  time.Time `json:"created"`
	Running  bool      `json:"running"`
	// Kept says that its holder left it in place on purpose.
	Kept bool `json:"kept,omitempty"`
}

// UnmarshalJSON also reads what an older caisson wrote, which called the holder
// an owner.
func (h *Handle) UnmarshalJSON(b []byte) error {
	type plain Handle // without this method
	j := struct {
		*plain
		Owner string `json:"owner"`
	}{plain: (*plain)(h)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	h.Holder = cmp.Or(h.Holder, j.Owner)
	return nil
}

// Level says how far something is enforced.
type Level string

// The levels. The zero value is [NotEnforced].
const (
	NotEnforced Level = ""
	Enforced    Level = "enforced"
	Watched     Level = "watched" // who passes it is ended soon after
)

// Capabilities says what a runtime enforces and offers. What stands as false
// or empty is not there: nothing is a silent best effort.
type Capabilities struct {
	Runtime string `json:"runtime"`
	Engine  string `json:"engine"` // name and version, for people

	Isolation string `json:"isolation"` // "container", "jail", "none", "vm"
	Memory    Level  `json:"memory"`
	CPU       Level  `json:"cpu"`
	PIDs      Level  `json:"pids"`
	Tmpfs     Level  `json:"tmpfs"` // sizes of tmpfs
	// Volumes is the size of a workspace that is a volume. Where it is [Watched],
	// one volume may have more than that: see [SizeHolder].
	Volumes   Level `json:"volumes"`
	NoNetwork Level `json:"no_network"`
	ReadOnly  Level `json:"read_only_root"`
	Seccomp   Level `json:"seccomp"`
	AppArmor  Level `json:"apparmor"`
	Users     Level `json:"users"` // uids of their own, which agent and roles are kept apart by
	// Hardening is the second layer around programs: see [sandbox.Hardening].
	Hardening Level `json:"hardening"`
	// Starts says that what execs start while they run can be seen and refused. Each
	// sandbox's agent finds out for itself; this is what the machine can.
	Starts Level `json:"starts"`

	Pause  bool `json:"pause"`
	Sample bool `json:"sample"`
	Claim  bool `json:"claim"`
	Branch bool `json:"branch"`
	// Egress says that a sandbox can be held to the hosts of [sandbox.NetworkAllow].
	Egress bool `json:"egress"`
	// LocalStreams says that Dial is a socket of this host; otherwise a relay.
	LocalStreams bool     `json:"local_streams"`
	OCIRuntimes  []string `json:"oci_runtimes,omitempty"`
	Workspaces   []string `json:"workspaces"` // kinds of workspace
}

// NotEnforced names what this runtime does not enforce, as a policy may require
// it and as people are told.
func (c Capabilities) NotEnforced() []string {
	var names []string
	if c.Isolation == "none" {
		names = append(names, "isolation")
	}
	for _, l := range []struct {
		name  string
		level Level
	}{{"memory", c.Memory}, {"cpu", c.CPU}, {"pids", c.PIDs}, {"tmpfs", c.Tmpfs}, {"volumes", c.Volumes}, {"network", c.NoNetwork},
		{"read_only_root", c.ReadOnly}, {"seccomp", c.Seccomp}, {"users", c.Users}, {Hardening, c.Hardening}} {
		if l.level == NotEnforced {
			names = append(names, l.name)
		}
	}
	return names
}

// Starts is the name by which a policy may require that starts are seen.
const Starts = "starts"

// StartsSeer is a [Runtime] that knows without asking anybody whether starts are seen
// here, so that no sandbox waits for its Capabilities. It agrees with
// [Capabilities].Starts.
type StartsSeer interface {
	SeesStarts() bool
}

// SeesStarts reports whether what is started in a sandbox is seen that the OCI runtime
// of that name makes. One that is named and neither runc nor crun may have a kernel of
// its own.
func (c Capabilities) SeesStarts(oci string) bool {
	return c.Starts == Enforced && (oci == "" || oci == "runc" || oci == "crun")
}

// CheckNetwork reports whether a sandbox can have that network here. Errors:
// Invalid, Unsupported.
func (c Capabilities) CheckNetwork(n sandbox.Network) error {
	if n.Mode == sandbox.NetworkAllow && !c.Egress {
		return sandbox.Errorf(sandbox.Unsupported, "the %s runtime cannot hold a sandbox to hosts", c.Runtime).
			WithHint("use --runtime docker or bubblewrap, or --network none")
	}
	return n.Check()
}

// CheckOCIRuntime reports whether sandboxes can be made by the OCI runtime of
// that name. "" is the engine's default and always fine. Errors: Unsupported,
// with the names of those that there are.
func (c Capabilities) CheckOCIRuntime(name string) error {
	if name == "" || slices.Contains(c.OCIRuntimes, name) {
		return nil
	}
	if len(c.OCIRuntimes) == 0 {
		return sandbox.Errorf(sandbox.Unsupported, "the %s runtime has no OCI runtimes to choose from", c.Runtime).
			WithHint("leave --oci-runtime out")
	}
	has := strings.Join(c.OCIRuntimes, ", ")
	return sandbox.Errorf(sandbox.Unsupported, "the engine has no OCI runtime %q; it has: %s", name, has).
		WithHint("--oci-runtime takes one of these; another is made known under \"runtimes\" in the engine's daemon.json")
}
