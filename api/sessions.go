package api

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// Sessions are workspaces that last, and the sandboxes made for them. What shows
// a session has the names of its environment without their values.
type Sessions interface {
	// CreateSession remembers a session; its sandboxes are made at first use. Of
	// local it takes the folder. Errors: Invalid, Conflict, Unsupported.
	CreateSession(ctx context.Context, opts SessionOptions, local sandbox.Local) (sandbox.Session, error)
	// Session returns one session. Errors: NotFound.
	Session(ctx context.Context, name string) (sandbox.SessionView, error)
	// Sessions returns all of them.
	Sessions(ctx context.Context) ([]sandbox.SessionView, error)
	// RenewSession sets when sandboxes end, counted from now.
	RenewSession(ctx context.Context, name string, opts RenewOptions) error
	// RemoveSession destroys a session with its workspace. Execs that run make
	// it a Conflict unless force is set.
	RemoveSession(ctx context.Context, name string, force bool) error
}

// Pauser freezes sessions.
type Pauser interface {
	// PauseSession freezes a session's sandboxes, ResumeSession lets them go on.
	PauseSession(ctx context.Context, name string) error
	ResumeSession(ctx context.Context, name string) error
}

// Insight tells of one session what its list does not.
type Insight interface {
	// SessionEnv returns its environment, KEY=VALUE. Errors: NotFound.
	SessionEnv(ctx context.Context, name string) ([]string, error)
	// SessionStats reads what its sandboxes use now, which is no use of them.
	// Errors: NotFound.
	SessionStats(ctx context.Context, name string) (sandbox.SessionStats, error)
}

// Snapshots are kept workspaces, and copies of them.
type Snapshots interface {
	// Snapshot keeps a session's workspace as it is; its sandboxes end for it.
	// name may be "". Errors: Conflict while execs run, Unsupported for a
	// workspace in memory or of the host.
	Snapshot(ctx context.Context, session, name string) (sandbox.Snapshot, error)
	// RestoreSession makes a workspace what a snapshot kept: by its name, its id,
	// or the beginning of that. What it held is gone.
	RestoreSession(ctx context.Context, session, snapshot string) (sandbox.Snapshot, error)
	// RemoveSnapshot forgets a snapshot.
	RemoveSnapshot(ctx context.Context, session, snapshot string) error
	// ForkSession makes a session with a copy of another's workspace.
	ForkSession(ctx context.Context, session string, opts ForkOptions) (Forked, error)
}

// SessionOptions ask for a session. A zero field is its default.
type SessionOptions struct {
	Name     string           `json:"name,omitempty"` // "" makes one up
	Language string           `json:"language,omitempty"`
	Image    string           `json:"image,omitempty"`
	Idle     sandbox.Duration `json:"idle_ms,omitempty"` // 0 is never
	TTL      sandbox.Duration `json:"ttl_ms,omitempty"`  // 0 is never
	Limits   sandbox.Limits   `json:"limits,omitzero"`
	Network  sandbox.Network  `json:"network,omitzero"`
	// Workspace is a volume where its kind is unset. Where that is the host, its
	// source is the name of a folder that is configured; volumes are not chosen.
	Workspace sandbox.Workspace `json:"workspace,omitzero"`
	// Runtime names what makes its sandboxes. "" is the default.
	Runtime string `json:"runtime,omitempty"`
	// OCIRuntime names the engine's runtime, such as "runsc". "" is its default.
	OCIRuntime string `json:"oci_runtime,omitempty"`
	// Env is added to the environment of each exec, KEY=VALUE, below its own, and
	// judged with it.
	Env []string `json:"env,omitempty"`
}

// RenewOptions say when a session's sandboxes end: nil leaves a time as it is, 0
// is never.
type RenewOptions struct {
	Idle *sandbox.Duration `json:"idle_ms,omitempty"`
	TTL  *sandbox.Duration `json:"ttl_ms,omitempty"`
}

// ForkOptions say what a fork is. The zero value makes up a name and forks the
// workspace as it is, for which the origin's sandboxes end.
type ForkOptions struct {
	Name     string `json:"name,omitempty"`
	Snapshot string `json:"snapshot,omitempty"` // of the origin
}

// Forked is what came of a fork.
type Forked struct {
	Session sandbox.Session  `json:"session"`
	Copied  sandbox.CopiedBy `json:"copied"`
}
