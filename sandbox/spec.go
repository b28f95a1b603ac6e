package sandbox

import (
	"crypto/rand"
	"encoding/hex"
)

// ID names a sandbox, an exec or a session's sandbox: 128 random bits in lower
// case hex. It is never reused.
type ID string

// NewID returns a fresh ID. It is safe for concurrent use.
func NewID() ID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails: it ends the process instead
	return ID(hex.EncodeToString(b[:]))
}

// Valid reports whether id has the form that [NewID] makes. An id that came
// from outside must be checked before it becomes part of a path or a name.
func (id ID) Valid() bool {
	if len(id) != 32 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Short is the first 12 digits, for people.
func (id ID) Short() string { return string(id[:min(12, len(id))]) }

// WorkspaceKind says what /workspace is made of.
type WorkspaceKind string

// The kinds of workspace. The zero value is [WorkspaceTmpfs].
const (
	// WorkspaceTmpfs is memory with a size; it counts against the sandbox's
	// memory limit and goes with the sandbox.
	WorkspaceTmpfs WorkspaceKind = "tmpfs"
	// WorkspaceVolume is a volume of the engine; it outlives the sandbox.
	WorkspaceVolume WorkspaceKind = "volume"
	// WorkspaceHost is a folder of the host.
	WorkspaceHost WorkspaceKind = "host"
	// WorkspaceOverlay is a layer over another workspace, which stays as it is.
	WorkspaceOverlay WorkspaceKind = "overlay"
)

// Workspace asks for the folder that an exec works in, mounted at
// [WorkspaceDir].
type Workspace struct {
	Kind WorkspaceKind `json:"kind,omitempty"`
	// Source is a volume's name or a host folder's absolute path. A volume
	// without a name is made for the sandbox and removed with it.
	Source string `json:"source,omitempty"`
	// Layers are volumes that an overlay lies on, the topmost first. Nobody
	// writes into them any more.
	Layers []string `json:"layers,omitempty"`
	// Size bounds what it holds, but for a host folder. 0 is [DefaultLimits].Workspace.
	Size Bytes `json:"size_bytes,omitempty"`
}

// WorkspaceDir is where every sandbox has its workspace.
const WorkspaceDir = "/workspace"

// Spec asks a runtime for one sandbox. Zero fields are safe: no network,
// default limits, a tmpfs workspace, nothing of the host.
type Spec struct {
	Language  string            `json:"language,omitempty"`
	Image     Image             `json:"image"`
	Session   string            `json:"session,omitempty"`
	Holder    string            `json:"holder,omitempty"` // who answers for it: a process, or a state folder
	Limits    Limits            `json:"limits"`
	Network   Network           `json:"network,omitzero"`
	Workspace Workspace         `json:"workspace"`
	Identity  Identity          `json:"identity"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Keep marks the sandbox as left in place on purpose: a sweep passes it by.
	Keep bool `json:"keep,omitempty"`
	// OCIRuntime names the engine's runtime, such as "runsc". "" is its default.
	OCIRuntime string `json:"oci_runtime,omitempty"`
}

// Identity is the pair of users that a sandbox's execs run as.
type Identity struct {
	UID int `json:"uid"` // of the session's user; the gid is the same
	// RunnerUID is the user of trusted runners, such as a test loop's. Its
	// processes are out of the session's user's reach.
	RunnerUID int `json:"runner_uid"`
}

// The range that identities are taken from. Rootless engines map it too.
const (
	FirstUID = 20000
	LastUID  = 59999
)

// IdentityFor derives an identity from an id, evenly over the range. Two ids
// may share one: an identity keeps apart what is inside one sandbox, and the
// container keeps sandboxes apart.
func IdentityFor(id ID) Identity {
	var n uint64
	for _, c := range []byte(id) {
		n = n*31 + uint64(c)
	}
	const pairs = (LastUID - FirstUID + 1) / 2
	uid := FirstUID + 2*int(n%pairs)
	return Identity{UID: uid, RunnerUID: uid + 1}
}

// Role names whom an exec or a file operation acts as. The zero value is
// [RoleUser].
type Role string

// The roles.
const (
	RoleUser   Role = "user"   // the session's user
	RoleRunner Role = "runner" // trusted runners: their files and processes are safe from the user
)
