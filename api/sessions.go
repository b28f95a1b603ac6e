package api

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Sessions are workspaces that last, and what runs in them.
type Sessions interface {
	// CreateSession remembers a session; its sandboxes are made at first use.
	// Errors: Invalid, Conflict, Unsupported.
	CreateSession(ctx context.Context, opts SessionOptions) (sandbox.Session, error)
	// Session returns one session. Errors: NotFound.
	Session(ctx context.Context, name string) (sandbox.SessionView, error)
	// Sessions returns all of them.
	Sessions(ctx context.Context) ([]sandbox.SessionView, error)
	// RemoveSession destroys a session with its workspace. Execs that run make
	// it a Conflict unless force is set.
	RemoveSession(ctx context.Context, name string, force bool) error
	// PauseSession freezes a session's sandboxes, ResumeSession lets them go on.
	PauseSession(ctx context.Context, name string) error
	ResumeSession(ctx context.Context, name string) error
	// RenewSession sets when sandboxes end, counted from now; nil leaves a time
	// as it is, 0 is never.
	RenewSession(ctx context.Context, name string, idle, ttl *time.Duration) error

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

	// Exec runs one exec in a session.
	Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
	// StartExec starts one in the background and returns once it runs.
	StartExec(ctx context.Context, session string, run sandbox.Run) (sandbox.ExecRecord, error)
	// Processes lists the execs of a session as its sandboxes know them.
	Processes(ctx context.Context, session string) ([]Process, error)
	// Output reads what an exec in the background has put out.
	Output(ctx context.Context, session string, id sandbox.ID, opts OutputOptions) (OutputResult, error)
	// SignalExec signals an exec's process, or with all everything it started.
	SignalExec(ctx context.Context, session string, id sandbox.ID, signal int, all bool) error
	// KillExec ends an exec and everything that it started.
	KillExec(ctx context.Context, session string, id sandbox.ID) error
	// Files opens a session's workspace.
	Files(ctx context.Context, session string) (Files, error)
}

// SessionOptions ask for a session. A zero field is its default.
type SessionOptions struct {
	Name      string            `json:"name,omitempty"` // "" makes one up
	Language  string            `json:"language,omitempty"`
	Image     string            `json:"image,omitempty"`
	Idle      time.Duration     `json:"-"` // 0 is never
	TTL       time.Duration     `json:"-"` // 0 is never
	Limits    sandbox.Limits    `json:"limits,omitzero"`
	Network   sandbox.Network   `json:"network,omitempty"`
	Workspace sandbox.Workspace `json:"workspace,omitzero"`
	// OCIRuntime names the engine's runtime, such as "runsc". "" is its default.
	OCIRuntime string `json:"oci_runtime,omitempty"`
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

// Process is an exec of a session as its sandbox knows it.
type Process struct {
	ID        sandbox.ID `json:"exec_id"`
	Command   []string   `json:"command"`
	PID       int        `json:"pid"` // in the sandbox
	AgeMS     int64      `json:"age_ms"`
	Running   bool       `json:"running"`
	Processes int        `json:"processes"` // that it started and that live
	Stdout    int64      `json:"stdout_bytes"`
	Stderr    int64      `json:"stderr_bytes"`
}

// OutputOptions say what to read of an exec's output.
type OutputOptions struct {
	// StdoutFrom and StderrFrom are offsets, in bytes from the exec's start.
	StdoutFrom, StderrFrom int64
	Stdout, Stderr         io.Writer
	Follow                 bool // until the exec ends
}

// OutputResult says how far the output was read.
type OutputResult struct {
	Stdout int64             `json:"stdout_offset"`
	Stderr int64             `json:"stderr_offset"`
	Lost   sandbox.Truncated `json:"lost"` // was not kept any more
	Ended  bool              `json:"ended"`
	Exit   sandbox.Exit      `json:"exit,omitzero"`
}

// Files is a session's workspace, as its user sees it. Paths are relative to
// it, or begin with /workspace; nothing leads out of it. Errors: NotFound,
// Invalid, Denied, Conflict, Exhausted, Unavailable.
type Files interface {
	Stat(ctx context.Context, name string) (sandbox.FileInfo, error)
	Tree(ctx context.Context, name string, depth int) iter.Seq2[sandbox.FileInfo, error]
	Read(ctx context.Context, name string, offset, length int64, w io.Writer) (int64, error)
	Write(ctx context.Context, name string, mode uint32, r io.Reader) (int64, error)
	Put(ctx context.Context, files []sandbox.File) error
	// PutTar unpacks a tar stream below dir; Get writes one of dir, or of some
	// paths below it. What Get writes is the sandbox's word: who unpacks it has
	// to check every name, as package bridge/transfer does.
	PutTar(ctx context.Context, dir string, r io.Reader) (sandbox.Moved, error)
	Get(ctx context.Context, dir string, paths []string, w io.Writer) (sandbox.Moved, error)
	Mkdir(ctx context.Context, name string, mode uint32) error
	Move(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string, recursive bool) error
	Watch(ctx context.Context, name string, recursive bool) iter.Seq2[sandbox.FileEvent, error]
}

// Audit is what happened, in an order that cannot be altered unseen.
type Audit interface {
	// Events returns events in their order.
	Events(ctx context.Context, filter sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
	// VerifyAudit checks the chain of events.
	VerifyAudit(ctx context.Context) (sandbox.AuditReport, error)
	// PruneAudit drops old events and keeps the rest verifiable.
	PruneAudit(ctx context.Context, keep sandbox.Retention) (int64, error)
}
