package sandbox

import (
	"encoding/json"
	"time"
)

// Session is a workspace and the sandboxes made for it, as it is kept.
type Session struct {
	ID       ID        `json:"id"`
	Name     string    `json:"name"` // unique among those that live
	Language string    `json:"language"`
	Image    string    `json:"image,omitempty"` // overrides the language's
	Created  time.Time `json:"created"`
	// Idle ends a sandbox that nobody has used for so long; TTL ends each so
	// long after its creation. 0 is never. The workspace stays.
	Idle      time.Duration `json:"-"`
	TTL       time.Duration `json:"-"`
	Limits    Limits        `json:"limits"`
	Network   Network       `json:"network,omitempty"`
	Workspace Workspace     `json:"workspace"`
	Identity  Identity      `json:"identity"`
	// OCIRuntime names the engine's runtime. "" is its default.
	OCIRuntime string `json:"oci_runtime,omitempty"`
	// Snapshots are kept workspaces, the oldest first. They go with the session.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
}

// Snapshot is a session's workspace as it was at one moment.
type Snapshot struct {
	ID        ID        `json:"id"`
	Name      string    `json:"name,omitempty"` // a person's; unique in the session
	Created   time.Time `json:"created"`
	Copied    CopiedBy  `json:"copied"`
	Workspace Workspace `json:"workspace"`
}

// CopiedBy says how a workspace was copied.
type CopiedBy string

// How.
const (
	CopiedByOverlay CopiedBy = "overlay" // both go on upon the same layers: nothing was copied
	CopiedByBytes   CopiedBy = "bytes"   // all of it was copied
)

// SandboxRecord is a sandbox of a session, as it is kept: what it takes to find
// it again and to speak with its agent.
type SandboxRecord struct { //nolint:revive // beside ExecRecord; Record alone would be any
	ID       ID              `json:"id"`
	Session  string          `json:"session"`
	Language string          `json:"language"`
	State    State           `json:"state"`
	Handle   json.RawMessage `json:"handle"` // a runtime's, versioned by it
	Secret   []byte          `json:"-"`      // of the agent; never shown
	Image    string          `json:"image"`  // digest
	Owner    string          `json:"owner"`  // who made it
	Created  time.Time       `json:"created"`
	Expires  time.Time       `json:"expires,omitzero"` // by the TTL
}

// ExecRecord is an exec of a session, as it is kept.
type ExecRecord struct {
	ID         ID        `json:"id"`
	Session    string    `json:"session"`
	Sandbox    ID        `json:"sandbox"`
	Argv       []string  `json:"argv"`
	Owner      string    `json:"owner"` // who follows it
	Background bool      `json:"background,omitempty"`
	Started    time.Time `json:"started"`
	// Ended is zero while it runs, or while nobody has seen its end.
	Ended time.Time `json:"ended,omitzero"`
	Exit  Exit      `json:"exit,omitzero"`
}

// Kinds of event. A start is recorded before what it tells of begins, and an
// end before anybody is told of it.
const (
	EventSessionCreated   = "session.created"
	EventSessionChanged   = "session.changed"
	EventSessionRemoved   = "session.removed"
	EventSessionSnapshot  = "session.snapshot"
	EventSessionRestored  = "session.restored"
	EventSessionForked    = "session.forked"
	EventSandboxCreating  = "sandbox.creating"
	EventSandboxReady     = "sandbox.ready"
	EventSandboxPaused    = "sandbox.paused"
	EventSandboxResumed   = "sandbox.resumed"
	EventSandboxFailed    = "sandbox.failed"
	EventSandboxRemoved   = "sandbox.removed"
	EventExecStarted      = "exec.started"
	EventExecEnded        = "exec.ended"
	EventExecDenied       = "exec.denied"
	EventFilesChanged     = "files.changed" // by no exec that has just ended
	EventUndone           = "undone"
	EventApprovalAsked    = "approval.asked"
	EventApprovalAnswered = "approval.answered"
	EventRecovered        = "recovered" // a manager took up what another had left
	EventAuditPruned      = "audit.pruned"
)

