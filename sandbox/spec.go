package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
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

// Network says what a sandbox can reach. The zero value is [NetworkNone].
type Network string

// The networks. Any other value names a network of the engine.
const (
	NetworkNone   Network = "none"   // a loopback device of its own and nothing else
	NetworkBridge Network = "bridge" // the engine's default bridge: the whole internet
)

// Or returns n, or [NetworkNone] where n is unset.
func (n Network) Or() Network {
	if n == "" {
		return NetworkNone
	}
	return n
}

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
	// Size bounds a tmpfs. 0 is [DefaultLimits].Workspace.
	Size Bytes `json:"size_bytes,omitempty"`
}

// WorkspaceDir is where every sandbox has its workspace.
const WorkspaceDir = "/workspace"

// Limits bound a sandbox. A zero field is the default, never "no limit".
type Limits struct {
	Memory    Bytes         `json:"memory_bytes,omitempty"`      // of all processes and tmpfs together, without swap
	CPUs      float64       `json:"cpus,omitempty"`              // share of cores
	PIDs      int           `json:"pids,omitempty"`              // processes and threads of the user's
	Workspace Bytes         `json:"workspace_bytes,omitempty"`   // size of a tmpfs workspace
	Tmp       Bytes         `json:"tmp_bytes,omitempty"`         // size of /tmp, and of the home folder
	Shm       Bytes         `json:"shm_bytes,omitempty"`         // size of /dev/shm
	OpenFiles int           `json:"open_files,omitempty"`        // RLIMIT_NOFILE
	FileSize  Bytes         `json:"file_size_bytes,omitempty"`   // RLIMIT_FSIZE
	Timeout   time.Duration `json:"-"`                           // of one exec; 0 is the default
	Keep      Bytes         `json:"output_keep_bytes,omitempty"` // of each stream, kept in the Result: head and tail
	MaxOutput Bytes         `json:"output_max_bytes,omitempty"`  // of each stream; beyond it the exec is ended
}

// DefaultLimits is what a zero field of [Limits] means.
var DefaultLimits = Limits{
	Memory: 512 * MiB, CPUs: 0.5, PIDs: 100, Workspace: 256 * MiB, Tmp: 64 * MiB, Shm: 64 * MiB,
	OpenFiles: 1024, FileSize: GiB, Timeout: 30 * time.Second, Keep: MiB, MaxOutput: 64 * MiB,
}

// MinMemory is the least memory limit that an agent and a program fit in.
const MinMemory = 32 * MiB

// WithDefaults returns l with every zero field filled from [DefaultLimits].
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits
	fill(&l.Memory, d.Memory)
	fill(&l.CPUs, d.CPUs)
	fill(&l.PIDs, d.PIDs)
	fill(&l.Workspace, d.Workspace)
	fill(&l.Tmp, d.Tmp)
	fill(&l.Shm, d.Shm)
	fill(&l.OpenFiles, d.OpenFiles)
	fill(&l.FileSize, d.FileSize)
	fill(&l.Timeout, d.Timeout)
	fill(&l.Keep, d.Keep)
	fill(&l.MaxOutput, d.MaxOutput)
	return l
}

func fill[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

// Check reports the first limit that cannot be meant, as an [Invalid] error.
// It wants a value that [Limits.WithDefaults] has filled.
func (l Limits) Check() error {
	bad := func(flag string, got any, want string) error {
		return Errorf(Invalid, "%s %v is out of range", flag, got).WithHint("%s takes %s", flag, want)
	}
	switch {
	case l.Memory < MinMemory:
		return bad("--memory", l.Memory, fmt.Sprintf("at least %s", MinMemory))
	case !(l.CPUs >= 0.01 && l.CPUs <= 1024): // written so that NaN is refused
		return bad("--cpus", l.CPUs, "0.01 to 1024")
	case l.PIDs < 1 || l.PIDs > 1<<20:
		return bad("--pids", l.PIDs, "1 to 1048576")
	case l.Workspace < 4*KiB:
		return bad("--workspace-size", l.Workspace, "at least 4k")
	case l.Tmp < 4*KiB:
		return bad("--tmp-size", l.Tmp, "at least 4k")
	case l.Shm < 4*KiB:
		return bad("--shm-size", l.Shm, "at least 4k")
	case l.OpenFiles < 16 || l.OpenFiles > 1<<20:
		return bad("--open-files", l.OpenFiles, "16 to 1048576")
	case l.FileSize < 1:
		return bad("--file-size", l.FileSize, "a positive size")
	case l.Timeout < time.Millisecond:
		return bad("--timeout", l.Timeout, "at least 1ms")
	case l.Keep < 1 || l.Keep > 1*GiB:
		return bad("--keep-output", l.Keep, "1 to 1g")
	case l.MaxOutput < 1:
		return bad("--max-output", l.MaxOutput, "a positive size")
	}
	return nil
}

// Spec asks a runtime for one sandbox. Zero fields are safe: no network,
// default limits, a tmpfs workspace, nothing of the host.
type Spec struct {
	Language  string            `json:"language,omitempty"`
	Image     Image             `json:"image"`
	Session   string            `json:"session,omitempty"`
	Owner     string            `json:"owner,omitempty"` // process that answers for it: see [Owner]
	Limits    Limits            `json:"limits"`
	Network   Network           `json:"network,omitempty"`
	Workspace Workspace         `json:"workspace"`
	Identity  Identity          `json:"identity"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Keep marks the sandbox as left in place on purpose: a sweep passes it by.
	Keep bool `json:"keep,omitempty"`
	// OCIRuntime names the engine's runtime, such as "runsc". "" is its default.
	OCIRuntime string `json:"oci_runtime,omitempty"`
}

// Image is a container image that is present in the engine.
type Image struct {
	Ref string `json:"ref"`
	// ID is the content digest, "sha256:…". What runs is the ID, not the Ref.
	ID string `json:"id,omitempty"`
	// Env is the image's own environment, KEY=VALUE.
	Env []string `json:"env,omitempty"`
	// Volumes are the places for which the image wants volumes. A sandbox has
	// places there that are bounded, empty at first, and go with it.
	Volumes []string `json:"volumes,omitempty"`
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
