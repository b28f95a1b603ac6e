package pool

import (
	"cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

// Kind is what is settled for good when a sandbox is made: one of the same kind can
// take another's place. What a claim settles is not part of it.
type Kind struct {
	Language   string                `json:"language,omitempty"`
	Runtime    string                `json:"runtime"`
	Named      string                `json:"named,omitempty"` // an image in place of the language's, by reference
	Image      string                `json:"image,omitempty"` // its id; "" is what that is when one is made
	OCIRuntime string                `json:"oci_runtime,omitempty"`
	Network    sandbox.NetworkMode   `json:"network"`
	Workspace  sandbox.WorkspaceKind `json:"workspace"`
	Size       sandbox.Bytes         `json:"size"` // of the workspace
	Tmp        sandbox.Bytes         `json:"tmp"`
	Shm        sandbox.Bytes         `json:"shm"`
	OpenFiles  int                   `json:"open_files"`
	FileSize   sandbox.Bytes         `json:"file_size"`
}

// KindOf is what a runtime of that name would make of a spec, and whether a pool can
// have it at all. named is an image in place of the language's, or "".
func KindOf(runtime, named string, spec sandbox.Spec) (Kind, bool) {
	l := spec.Limits.WithDefaults()
	k := Kind{
		Language: spec.Language, Runtime: runtime, Named: named, Image: spec.Image.ID, OCIRuntime: spec.OCIRuntime,
		Network: spec.Network.WithDefaults().Mode, Workspace: cmp.Or(spec.Workspace.Kind, sandbox.WorkspaceTmpfs),
		Size: cmp.Or(spec.Workspace.Size, l.Workspace), Tmp: l.Tmp, Shm: l.Shm, OpenFiles: l.OpenFiles, FileSize: l.FileSize,
	}
	if k.Network == sandbox.NetworkAllow {
		k.Network = sandbox.NetworkNone // what leads to listed hosts is the agent's connection
	}
	mine := spec.Keep || len(spec.Labels) > 0 || len(spec.Workspace.Layers) > 0 || k.Workspace == sandbox.WorkspaceHost
	return k, !mine && k.Language+named != ""
}

// Spec asks for a sandbox of the kind, for nobody yet.
func (k Kind) Spec() sandbox.Spec {
	return sandbox.Spec{
		Language: k.Language, OCIRuntime: k.OCIRuntime, Network: sandbox.Network{Mode: k.Network},
		Workspace: sandbox.Workspace{Kind: k.Workspace, Size: k.Size},
		Limits:    sandbox.Limits{Tmp: k.Tmp, Shm: k.Shm, OpenFiles: k.OpenFiles, FileSize: k.FileSize, Workspace: k.Size},
	}
}

// ofAnyImage is the kind as its shelf knows it: what image it has is seen when one is
// made.
func (k Kind) ofAnyImage() Kind {
	k.Image = ""
	return k
}