// Event is one line of the audit log. Seq, Prev and Hash are set by the log,
// which chains each event to the one before.
type Event struct {
	Seq     int64     `json:"seq"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Actor   string    `json:"actor"` // who: user@host, or a client's name
	Session string    `json:"session,omitempty"`
	Sandbox ID        `json:"sandbox,omitempty"`
	Exec    ID        `json:"exec,omitempty"`
	// Data is what there is to say for its kind: a JSON object.
	Data json.RawMessage `json:"data,omitempty"`
	Prev string          `json:"prev"`
	Hash string          `json:"hash"`
}

// Change is what one transaction of the store does: all of it or nothing.
type Change struct {
	// While makes the change only while that exec is recorded as running, and
	// it is a Conflict otherwise: of all that would tell an exec's end, one does.
	While           ID
	CreateSession   *Session // Conflict where the name is taken
	PutSession      *Session // NotFound where there is none
	DeleteSession   string   // with its sandboxes and execs; Conflict while one of those runs
	PutSandboxes    []SandboxRecord
	DeleteSandboxes []ID
	PutExecs        []ExecRecord
	DeleteExecs     []ID
	// AskApproval remembers a question. MoveApproval changes its state: Conflict
	// where it is not From any more, so that of two answers the first wins.
	AskApproval  *Approval
	MoveApproval *ApprovalMove
	Events       []Event
}

// ApprovalMove takes an approval from one state to another.
type ApprovalMove struct {
	From ApprovalState
	To   Approval // as it is to be kept
}

// SessionView is a session with what belongs to it.
type SessionView struct {
	Session
	Sandboxes []SandboxRecord `json:"sandboxes"`
	Execs     []ExecRecord    `json:"execs"`
}

// EventFilter selects events. The zero value selects all of them.
type EventFilter struct {
	After   int64 // only those with a larger Seq
	Since   time.Time
	Until   time.Time
	Session string
	Exec    ID
	Kinds   []string
	Limit   int // 0 is no limit
}

// FileInfo describes one entry of a workspace.
type FileInfo struct {
	Path   string    `json:"path"` // below the workspace; "." is the workspace itself
	Type   string    `json:"type"` // "file", "dir", "link", "other"
	Size   int64     `json:"size"`
	Mode   uint32    `json:"mode"` // permission bits
	MTime  time.Time `json:"mtime"`
	Target string    `json:"target,omitempty"` // of a link, as it stands there
}

// Moved says what a transfer of files came to.
type Moved struct {
	Files int   `json:"files"` // entries: files, folders, links
	Bytes int64 `json:"bytes"` // of contents
	Same  int   `json:"same"`  // were there already, and were not moved
	Left  int   `json:"left_out"`
	// LeftOut names some of those, with the reason.
	LeftOut []string `json:"left_out_names,omitempty"`
}

// FileEvent is one change that a watch saw. Op is "ready", "create", "write",
// "remove", "rename", "chmod", or "overflow": some were lost, look anew.
type FileEvent struct {
	Path string `json:"path,omitempty"`
	Op   string `json:"op"`
}

// AuditReport says what a check of the audit's chain found.
type AuditReport struct {
	OK     bool  `json:"ok"`
	Events int64 `json:"events"` // that are there
	// First and Last are the sequence numbers of what is there. Events before
	// First were pruned by a retention, and a checkpoint stands for them.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Head is the hash of the last event: whoever keeps a copy of it elsewhere
	// can tell a log that was written anew.
	Head     string         `json:"head"`
	Problems []AuditProblem `json:"problems,omitempty"`
}

// AuditProblem is one place where the chain does not hold.
type AuditProblem struct {
	Seq  int64  `json:"seq"`
	What string `json:"what"` // such as "changed", "missing", "truncated"
}

// Retention says what an audit keeps. A zero field keeps everything.
type Retention struct {
	Age   time.Duration // events younger than that
	Bytes Bytes         // about so many of the newest
}
