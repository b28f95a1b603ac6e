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
	// Sessions returns those that a filter selects, by name.
	Sessions(ctx context.Context, filter sandbox.SessionFilter) ([]sandbox.SessionView, error)
	// RenewSession sets when sandboxes end, counted from now.
	RenewSession(ctx context.Context, name string, opts RenewOptions) error
	// RemoveSession destroys a session with its workspace. Execs that run make
	// it a Conflict unless force is set.
	RemoveSession(ctx context.Context, name string, force bool) error
}

// Pauser freezes sessions, and has them rest.
type Pauser interface {
	// PauseSession freezes a session's sandboxes, ResumeSession lets them go on.
	PauseSession(ctx context.Context, name string) error
	ResumeSession(ctx context.Context, name string) error
	// StopSession ends a session's sandboxes with all that runs in them. Its workspace
	// stays, and its next use makes another. Errors: NotFound.
	StopSession(ctx context.Context, name string) error
}

// Networks changes what sessions reach while they run.
type Networks interface {
	// ChangeNetwork changes the lists of hosts of a session, whose network is
	// [sandbox.NetworkAllow], and returns what it is now. It holds for the next
	// connection of what runs. Errors: Invalid, NotFound, Conflict for another network.
	ChangeNetwork(ctx context.Context, session string, change sandbox.NetworkChange) (sandbox.Network, error)
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
	// ForkSession makes a session with a copy of another's workspace. Errors: Conflict
	// while execs run, unless it is live.
	ForkSession(ctx context.Context, session string, opts ForkOptions) (Forked, error)
}

// SessionOptions ask for a session.
type SessionOptions = sandbox.SessionOptions

// RenewOptions say when a session and its sandboxes end: nil leaves a time as it is, 0
// is never.
type RenewOptions struct {
	Idle *sandbox.Duration `json:"idle_ms,omitempty"`
	TTL  *sandbox.Duration `json:"ttl_ms,omitempty"`
	// Keep has a session stay that was temporary.
	Keep bool `json:"keep,omitempty"`
}

// ForkOptions say what a fork is.
type ForkOptions = sandbox.ForkOptions

// Forked is what came of a fork.
type Forked struct {
	Session sandbox.Session  `json:"session"`
	Copied  sandbox.CopiedBy `json:"copied"`
}
